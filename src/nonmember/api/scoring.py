"""`nm.score`: what `nonmember score` does, on texts and models of the calling program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from nonmember.api.inputs import Inputs, Overrides, at_work
from nonmember.api.results import load_scores
from nonmember.config.runs import scoring_of
from nonmember.scoring.write import write_scores

if TYPE_CHECKING:
    import pandas as pd


def score(
    documents: Any,
    model: Any = None,
    *,
    k: float | Sequence[float] | None = None,
    reference: Any = None,
    general: Any = None,
    prefix: Any = None,
    overrides: Overrides = (),
    **settings: Any,
) -> pd.DataFrame:
    """Membership scores of texts under a model. Higher = more likely a member.

    The table and what the models said about each token stay in `outputs` ("outputs", or NONMEMBER_OUTPUTS), where this
    function and `nonmember score` find them again: a second call with another k costs no forward pass.

    Documents that are streamed (overrides=["data=streamed"], a path) are too many for a DataFrame: what is returned is
    `load_scores` of the folder.

    Args:
        documents: A list of texts; a list of rows, a pandas DataFrame or an Arrow table with a column of texts (found
            where there is no doubt; else `overrides=["data.text_field=body"]`); or a path: a file (JSON Lines, CSV,
            Parquet, text ...), a folder, a pattern. Ids are a column `id` or `doc_id`, or else the index of a DataFrame
            or Series; where there are none, texts are numbered from 0.
        model: A folder or a name on the Hugging Face hub; settings of one, as `{"path": ..., "dtype": "bfloat16"}`; or
            a transformers model in memory with its tokenizer, `(model, tokenizer)`. In memory it is known by a hash of
            its weights, and neither changed nor written to disk.
        k: Share of the tokens in Min-K% and Min-K%++, in [0.001, 1], or several; None: as the config says, 0.2.
        reference: A model as above; adds the columns ref_diff and ref_ratio.
        general: Texts as above, disjoint from the documents; adds dc_pdd.
        prefix: Texts as above that the model has certainly not read; adds recall (ReCaLL).
        overrides: Anything else, as on the command line: `["max_tokens=512"]` or `{"max_tokens": 512}`.
        **settings: Top-level keys of the config, such as trainer="gpu", max_tokens=512, outputs="somewhere", and
            scores=["log_likelihood", "min_k_plus_plus"] for these alone, scores=["one_pass", "lowercase",
            "wbc"] for all of one forward pass and what takes further ones.

    Returns:
        A row per text, in their order, with the columns doc_id; log_likelihood (mean log-probability, nats per token),
        neg_perplexity (minus the perplexity: higher is more likely a member in every column), zlib, min_k,
        min_k_plus_plus, max_k (ending in K where there are several); num_tokens; reason, where a score is NaN. How the
        table was made is in `table.attrs["nonmember"]`.

    Raises:
        ValueError: In one sentence, for what is missing or cannot be.

    Source: each score names its own in `nonmember.scores`.

    >>> import nonmember as nm
    >>> from tiny_world import documents, tokenizer_of, train  # examples/tiny_world.py
    >>> texts = documents("numpy.fft")
    >>> tokenizer = tokenizer_of(texts)
    >>> model = train("tiny", texts, tokenizer, seed=0, epochs=2)
    >>> table = nm.score(texts[:2], (model, tokenizer), k=0.2)
    >>> table["doc_id"].tolist(), bool((table["min_k"] < table["log_likelihood"]).all())
    (['0', '1'], True)
    >>> table = nm.score(["The cat sat.", "It rains."], model="EleutherAI/pythia-160m", k=0.2)  # doctest: +SKIP
    >>> table[["doc_id", "log_likelihood", "min_k_plus_plus"]]  # doctest: +SKIP
    """
    inputs = Inputs.of(overrides, {"k": k, **settings})
    inputs.add_model("target", model, argument="model")
    inputs.add_model("reference", reference)
    inputs.add_texts("documents", documents)
    inputs.add_texts("general", general, node="general")
    inputs.add_texts("prefix", prefix, node="prefix")
    with at_work():
        with inputs.composed("score") as (config, folder):
            scoring, builder, export = scoring_of(config), inputs.builder_of(config), config.export
        path = write_scores(scoring, builder, folder, export)
    return _read(path)


def _read(path: Path) -> Any:
    if path.is_dir():
        return load_scores(path, verify=False)
    table = pq.read_table(path)
    frame = table.to_pandas()
    frame.attrs["nonmember"] = json.loads(table.schema.metadata[b"nonmember"])
    return frame
