"""What the tests of the command line share: what a command said, and a question answered in half a second."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Said:
    """What a command said: exit status, standard output, standard error."""

    status: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        return self.out.rstrip("\n").rpartition("\n")[2]


def numbers(result: dict) -> dict:
    """All that `result.json` says but what the run made, found and took, what it is called, and whether somebody was
    changing the code meanwhile."""
    question = {name: value for name, value in result["question"].items() if name not in ("sweep", "cell", "data")}
    of_run = ("made", "seconds", "commit")
    provenance = {name: value for name, value in result["provenance"].items() if name not in of_run}
    others = {name: value for name, value in result.items() if name != "seal"}
    answer = {name: value for name, value in result["answer"].items() if name != "finished"}
    return {**others, "question": question, "provenance": provenance, "answer": answer}


def question(target: Path, reference: Path, documents: Path, *more: str) -> list[str]:
    """The arguments of a PRISM audit with few resamples and no tracking."""
    return [
        "audit",
        "method=prism",
        "world=micro",  # whose distillation moves models as small as these
        "model@target=pretrained",
        f"target.path={target}",
        "model@reference=pretrained",
        f"reference.path={reference}",
        "data=jsonl",
        f"data.path={documents}",
        "method.num_resamples=200",
        "logger=none",
        *more,
    ]


def rows_of(texts: Sequence[str]) -> list[dict[str, str]]:
    return [{"id": f"d{number}", "text": text} for number, text in enumerate(texts)]


def write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    """JSON lines, gzipped where the name says so."""
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(lines, mtime=0) if path.suffix == ".gz" else lines)
    return path


def only(folder: Path, pattern: str) -> Path:
    """The one file below the folder that matches."""
    (path,) = folder.glob(pattern)
    return path


@contextlib.contextmanager
def same_environment_afterwards() -> Iterator[None]:
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
