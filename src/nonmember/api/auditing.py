"""`nm.audit`: what `nonmember audit` does, on texts and models of the calling program."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from nonmember.api.inputs import OWN_PLACES, Inputs, Overrides, at_work
from nonmember.api.results import FinishedAudit
from nonmember.audits.cell import run_cell
from nonmember.config.auto import Parts
from nonmember.config.given import IncompleteQuestion
from nonmember.config.runs import cell_of
from nonmember.config.words import about_another_method
from nonmember.methods import Auto
from nonmember.runtime.files import alone_in

KEYWORDS = {"target": "target", "reference": "reference", **{key: name for name, key in OWN_PLACES.items()}}


def audit(
    method: str = "auto",
    *,
    documents: Any = None,
    target: Any = None,
    reference: Any = None,
    heldout: Any = None,
    unseen: Any = None,
    general: Any = None,
    overrides: Overrides = (),
    **settings: Any,
) -> FinishedAudit:
    """Was this dataset used to train this model?

    Runs one audit; resumes where it was stopped, and finds what was answered before.

    Everything is written below `outputs` ("outputs", or NONMEMBER_OUTPUTS): the result in a folder of its own, what was
    trained and observed in the store. The command line and this function find each other's work, because they compose
    the same configs. Ctrl-C ends a training after the current step; the same call goes on from there.

    Args:
        method: auto, which takes one test for each answer, or a name of `nonmember list methods`, such as prism, dose,
            difference_in_differences.
        documents: The suspect texts: a list of texts; a list of rows, a pandas DataFrame or an Arrow table with a
            column of texts (found where there is no doubt; else `overrides=["data.text_field=body"]`); or a path. Ids
            are a column `id` or `doc_id`, or else the index of a DataFrame or Series; without ids texts are numbered
            from 0. The same ids and texts are the same corpus wherever they are from.
        target: The model in question. A folder or a name on the Hugging Face hub; settings of one, as `{"path": ...,
            "dtype": "bfloat16"}`; or a transformers model in memory with its tokenizer, `(model, tokenizer)`, known by
            a hash of its weights and never changed or written to disk. Models in shards over several GPUs need a path
            and the command line (trainer=fsdp).
        reference: A model that has certainly not read the documents, given in the same ways.
        heldout: Certainly unread text of the same kind, for methods that compare.
        unseen: Further such text, on which some tune the target.
        general: Text of other kinds, with nothing of the documents in it.
        overrides: Anything else, as on the command line: `["method.distillation.lambda_=0.5"]`, or key -> value.
        **settings: Top-level keys of the config: seed=2, trainer="gpu", name="mine", outputs="somewhere",
            logger="wandb" (which the command line takes by default, and this function does not).

    Returns:
        The verdict with its numbers, and the folder they lie in.

    Raises:
        ValueError: In one sentence, for what is missing or cannot be.

    Source: each method names its own in docs/methods/.

    >>> import nonmember as nm
    >>> new, old = ([f"{word} of document {number}" for number in range(40)] for word in ("moss", "fern"))
    >>> found = nm.audit("blind", documents=new, heldout=old)  # text alone: needs no model
    >>> found.verdict, found.statistic
    ('score_only', 1.0)
    >>> found = nm.audit("prism", target="EleutherAI/pythia-1b", reference="EleutherAI/pythia-410m",
    ...                  documents="documents.jsonl", trainer="gpu")  # doctest: +SKIP
    >>> found.verdict, found.p_value  # doctest: +SKIP
    """
    inputs = Inputs.of(overrides, {"method": method, **settings})
    inputs.default("logger", "none")
    inputs.add_model("target", target)
    inputs.add_model("reference", reference)
    for name, texts in (("documents", documents), ("heldout", heldout), ("unseen", unseen), ("general", general)):
        inputs.add_texts(name, texts)
    with at_work():
        with inputs.composed("audit") as (config, folder):
            try:
                cell, builder = cell_of(config, folder), inputs.builder_of(config)
            except IncompleteQuestion as error:
                raise ValueError(
                    f"{error.who} needs {error.what}; pass {', '.join(map(_keyword, error.keys))} to nm.audit."
                ) from None

        def again(name: str, more: Sequence[str]) -> AbstractContextManager[tuple[Any, Path]]:
            return replace(inputs, overrides=about_another_method(inputs.overrides, name, more)).composed("audit")

        with alone_in(folder):
            is_auto = isinstance(cell.audit.method, Auto)
            result = Parts(cell, config, again, builder).run() if is_auto else run_cell(cell, builder)
            return FinishedAudit(result, folder)


def _keyword(key: str) -> str:
    """target=... for the key target.path; of what has no argument of its own the override."""
    name = KEYWORDS.get(key.removesuffix(".path"))
    return f"{name}=..." if name else f"overrides=['{key}=...']"
