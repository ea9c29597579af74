"""Models that are asked: behind an endpoint, and recorded answers in a model's place.

What the columns of a table of recorded answers are called is said by `Recorded.columns`, in these names. Each stands
for a column, or for a pattern in which columns stand in braces ("{book}, passage {passage}"):

    doc_id, name     of the question that the row answers: `Request.doc_id` and `Request.name`
    prompt_sha256    in place of these two: the hash of its text, as `prompt_hash` makes it
    text             the answer; empty where there was none. A document without any answer was not asked about
    p(X)             the probability of X as the first token of the answer, as p(A), p(B), ...; any number of them
    served_model, date    who answered, and when; may be absent
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from nonmember.artifacts import Builder
from nonmember.checks import require_text
from nonmember.corpora.sources.columns import Pattern
from nonmember.corpora.sources.documents import table_files, table_rows
from nonmember.corpora.sources.rows import Row
from nonmember.corpora.specs import digest_file
from nonmember.endpoints import questions
from nonmember.endpoints.client import EndpointClient, Session
from nonmember.endpoints.reading import plain_token, without_thoughts
from nonmember.endpoints.service import Service
from nonmember.models.base import ModelSpec, last_part
from nonmember.records import Corpus, Question, TokenTable
from nonmember.records.answers import Completion, Request
from nonmember.records.requirements import Access

log = logging.getLogger(__name__)

NO_ROW = "no answer to it is recorded"
NO_PROBABILITIES = "of the answer to it no probabilities are recorded"
NOT_ASKED = "all answers about its document are empty: it was not asked about"
PLAIN = ("doc_id", "name", "prompt_sha256", "text", "served_model", "date")

T = TypeVar("T")


@dataclass(frozen=True)
class Endpoint(Service, ModelSpec):
    """A model behind a server of OpenAI's protocol; its fields are those of `Service`."""

    has_weights: ClassVar[bool] = False

    @property
    def readable(self) -> str:
        return last_part(self.model)

    def recipe(self) -> dict[str, Any]:
        return asdict(self)

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"endpoint": {"url": self.address, "model": self.model, "form": self.form, **self.extras}}

    def require(self, builder: Builder, access: Access, what: str) -> None:
        self._ask(builder, lambda client: questions.require(client, access, what))

    def complete(self, builder: Builder, requests: Sequence[Request]) -> list[Completion]:
        return self._ask(builder, lambda client: questions.completions(client, requests))

    def token_table(self, builder: Builder, shown: Corpus, max_tokens: int) -> TokenTable:
        return self._ask(builder, lambda client: questions.observations(client, shown, max_tokens))

    def answer_table(self, builder: Builder, shown: Corpus, question: Question, max_tokens: int) -> TokenTable:
        return self._ask(builder, lambda client: questions.answer_probabilities(client, shown, max_tokens, question))

    def _ask(self, builder: Builder, ask: Callable[[EndpointClient], T]) -> T:
        session = builder.memory.shared(Session)
        client = builder.resource(self, lambda: EndpointClient(self, builder.store, builder.asking, session))
        asked, reused = client.num_asked, client.num_found
        try:
            return ask(client)
        finally:
            builder.counters.answers_asked += client.num_asked - asked
            builder.counters.answers_found += client.num_found - reused


@dataclass(frozen=True)
class Recorded(ModelSpec):
    """Answers that a model gave elsewhere, in a file that takes its place."""

    path: Annotated[str, require_text]  # of a CSV, JSON Lines or Parquet table
    model: Annotated[str, require_text]  # whose answers are read from it
    columns: Mapping[str, str] = field(default_factory=dict)  # what the columns are called, by the names of that module

    fields_called = "{field} of recorded answers"
    has_weights: ClassVar[bool] = False
    answers_by_name: ClassVar[bool] = True

    @property
    def readable(self) -> str:
        return last_part(self.model)

    def recipe(self) -> dict[str, Any]:
        return asdict(self)

    def validate(self) -> None:
        table_files([self.path])

    def key(self, builder: Builder) -> dict[str, Any]:
        """The file by its content, wherever it lies."""
        return {"recorded": {"file": digest_file(self._file), "model": self.model, "columns": dict(self.columns)}}

    def require(self, builder: Builder, access: Access, what: str) -> None:
        if access >= Access.PROMPT_LOGPROBS:
            raise questions.only_answers(access, what, self.readable)

    @property
    def _file(self) -> Path:
        files = table_files([self.path])
        if len(files) > 1:
            raise ValueError(f"Expected one table of answers at {self.path}, but {len(files)} files match; name one.")
        return files[0]

    def complete(self, builder: Builder, requests: Sequence[Request]) -> list[Completion]:
        """The recorded answers to the requests, in their order. One without a row, or about a document without any
        answer, has failed; rows of other questions are passed over.

        Raises ValueError for a file or a column that is not there, two different answers to one question, and where
        none of the requests is answered.
        """
        path, columns = self._file, Columns.of(self.columns)
        if any(request.top_logprobs for request in requests) and not columns.probabilities:
            raise ValueError(
                f"The probabilities of alternatives are wanted, and no columns of {path} are named that hold them: add "
                "p(A), p(B) and so on to `columns` of the recorded model, or read answers as text."
            )
        status = path.stat()
        recorded = _recorded(path, status.st_mtime_ns, status.st_size, tuple(sorted(self.columns.items())))
        wanted = [columns.key_of_request(request) for request in requests]
        num_found = sum(key in recorded for key in wanted)
        if wanted and not num_found:
            raise ValueError(
                f"{path} answers none of the {len(wanted)} questions: the first is {wanted[0]!r}, and the first "
                f"of {len(recorded)} answers is to {next(iter(recorded), None)!r}. Correct `columns` of the recorded "
                "model."
            )
        log.info("%s: %d of %d questions are answered.", path.name, num_found, len(wanted))
        found = [recorded.get(key, Completion("", "failed", reason=NO_ROW)) for key in wanted]
        return _without_unasked(requests, [_as_wanted(*pair) for pair in zip(requests, found, strict=True)])


