"""Look-up in the corpora that the infini-gram service has indexed (Liu et al., 2024): how often does a text occur?

Its corpora are cut into tokens as they stand, so texts are sent as they stand: 13 words in a row of one line, with the
white space between them. What begins a line behind another one is cut otherwise there than alone, and is left out.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from nonmember.artifacts import Builder
from nonmember.checks import Count, require_text
from nonmember.endpoints.client import EndpointClient, Refused, Session
from nonmember.endpoints.service import Sent, Service
from nonmember.endpoints.table import CompletionRow
from nonmember.lookup.base import NGRAM, Lookup, Overlaps
from nonmember.records import Corpus

log = logging.getLogger(__name__)

URL = "https://api.infini-gram.io"
KEY_VARIABLE = "INFINIGRAM_API_KEY"  # the public service wants none
NO_LINE = f"no line with {NGRAM} words in a row"
LARGEST_COUNT = 2**63


@dataclass(frozen=True)
class CountingService(Service):
    """The service; `model` is the name of the index."""

    protocol: ClassVar[str] = "infini-gram's"

    def has_answer(self, response: Mapping[str, Any], sent: Sent) -> bool:
        return "count" in response


class CountingClient(EndpointClient):
    """Budget, pace, retries and the table of answers are those of endpoints."""

    def row(self, sent: Sent, text: str, response: Mapping[str, Any], date: str, cost: float | None) -> CompletionRow:
        count = str(_count(sent, response, date))
        return CompletionRow(
            sent.key, sent.as_json, text, "answered", count, "stop", self.endpoint.model, "", date, 0, 0, cost
        )


@dataclass(frozen=True)
class InfiniGram(Lookup):
    """The public service, or another one of its protocol.

    Attributes:
        index: Of the service, such as v4_piletrain_llama.
        per_document: Most sequences of 13 words of each document that are asked about, spread evenly over it.
        url: Of the service.

    Source: Liu et al., 2024 (arXiv 2401.17377); https://infini-gram.readthedocs.io, API Endpoint.
    """

    index: str
    per_document: Annotated[int, Count(1)] = 8
    url: str = URL

    def __post_init__(self) -> None:
        require_text(self.index, "lookup.infinigram.index", hint="The service lists its indexes on its pages.")
        super().__post_init__()
        self._service()  # which checks the address

    @property
    def readable(self) -> str:
        return f"infini-gram {self.index}"

    def key(self) -> dict[str, Any]:
        return {"infinigram": self.index, "url": self._service().address, "per_document": self.per_document}

    def overlaps(self, builder: Builder, documents: Corpus) -> Overlaps:
        """Documents' text is sent to the service, as a warning says. Raises ValueError where it answers nothing."""
        service = self._service()
        sequences = [self.sequences(document.text) for document in documents.documents]
        wanted = [self._sent(service, text) for texts in sequences for text in texts]
        log.warning(
            "%d sequences of %d words, of %d documents, are sent to %s, those aside that were answered before.",
            len(wanted),
            NGRAM,
            len(documents),
            service.address,
        )
        session = builder.memory.shared(Session)
        client = builder.resource(self, lambda: CountingClient(service, builder.store, builder.asking, session))
        answers = client.exchange(wanted, _count, f"looking up in {self.readable}")
        refused = [item.reason for item in answers if isinstance(item, Refused)]
        if wanted and len(refused) == len(wanted):
            raise ValueError(
                f"{self.readable} at {service.address} answered none of {len(wanted)} questions, the first because: "
                f"{refused[0]}. Correct lookup.infinigram.index, or try again later."
            )
        counts = iter(answers)
        of_documents = [[next(counts) for _ in texts] for texts in sequences]
        known = [[item for item in items if not isinstance(item, Refused)] for items in of_documents]
        reasons = {
            document.doc_id: "no question about it was answered" if texts else NO_LINE
            for document, texts, items in zip(documents.documents, sequences, known, strict=True)
            if not items
        }
        found = [sum(count > 0 for count in items) for items in known]
        return Overlaps(documents.doc_ids, np.array([*map(len, known)]), np.array(found), reasons)

    def sequences(self, text: str) -> list[str]:
        """What is asked about: no two overlap."""
        found = list(_sequences(text))
        chosen = np.unique(np.linspace(0, len(found) - 1, min(len(found), self.per_document)).round().astype(int))
        return [found[index] for index in chosen]

    def _service(self) -> CountingService:
        return CountingService(self.url, self.index, "completions", KEY_VARIABLE)

    def _sent(self, service: Service, text: str) -> Sent:
        return Sent(service.address, "", {"index": self.index, "query_type": "count", "query": text})


def _sequences(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines()):
        words = list(re.finditer(r"\S+", line))[1 if number else 0 :]
        for first in range(0, len(words) - NGRAM + 1, NGRAM):
            yield line[words[first].start() : words[first + NGRAM - 1].end()]


def _count(sent: Sent, response: Mapping[str, Any], date: str) -> int:
    count = response["count"]
    if type(count) is not int or not 0 <= count < LARGEST_COUNT:
        raise ValueError(f"a count must be a whole number; got {count!r}")
    return count
