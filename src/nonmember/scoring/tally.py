"""Counts of scored, truncated and unscorable documents, with the first ids of each kind."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nonmember.models.reading import TextsRead
from nonmember.results.result import tokens_in_words

log = logging.getLogger(__name__)

NAMED = 5  # documents that a line lists


@dataclass(frozen=True)
class DocumentSample:
    """How many documents are of one kind.   first: the ids of the first few."""

    number: int = 0
    first: tuple[str, ...] = ()

    @classmethod
    def of(cls, doc_ids: Sequence[str]) -> DocumentSample:
        return cls(len(doc_ids), tuple(doc_ids[:NAMED]))

    def __add__(self, other: DocumentSample) -> DocumentSample:
        return DocumentSample(self.number + other.number, (*self.first, *other.first)[:NAMED])

    def __str__(self) -> str:
        more = f" and {self.number - len(self.first):,} more" if self.number > len(self.first) else ""
        return ", ".join(self.first) + more


def scores_without(doc_id: str, reasons: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """Reason -> names of the scores that lack a value of the document for it.   reasons: as of `Tally.of`."""
    names_of: dict[str, list[str]] = {}
    for name, why in reasons.items():
        if doc_id in why:
            names_of.setdefault(why[doc_id], []).append(name)
    return names_of


@dataclass(frozen=True)
class Tally:
    """num_tokens: scored ones.   cut: documents of which only a beginning was read.   longest: most tokens read of one;
    None where the tokenizer is elsewhere.   without: (reason, names of the scores that lack a value for it) -> those
    documents."""

    num_documents: int
    num_tokens: int
    cut: DocumentSample
    longest: int | None
    without: Mapping[tuple[str, tuple[str, ...]], DocumentSample]

    @classmethod
    def of(
        cls, doc_ids: Sequence[str], num_tokens: int, read: TextsRead | None, reasons: Mapping[str, Mapping[str, str]]
    ) -> Tally:
        """reasons: score -> id -> why it has no value."""
        without: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for doc_id in doc_ids:
            for reason, names in scores_without(doc_id, reasons).items():
                without.setdefault((reason, tuple(names)), []).append(doc_id)
        cut = [] if read is None else [item for item, is_cut in zip(doc_ids, read.is_cut, strict=True) if is_cut]
        longest = None if read is None else max(read.num_read, default=0)
        samples = {key: DocumentSample.of(ids) for key, ids in without.items()}
        return cls(len(doc_ids), num_tokens, DocumentSample.of(cut), longest, samples)

    @classmethod
    def total(cls, tallies: Iterable[Tally]) -> Tally:
        num_documents = num_tokens = 0
        cut, longest = DocumentSample(), None
        without: dict[tuple[str, tuple[str, ...]], DocumentSample] = {}
        for item in tallies:
            num_documents += item.num_documents
            num_tokens += item.num_tokens
            cut += item.cut
            longest = item.longest if longest is None or item.longest is None else max(longest, item.longest)
            for key, sample in item.without.items():
                without[key] = without.get(key, DocumentSample()) + sample
        return cls(num_documents, num_tokens, cut, longest, without)

    def as_json(self) -> dict[str, Any]:
        without = [
            {"reason": reason, "scores": list(names), **asdict(sample)}
            for (reason, names), sample in self.without.items()
        ]
        return {**asdict(self), "without": without}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Tally:
        def sample(item: Mapping[str, Any]) -> DocumentSample:
            return DocumentSample(item["number"], tuple(item["first"]))

        without = {(item["reason"], tuple(item["scores"])): sample(item) for item in value["without"]}
        return cls(value["num_documents"], value["num_tokens"], sample(value["cut"]), value["longest"], without)

    def say(self, dropped: Mapping[str, int], limit: int, tokens: Mapping[str, Mapping[str, str | None]]) -> None:
        """dropped: by reason.   limit: tokens that are read of a document.   tokens: read around each, by model."""
        num_dropped = sum(dropped.values())
        why = f" ({', '.join(f'{reason} {number:,}' for reason, number in dropped.items())})" if num_dropped else ""
        num_read = self.num_documents + num_dropped
        log.info(f"Documents: {num_read:,} read, {self.num_documents:,} kept, {num_dropped:,} dropped{why}.")
        if tokens:
            log.info("Around each text: %s.", tokens_in_words(tokens))
        if self.cut.number:
            log.warning(
                f"{self.cut.number:,} documents are longer than {limit:,} tokens (max_tokens) and were cut there: only "
                f"their beginnings are scored (is_cut in the table): {self.cut}."
            )
        elif self.longest is not None:
            log.info(f"No document is cut: the longest has {self.longest:,} tokens, the limit is {limit:,}.")
        for (reason, names), sample in self.without.items():
            some = "1 document has" if sample.number == 1 else f"{sample.number:,} documents have"
            log.warning("%s no %s: %s (%s).", some, ", ".join(names), reason, sample)
