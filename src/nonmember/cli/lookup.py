"""`nonmember lookup`: which documents a corpus holds, word for word; and the index of one's own corpora for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from nonmember.runtime.naming import path_of
from nonmember.runtime.terminal import for_rich, say
from nonmember.runtime.yaml_files import value_of

if TYPE_CHECKING:
    from nonmember.artifacts import Builder
    from nonmember.corpora import CorpusSpec
    from nonmember.lookup import Overlaps

HELP = """Look documents up: how many of their sequences of 13 words does a corpus hold?

  nonmember lookup index CORPUS       read a corpus into the index: a file, a pattern, a folder, or a name on the hub
  nonmember lookup DOCUMENTS          look documents up in the index
  nonmember lookup DOCUMENTS infinigram=NAME    in a corpus that infini-gram has indexed, such as v4_piletrain_llama:
                                      up to per_document sequences of each document are sent to that service

index=outputs/lookup   folder of the index; several corpora may be read into one
memory=512             MiB for hashes while a corpus is read, which may be larger than memory
per_document=8         questions to infini-gram about each document, at most; asking.max_requests=20000 of all
export=FILE            a row per document: .csv, .tsv, .jsonl or .parquet
Other settings are those of `nonmember score`, such as data.text_field=body or data.pattern='**/*.jsonl'.
Reading that was stopped goes on where it was. `nonmember audit ... truth=index` tells the same beside a verdict.
"""
SHOWN = 10  # documents


@dataclass(frozen=True)
class LookupSettings:
    """Of the command, beside documents and the settings of `score`."""

    index: str | None = None
    memory: int = 512
    infinigram: str | None = None
    per_document: int = 8
    export: str | None = None

    def __post_init__(self) -> None:
        if self.index and self.infinigram:  # to which texts are sent
            raise ValueError("infinigram is in place of index, and both were given. Name one of both.")


def main() -> None:
    """Print what was read, or a summary and the documents with the largest shares."""
    given = sys.argv[1:]
    if not given or any(word in ("-h", "--help") for word in given):
        sys.stdout.write(HELP)
        return
    paths = [word for word in given if "=" not in word]
    is_reading = paths[0] == "index" if paths else False
    (path,) = _one(paths[1:] if is_reading else paths)
    settings, overrides = _settings([word for word in given if "=" in word])
    from nonmember.config.runs import reading

    with reading(path, [*(["data=streamed"] if is_reading else []), *overrides]) as (config, corpus, builder):
        index = settings.index or f"{config.outputs}/lookup"
        if is_reading:
            _read(corpus, config.data.label, index, settings.memory, builder)
        else:
            _look_up(corpus, index, settings, builder)


def _one(paths: Sequence[str]) -> Sequence[str]:
    if len(paths) != 1:
        raise ValueError(
            "Expected one path, as in `nonmember lookup index CORPUS` or `nonmember lookup DOCUMENTS`; got "
            f"{len(paths)}. See --help."
        )
    return paths


def _settings(given: Sequence[str]) -> tuple[LookupSettings, list[str]]:
    """Own settings, and those of the documents."""
    names, own, overrides = [field.name for field in fields(LookupSettings)], dict[str, Any](), []
    for word in given:
        name, _, value = word.partition("=")
        if name in names:
            own[name] = value if name in ("index", "export", "infinigram") else value_of(name, value)
        else:
            overrides.append(word)
    return LookupSettings(**own), overrides


def _read(corpus: CorpusSpec, name: str, index: str, memory: int, builder: Builder) -> None:
    from nonmember.lookup.index import add

    item = add(path_of(index), corpus, name, builder, memory)
    sys.stdout.write(
        f"{name}: {item['num_documents']:,} documents with {item['num_ngrams']:,} sequences of 13 words are in the "
        f"index {index}\n"
    )


def _look_up(corpus: CorpusSpec, index: str, settings: LookupSettings, builder: Builder) -> None:
    from nonmember.lookup import InfiniGram, LocalIndex
    from nonmember.scoring.write import new_table, write_frame

    export = None if settings.export is None else new_table(settings.export)
    lookup = (
        LocalIndex(index) if settings.infinigram is None else InfiniGram(settings.infinigram, settings.per_document)
    )
    found = lookup.overlaps(builder, builder.get(corpus))
    if export is not None:
        write_frame(found.frame(), export)
    _show(found, lookup.readable)


def _show(found: Overlaps, source: str) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    console = Console()
    numbers, shares = found.summary(), found.shares
    say(
        console,
        f"{source} holds {numbers['num_whole']:,} of {numbers['num_documents']:,} documents whole, "
        f"{numbers['num_partly']:,} in part, {numbers['num_absent']:,} not at all; "
        f"{len(found.reasons):,} could not be looked up.",
    )
    largest = np.argsort(-np.nan_to_num(shares, nan=-1.0), kind="stable")[:SHOWN]
    table = Table("document")
    for name in ("share", "found", "sequences"):
        table.add_column(name, justify="right")
    for index in largest:
        reason = found.reasons.get(found.doc_ids[index])
        counts = (f"{found.num_found[index]:,}", f"{found.num_ngrams[index]:,}")
        table.add_row(for_rich(found.doc_ids[index]), for_rich(reason) if reason else f"{shares[index]:.3f}", *counts)
    console.print(table)
