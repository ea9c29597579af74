"""Endpoint answers as the project's records: completions, token tables, written texts."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nonmember.endpoints.capabilities import check_alternatives, most_alternatives, new_tokens_with_echo, settings_for
from nonmember.endpoints.endpoint import EndpointClient, Refused
from nonmember.endpoints.errors import EndpointError
from nonmember.endpoints.reading import read_completion, read_prompt_scores
from nonmember.endpoints.service import Sent, echoed, sent
from nonmember.records import Corpus, Prompt, Question, TokenTable
from nonmember.records.answers import Completion, Request
from nonmember.records.tokens import LOG_PROB_FLOOR

log = logging.getLogger(__name__)

UNKNOWN = -1  # token ids, which a server does not tell


def completions(client: EndpointClient, requests: Sequence[Request]) -> list[Completion]:
    """One per request, in their order; those that the server did not accept have failed, with its reason.

    Raises EndpointError where it accepts none, and where it does not give the log-probabilities that are asked for.
    """
    if not requests:
        return []
    settings = settings_for(client)
    if most := max(request.top_logprobs for request in requests):
        check_alternatives(client, most, "This question")
    wanted = [sent(client.endpoint, request, settings) for request in requests]
    with_logprobs = {one.key for one, request in zip(wanted, requests, strict=True) if request.top_logprobs}

    def read(one: Sent, response: Mapping[str, Any], date: str) -> Completion:
        needs_logprobs, keep = one.key in with_logprobs, client.endpoint.thinking == "keep"
        return read_completion(response, date, needs_logprobs=needs_logprobs, keep_thoughts=keep)

    answers = client.exchange(wanted, read, f"asking {client.endpoint.model}")
    _need_some(client, answers)
    return [
        Completion("", "failed", reason=answer.reason) if isinstance(answer, Refused) else answer for answer in answers
    ]


def observations(client: EndpointClient, shown: Corpus, max_tokens: int) -> TokenTable:
    """The log-probability of each token of the documents, of their first `max_tokens` tokens.

    What comes later in a text changes nothing about its beginning, so a text is sent whole and the scores are cut, in
    the server's own tokens. Mean and standard deviation stay unknown (NaN), and so do token ids (-1). A document whose
    numbers cannot be log-probabilities has no rows and a reason; how many tokens have a probability of 0 is noted.
    """
    number = new_tokens_with_echo(client, "An observation")
    text_of = {document.doc_id: document.text for document in shown.documents if document.text}
    wanted = {doc_id: echoed(client.endpoint, text, number) for doc_id, text in text_of.items()}
    by_key = {one.key: text_of[doc_id] for doc_id, one in wanted.items()}

    def read(one: Sent, response: Mapping[str, Any], date: str) -> list[float]:
        return read_prompt_scores(response, by_key[one.key], number)

    answers = dict(
        zip(wanted, client.exchange([*wanted.values()], read, f"observing {client.endpoint.model}"), strict=True)
    )
    _need_some(client, [*answers.values()])
    reasons: dict[str, str] = {}
    for doc_id, answer in answers.items():
        if isinstance(answer, Refused) and answer.status:
            raise EndpointError(
                f"{client.name} does not score the document {doc_id!r} ({answer.reason}). If it is too long, cut the "
                "documents (cleaning.max_words, say) or leave it out."
            )
        if isinstance(answer, Refused):
            reasons[doc_id] = f"the server's answer is of no use: {answer.reason}"
    found = [answers.get(doc_id, []) for doc_id in shown.doc_ids]
    rows = [[] if isinstance(row, Refused) else row[: max_tokens - 1] for row in found]
    _note_floored(client, rows)
    return replace(_table(shown.doc_ids, rows), reasons=reasons)


def _note_floored(client: EndpointClient, rows: Sequence[Sequence[float]]) -> None:
    if number := sum(value == LOG_PROB_FLOOR for row in rows for value in row):
        note = (
            f"To {number:,} of {sum(map(len, rows)):,} tokens {client.name} gives a probability of 0; their "
            f"log-probability is taken as {LOG_PROB_FLOOR:g}, as for models with weights."
        )
        if note not in client.notes:
            client.notes.append(note)
            log.warning("%s", note)


def answer_probabilities(client: EndpointClient, documents: Corpus, max_tokens: int, question: Question) -> TokenTable:
    """One row per answer of the question about each document, none where the server gave no probabilities.

    The probability of an answer that is not among the listed tokens is taken as 0, the least that it can be; how often
    that was so is noted with the client.

    An answer is the listed token of that very text, white space aside, the likeliest where there are several.
    A tokenizer is not at hand, so texts cannot be cut; one that is certainly too long is refused.
    """
    number = most_alternatives(client, "The probability of an answer")
    requests = [
        Request(
            doc_id=document.doc_id,
            name="answer",
            instruction=question.instruction,
            question=question.request(_not_too_long(client.name, document.doc_id, document.text, max_tokens)),
            max_new_tokens=1,
            temperature=0.0,
            seed=0,
            top_logprobs=number,
        )
        for document in documents.documents
    ]
    rows, num_absent = [], 0
    for answer in completions(client, requests):
        listed = answer.top_logprobs[0] if answer.top_logprobs and answer.outcome != "refused" else ()
        chances = [_chance_of(item, listed) for item in question.answers] if listed else []
        num_absent += sum(math.isinf(chance) for chance in chances)
        rows.append(chances)
    if num_absent:
        client.notes.append(
            f"In {num_absent:,} of {sum(map(len, rows)):,} cases an answer was not among the {number} tokens that "
            f"{client.name} lists; its probability is then taken as 0, the least that it can be."
        )
    return _table(documents.doc_ids, rows)


def writing_requests(
    model: str, base: Corpus, prompt: Prompt, *, max_tokens: int, max_new_tokens: int, temperature: float, seed: int
) -> list[Request]:
    """One request per document: write on `prompt`. Documents of more than `max_tokens` words are refused."""
    return [
        Request(
            doc_id=document.doc_id,
            name="written",
            instruction=prompt.instruction,
            question=prompt.request(_not_too_long(model, document.doc_id, document.text, max_tokens)),
            max_new_tokens=max_new_tokens,
            temperature=temperature,
            seed=seed,
        )
        for document in base.documents
    ]


def written_corpus(base: Corpus, answers: Sequence[Completion]) -> Corpus:
    """The documents with what was written about them; those about which nothing was are dropped, by outcome."""
    both = list(zip(base.documents, answers, strict=True))
    kept = tuple(replace(document, text=answer.text) for document, answer in both if answer.outcome == "answered")
    dropped = Counter(f"written: {answer.outcome}" for _, answer in both if answer.outcome != "answered")
    return Corpus(kept, dict(sorted(dropped.items())))


def _chance_of(answer: str, listed: Sequence[tuple[str, float]]) -> float:
    return max((chance for token, chance in listed if token.strip() == answer), default=-math.inf)


def _not_too_long(name: str, doc_id: str, text: str, max_tokens: int) -> str:
    if (num_words := len(text.split())) > max_tokens:
        raise ValueError(
            f"The document {doc_id!r} has {num_words} words and max_tokens is {max_tokens}, but the tokenizer of "
            f"{name} is not at hand to cut it. Cut the documents (cleaning.max_words, say), or raise max_tokens."
        )
    return text


def _need_some(client: EndpointClient, answers: Sequence[object]) -> None:
    refused = Counter(answer.reason for answer in answers if isinstance(answer, Refused))
    if answers and sum(refused.values()) == len(answers):
        with client.table() as table:
            table.forget_findings()  # it may be another server by now
        (reason, _), *_ = refused.most_common(1)
        raise EndpointError(f"{client.name} accepts none of {len(answers)} requests: {reason}.")


def _table(doc_ids: Sequence[str], rows: Sequence[Sequence[float]]) -> TokenTable:
    lengths = [len(row) for row in rows]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    unknown = np.full(offsets[-1], np.nan, np.float32)
    return TokenTable(
        doc_ids=tuple(doc_ids),
        offsets=offsets,
        position=np.array([index for length in lengths for index in range(1, length + 1)], np.int32),
        token_id=np.full(offsets[-1], UNKNOWN, np.int32),
        log_prob=np.array([value for row in rows for value in row], np.float32),
        mean=unknown,
        std=unknown.copy(),
    )