def _as_wanted(request: Request, found: Completion) -> Completion:
    """Where probabilities are wanted they are the answer, with or without a text, and a text without them is none."""
    if not request.top_logprobs:
        return found
    if found.top_logprobs:
        return replace(found, outcome="answered", reason="")
    return Completion("", "failed", reason=NO_PROBABILITIES) if found.outcome == "answered" else found


def _without_unasked(requests: Sequence[Request], completions: Sequence[Completion]) -> list[Completion]:
    """An empty answer is wrong where the document has others; where it has none, nobody asked."""
    both = list(zip(requests, completions, strict=True))
    asked = {request.doc_id for request, item in both if item.outcome == "answered" or item.top_logprobs}
    return [
        Completion("", "failed", reason=NOT_ASKED) if item.outcome == "empty" and request.doc_id not in asked else item
        for request, item in both
    ]


@lru_cache(maxsize=1)  # the groups of an audit are asked one after the other
def _recorded(path: Path, modified: int, size: int, named: tuple[tuple[str, str], ...]) -> dict[Hashable, Completion]:
    """What all rows answer; read again only when the file's size or time of change moves."""
    columns = Columns.of(dict(named))
    answers: dict[Hashable, Completion] = {}
    for where, row in table_rows(path):
        key, completion = columns.key_of_row(row, where), columns.completion(row, where)
        if answers.setdefault(key, completion) != completion:
            raise ValueError(f"{where} answers {key!r} otherwise than a row before it; leave one of them out.")
    return answers


def prompt_hash(request: Request) -> str:
    """Of the text of a request: instruction and question with a blank line between, or its plain form."""
    return hashlib.sha256(request.as_text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Columns:
    patterns: Mapping[str, Pattern]  # name of a column as above -> pattern of its value
    probabilities: Mapping[str, Pattern]  # token -> the same

    @classmethod
    def of(cls, names: Mapping[str, str]) -> Columns:
        named = {name: plain_token(match[1]) for name in names if (match := re.fullmatch(r"p\((.+)\)", name))}
        if unknown := [name for name in names if name not in PLAIN and name not in named]:
            raise ValueError(
                f"columns of a recorded model must be among {', '.join(PLAIN)} and p(TOKEN); got {unknown[0]!r}."
            )
        by_prompt = "prompt_sha256" in names
        given = {name: name for name in (("text",) if by_prompt else ("doc_id", "name", "text"))} | dict(names)
        patterns = {name: Pattern(item if "{" in item else f"{{{item}}}") for name, item in given.items()}
        return cls(
            {name: item for name, item in patterns.items() if name in PLAIN},
            {token: patterns[name] for name, token in named.items()},
        )

    def key_of_request(self, request: Request) -> Hashable:
        return prompt_hash(request) if "prompt_sha256" in self.patterns else (request.doc_id, request.name)

    def key_of_row(self, row: Row, where: str) -> Hashable:
        if "prompt_sha256" in self.patterns:
            return self._value("prompt_sha256", row, where).lower()
        return self._value("doc_id", row, where), self._value("name", row, where)

    def completion(self, row: Row, where: str) -> Completion:
        text, has_thoughts, missing = without_thoughts(self._value("text", row, where), "")
        pairs = [(token, _log(pattern.filled(row, where), where)) for token, pattern in self.probabilities.items()]
        first = tuple(sorted((pair for pair in pairs if pair[1] > -math.inf), key=lambda pair: -pair[1]))
        return Completion(
            text,
            "answered" if text.strip() else "empty",
            served_model=self._value("served_model", row, where),
            date=self._value("date", row, where),
            reason=missing,
            has_thoughts=has_thoughts,
            top_logprobs=(first,) if first else (),
        )

    def _value(self, name: str, row: Row, where: str) -> str:
        pattern = self.patterns.get(name)
        return "" if pattern is None else pattern.filled(row, where)


def _log(text: str, where: str) -> float:
    """Of a probability as it is written; of none, minus infinity."""
    try:
        probability = float(text or 0)
    except ValueError:
        probability = math.nan
    if not 0 <= probability <= 1:
        raise ValueError(f"{where}: a probability must be a number in [0, 1]; got {text!r}.")
    return math.log(probability) if probability else -math.inf
