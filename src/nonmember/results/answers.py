"""Single answers of models: `answers.jsonl` beside a result, and examples for warnings.

Prompts hold the documents' text, so the file stays on this machine; trackers get none of it unless they may have text.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nonmember.artifacts import Builder
from nonmember.endpoints import Answer, AskedDocuments
from nonmember.methods.asked import kind_of
from nonmember.observations import Measurement, Scored
from nonmember.records import Corpus, Embeddings
from nonmember.scores import AnswerProbability, DocumentScores

ANSWERS = "answers.jsonl"
UNUSABLE = {"unreadable": "cannot be read", "empty": "are empty", "refused": "were refused"}
PROBABILITY = "probability"
KINDS = ("right", "wrong", *UNUSABLE, PROBABILITY)
NUM_EXAMPLES = 3
_EXAMPLES = re.compile(r", such as .* \(all: answers\.jsonl\)\.$", re.DOTALL)
LONGEST_EXAMPLE = 80  # characters

Row = Mapping[str, Any]


def rows_of(
    group: str, name: str, measurement: Measurement, values: DocumentScores | Embeddings, builder: Builder
) -> Iterator[Row]:
    """A row per answer to a measurement that asks; none for any other."""
    if isinstance(values, AskedDocuments):
        yield from _of_texts(group, name, values)
    elif isinstance(measurement, Scored) and isinstance(measurement.score, AnswerProbability):
        assert isinstance(values, DocumentScores)
        yield from _of_probabilities(group, name, builder.get(measurement.corpus), measurement.score, values)


def _of_texts(group: str, measurement: str, asked: AskedDocuments) -> Iterator[Row]:
    """A row per answer in text. kind: right, wrong, unreadable, empty or refused.   read: the answer as it was
    understood.   prompt: what was asked, before any chat template.   has_thoughts: of the model, which are left out."""
    for answer in (answer for answers in asked.answers for answer in answers):
        yield {
            "group": group,
            "measurement": measurement,
            "doc_id": answer.request.doc_id,
            "question": answer.request.name,
            "prompt": answer.request.as_text,
            "expected": answer.request.expected,
            "answer": answer.completion.text,
            "kind": _kind(answer),
            "correct": answer.parsed.correct,
            "read": answer.parsed.read,
            "reason": answer.completion.reason,
            "has_thoughts": answer.completion.has_thoughts,
            "finish_reason": answer.completion.finish_reason,
            "model": answer.completion.served_model,
            "date": answer.completion.date,
        }


def _kind(answer: Answer) -> str:
    kind = kind_of(answer)
    return kind if kind != "answered" else "right" if answer.parsed.correct else "wrong"


def _of_probabilities(
    group: str, measurement: str, corpus: Corpus, asked: AnswerProbability, scores: DocumentScores
) -> Iterator[Row]:
    """A row per document of which the probability of one answer was measured; no such answer is right or wrong.
    corpus: what was asked about."""
    instruction = asked.question.instruction
    text_of = {document.doc_id: document.text for document in corpus.documents}
    for doc_id, value in zip(scores.doc_ids, scores.values, strict=True):
        if math.isfinite(value):
            yield {
                "group": group,
                "measurement": measurement,
                "doc_id": doc_id,
                "question": measurement,
                "prompt": "\n\n".join(filter(None, (instruction, asked.question.request(text_of[doc_id])))),
                "answer": asked.answer,
                "kind": PROBABILITY,
                "probability": float(value),
                "correct": None,
            }


def warnings_about(rows: Iterable[Row]) -> list[str]:
    """How many answers about each group cannot be used, by why, with the first few of them; and before how many the
    model thought."""
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
        f"{number} of {totals[group]} answers about the {group} set {UNUSABLE[kind]}, such as "
        f"{'; '.join(examples[group, kind])} (all: {ANSWERS})."
        for (group, kind), number in sorted(unusable.items())
    ] + [
        f"Before {number} of {totals[group]} answers about the {group} set the model thought, which is no part of them."
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
