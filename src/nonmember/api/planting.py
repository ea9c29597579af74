"""`nm.make_canaries` and `nm.look_up`: what is done with texts before they are published, and beside a verdict."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonmember.api.inputs import Inputs, Overrides, at_work
from nonmember.artifacts import Builder
from nonmember.artifacts.store import Store
from nonmember.checks import require_kind
from nonmember.config.build import build
from nonmember.config.inputs import check_places
from nonmember.config.runs import corpus_to_read
from nonmember.evidence import canaries
from nonmember.evidence.canaries import Making, PlantedCanaries
from nonmember.lookup import InfiniGram, LocalIndex
from nonmember.lookup.index import add
from nonmember.runtime.naming import path_of

if TYPE_CHECKING:
    import pandas as pd

MIB_OF_HASHES = 512  # in memory, while a corpus is read into an index


def make_canaries(
    documents: Any, out: str | os.PathLike[str], *, model: Any = None, overrides: Overrides = (), **settings: Any
) -> PlantedCanaries:
    """Plants canaries in documents before they are published, for an exact test later: `nonmember canary make`.

    Args:
        documents: Texts as in `nm.audit`.
        out: A new folder for what is published, what is kept secret, and the commitment.
        model: That samples the variants of kind="sampled", as in `nm.audit`.
        overrides: Anything else, as on the command line: `["data.text_field=body"]`, or key -> value.
        **settings: kind="random" ("sampled", "paraphrase" with paraphrases=FILE), canaries=10, variants=100, copies=1,
            length=12, temperature=1.5; and top-level keys of the config, such as trainer="gpu".

    Returns:
        The paths, and the commitment, which is to be made public before the documents are.

    Raises:
        ValueError: In one sentence, for what is missing or cannot be, and for a folder that has canaries already.

    Source: docs/methods/canary.md.

    >>> import nonmember as nm
    >>> texts = [" ".join(f"{a}{b}{c}{number}" for a in "mfrp" for b in "aei" for c in "ln") for number in "abcdefgh"]
    >>> made = nm.make_canaries(texts, "planted", canaries=3, variants=20)
    >>> made.private.name, made.num_variants
    ('canaries.private.json', (20, 20, 20))
    >>> found = nm.audit("canary", target="MODEL", data="canaries", overrides={"data.path": made.private,
    ...                  "data.commitment": made.commitment})  # doctest: +SKIP
    """
    require_kind(out, str | os.PathLike, "out", "a new folder")
    names = [field.name for field in fields(Making)]
    own = {name: settings.pop(name) for name in names if name in settings}
    numbers = {name: value.item() for name, value in own.items() if hasattr(value, "item")}  # of NumPy
    making = Making.of(own | numbers, has_model=model is not None)
    inputs = Inputs.of(overrides, settings)
    inputs.add_model("target", model, argument="model")
    inputs.add_texts("documents", documents)
    folder = path_of(os.fspath(out))
    canaries.require_new(folder)
    # In a store of its own: that of audits would keep what must stay secret.
    with at_work(), tempfile.TemporaryDirectory() as store, inputs.composed("score") as (config, _):
        builder = inputs.builder_of(config, Store(Path(store)))
        corpus, sampler = corpus_to_read(config), build(config.target) if making.kind == "sampled" else None
        check_places(sampler)
        return canaries.make(making, folder, builder.get(corpus), builder, sampler)


def look_up(
    documents: Any,
    *,
    index: str | os.PathLike[str] | None = None,
    corpus: str | os.PathLike[str] | None = None,
    infinigram: str | None = None,
    overrides: Overrides = (),
    **settings: Any,
) -> pd.DataFrame:
    """How many of each document's sequences of 13 words does a corpus hold? As `nonmember lookup`.

    Args:
        documents: Texts as in `nm.audit`.
        index: Folder of a local index ("outputs/lookup").
        corpus: File, folder or pattern that is read into the index before, unless it holds it already.
        infinigram: Name of a corpus that infini-gram has indexed, such as v4_piletrain_llama, in place of the index: up
            to 8 sequences of each document are *sent* to that service.
        overrides: Anything else, as on the command line: `["data.text_field=body"]`, or key -> value.
        **settings: Top-level keys of the config, such as outputs="somewhere".

    Returns:
        A row per document: doc_id; share of its sequences that were found (NaN where none was looked up); their
        numbers, found and sequences; reason, where none was looked up.

    Raises:
        ValueError: In one sentence, for what is missing or cannot be, and for an index that is not complete.

    Source: infini-gram: Liu et al., 2024; docs/lookup.md.

    >>> import nonmember as nm
    >>> from pathlib import Path
    >>> words = [f"word{number}" for number in range(40)]
    >>> _ = Path("read.txt").write_text(" ".join(words))
    >>> nm.look_up([" ".join(words[:20]), " ".join(words[::-1])], corpus="read.txt")["share"].tolist()
    [1.0, 0.0]
    """
    if infinigram is not None and (index or corpus):
        raise ValueError("infinigram is in place of index and corpus; it was given with one of them. Name one of both.")
    require_kind(index, str | os.PathLike, "index", "a folder", or_null=True)
    require_kind(corpus, str | os.PathLike, "corpus", "a file, a folder or a pattern", or_null=True)
    with at_work():
        if corpus is not None:
            streamed = Inputs.of(overrides, {"data": "streamed", **settings})
            streamed.add_texts("documents", os.fspath(corpus))
            with _reading(streamed, index) as (folder, source, label, builder):
                add(Path(folder), source, label, builder, MIB_OF_HASHES)
        inputs = Inputs.of(overrides, settings)
        inputs.add_texts("documents", documents)
        with _reading(inputs, index) as (folder, source, _, builder):
            lookup = LocalIndex(folder) if infinigram is None else InfiniGram(infinigram)
            return lookup.overlaps(builder, builder.get(source)).frame()


@contextmanager
def _reading(inputs: Inputs, index: str | os.PathLike[str] | None) -> Iterator[tuple[str, Any, str, Builder]]:
    """Folder of the index, the corpus of the texts with its name, and what reads it."""
    with inputs.composed("score") as (config, _):
        corpus = corpus_to_read(config)
        folder = os.path.expanduser(index or f"{config.outputs}/lookup")
        yield folder, corpus, config.data.label, inputs.builder_of(config)
