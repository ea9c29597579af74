"""Single answers of models: `answers.jsonl` beside a result, and examples for warnings.

Prompts hold the documents' text, so the file stays on this machine; trackers get none of it unless they may have text.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nonmember.records.groups import set_of

ANSWERS = "answers.jsonl"
UNUSABLE = {"unreadable": "cannot be read", "empty": "are empty", "refused": "were refused"}
PROBABILITY = "probability"
KINDS = ("right", "wrong", *UNUSABLE, PROBABILITY)
NUM_EXAMPLES = 3
_EXAMPLES = re.compile(r", such as .* \(all: answers\.jsonl\)\.$", re.DOTALL)
LONGEST_EXAMPLE = 80  # characters

Row = Mapping[str, Any]


def warnings_about(rows: Iterable[Row]) -> list[str]:
    """How many answers about each group cannot be used, why, the first few; and before how many the model thought."""
    totals: Counter[str] = Counter()
    thoughts: Counter[str] = Counter()
    unusable: Counter[tuple[str, str]] = Counter()
    examples: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        totals[row["group"]] += 1
        thoughts[row["group"]] += bool(row.get("has_thoughts"))
        if row["kind"] in UNUSABLE:
            index = row["group"], row["kind"]
            unusable[index] += 1
            if len(examples[index]) < NUM_EXAMPLES:
                examples[index].append(_example(row))
    return [
        f"{number} of {totals[group]} answers about the {set_of(group)} {UNUSABLE[kind]}, such as "
        f"{'; '.join(examples[group, kind])} (all: {ANSWERS})."
        for (group, kind), number in sorted(unusable.items())
    ] + [
        f"Before {number} of {totals[group]} answers about the {set_of(group)} the model thought, which they leave out."
        for group, number in sorted(thoughts.items())
        if number
    ]


def without_examples(warning: str) -> str:
    """The same without the answers it quotes, which may be a document's text."""
    return _EXAMPLES.sub(".", warning)


def _example(row: Row) -> str:
    answer = shortened(str(row["answer"] or row["reason"]))
    return f'"{answer}" ({row["doc_id"]})' if answer else f"nothing ({row['doc_id']})"


def shortened(text: str) -> str:
    """On one line, of at most eighty characters and three dots."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_EXAMPLE else f"{line[:LONGEST_EXAMPLE]}..."


def write(rows: Iterable[Row], folder: Path) -> None:
    """Beside the result of an audit. One that asked nothing has no such file; that of an earlier one goes."""
    path, temporary = folder / ANSWERS, folder / f".{ANSWERS}.{os.getpid()}"
    number, encode = 0, json.JSONEncoder(ensure_ascii=False).encode
    with temporary.open("w", encoding="utf-8", errors="backslashreplace") as stream:
        for number, row in enumerate(rows, start=1):  # noqa: B007 (counted)
            stream.write(encode(row) + "\n")
    if number:
        temporary.replace(path)
    else:
        temporary.unlink()
        path.unlink(missing_ok=True)
