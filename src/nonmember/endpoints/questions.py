"""What is asked of an endpoint: what it really offers, then completions, scores of texts, probabilities of answers.

Servers may refuse a field, or silently ignore it, so what they offer is probed. What was found is kept with the
endpoint's answers, so that it costs nothing the next time. What was missed is looked for anew in each process before a
method is refused for it.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from nonmember.endpoints.client import EndpointClient, Read, Refused
from nonmember.endpoints.reading import (
    EndpointError,
    Unusable,
    are_log_probabilities,
    listed_tokens,
    read_completion,
    read_prompt_scores,
)
from nonmember.endpoints.service import TOKEN_LIMITS, RequestSettings, Sent, scored_text, sent
from nonmember.endpoints.table import opened
from nonmember.records import Corpus, Prompt, Question, TokenTable
from nonmember.records.answers import Completion, Request
from nonmember.records.requirements import Access
from nonmember.records.tokens import LOG_PROB_FLOOR

log = logging.getLogger(__name__)

UNKNOWN = -1  # token ids, which a server does not tell
ALTERNATIVES = (20, 5, 1)  # what the protocol's chat form allows at most, its older form, and some servers
# Tokens asked for beside the scores of a text. Not 0 at first: llama-cpp-python takes it for as many as fit.
NEW_TOKENS_WITH_ECHO = (1, 0)
PROBE = Request(
    doc_id="",
    name="probe",
    instruction="Answer in one word.",
    question="Which colour has the sky on a clear day?",
    plain="The colour of the sky on a clear day is",
    max_new_tokens=4,
    temperature=0.0,
    seed=0,
)
TEXT = "The quick brown fox jumps over the lazy dog and runs into the forest."
NUM_CHECKED = 4  # written tokens whose scores are compared
HALF = "\N{REPLACEMENT CHARACTER}"
LARGEST_GAP = 1.0  # nats between two scores of one token: ten deviations of a server that calculates in 8 bits
ROOMS = (16, 2048)  # least tokens to be asked for: what some servers want, and what some models think
DRAWN = (
    "{} takes no temperature: its answers are drawn as the service does by default, and would be others if they were "
    "asked for again."
)

IN_WORDS = (
    "{} was asked by its chat route, which cannot continue a bare text: an instruction was put before it, "
    "which can hide what the model read as plain text. Where the server has the completions route, set "
    "form=completions."
)


def require(client: EndpointClient, access: Access, what: str) -> None:
    """Raises EndpointError where the endpoint does not offer what `what` (a method, say) needs."""
    if access >= Access.FULL_LOGITS:
        raise only_answers(access, what, client.name)
    if access >= Access.PROMPT_LOGPROBS:
        new_tokens_with_echo(client, what)
    else:
        settings_for(client)
        if access >= Access.TOP_LOGPROBS:
            most_alternatives(client, what)


def only_answers(access: Access, what: str, name: str) -> EndpointError:
    """For a model whose answers are not enough."""
    needed = "weights and tokenizer" if access >= Access.WEIGHTS else "whole next-token distributions"
    if access <= Access.PROMPT_LOGPROBS:
        needed = "the log-probability of each token of a given text"
    return EndpointError(
        f"{what} needs {needed} of the model, but {name} can only be queried. Choose another method or score, or a "
        "model whose weights are available."
    )


def settings_for(client: EndpointClient) -> RequestSettings:
    """How this service wants its requests; raises EndpointError where it accepts none."""
    settings = RequestSettings(**_offer(client, "settings", _find_settings))
    if not settings.temperature:
        _note(client, DRAWN.format(client.name))
    return settings


def _note(client: EndpointClient, note: str) -> bool:
    """Whether it is new."""
    if is_new := note not in client.notes:
        client.notes.append(note)
    return is_new


def most_alternatives(client: EndpointClient, what: str) -> int:
    """How many alternatives to a token the server gives; raises EndpointError where it gives none."""
    most = int(_offer(client, "alternatives", _find_alternatives, missing=0))
    if not most:
        raise EndpointError(
            f"{what} needs the log-probabilities of the likeliest tokens, and {client.name} answers with text alone: "
            "it refused them, left them out, or gave what cannot be log-probabilities."
        )
    return most


def new_tokens_with_echo(client: EndpointClient, what: str) -> int:
    """How many tokens have to be asked for beside the scores of a text; raises EndpointError where there are none."""
    number = _offer(client, "echo", _find_echo)
    if number is None:
        raise EndpointError(
            f"{what} needs the log-probability of each token of a given text (completions with echo and logprobs), and "
            f"{client.name} does not give it."
        )
    return int(number)


def _offer(client: EndpointClient, name: str, find: Any, *, missing: Any = None) -> Any:
    """From memory, the table or the server; what is missing is kept in memory alone."""
    offers = client.session.offers.setdefault(client.endpoint, {})
    if name not in offers:
        kept_as = client.endpoint.finding(name)
        with opened(client.folder) as table:
            offer = table.finding(kept_as)
        if offer is None:
            offer = find(client)
            if offer != missing:
                with opened(client.folder) as table:
                    table.remember(kept_as, offer)
        offers[name] = offer
    return offers[name]


def _find_settings(client: EndpointClient) -> dict[str, Any]:
    """By trying: as plain requests are, then with all left out that a service may refuse, and each taken back in."""
    service = client.endpoint
    settings = service.settings()
    if isinstance(refused := _asked(client, PROBE, settings), Refused):
        settings = _sparing_settings(client, refused)
        for name, value in {"temperature": True, "seed": True, "system": True, "min_output_tokens": 0}.items():
            more = replace(settings, **{name: value, **service.request_settings})
            if more != settings and not isinstance(_asked(client, PROBE, more), Refused):
                settings = more
    return asdict(settings)


def _sparing_settings(client: EndpointClient, refused: Refused) -> RequestSettings:
    """With which a question is accepted; raises EndpointError where there are none."""
    without = {"temperature": False, "seed": False, "system": False}
    for room in ROOMS if refused.status != 403 else ():
        for name in TOKEN_LIMITS:
            tried = client.endpoint.settings(token_limit=name, min_output_tokens=room, **without)
            if not isinstance(_asked(client, PROBE, tried), Refused):
                return tried
    hints = {
        403: f"The secret in {client.endpoint.key_variable} may lack the right to use this model.",
        404: "Correct `model`, `form` or `url`, which goes up to and including /v1.",
    }
    raise EndpointError(
        f"{client.name} does not accept a plain question: {refused.reason.rstrip('.')}. {hints.get(refused.status, '')}"
    )


def _find_alternatives(client: EndpointClient) -> int:
    for number in ALTERNATIVES:
        answer = _asked(client, replace(PROBE, top_logprobs=number), settings_for(client))
        if isinstance(answer, Completion) and answer.top_logprobs:
            if not all(are_log_probabilities(row, min(2, number)) for row in answer.top_logprobs):
                return 0
            # The older form lists by text, so of two tokens that read the same one is missing.
            chat = client.endpoint.form == "chat"
            return min(number, max(map(len, answer.top_logprobs))) if chat else number
    return 0


def _find_echo(client: EndpointClient) -> int | None:
    def read(_: Sent, response: Mapping[str, Any], date: str) -> list[float]:
        scores = read_prompt_scores(response, TEXT, number)
        if len(scores) < 2:
            raise Unusable("the text has more tokens")
        return scores

    for number in NEW_TOKENS_WITH_ECHO:
        if not isinstance(client.probe(scored_text(client.endpoint, TEXT, number, echo=True), read), Refused):
            _check_alignment(client, number)
            return number
    return None


def _check_alignment(client: EndpointClient, number: int) -> None:
    """Raises EndpointError where the scores of a text are not those with which the server wrote its tokens: where they
    stand beside the wrong tokens, say, which the scores alone do not show."""

    def asked(item: Sent) -> list[tuple[str, float]]:
        answer = client.probe(item, lambda _, response, date: listed_tokens(response))
        return [] if isinstance(answer, Refused) else answer

    # Where text that was written is read as other tokens, or holds half characters, nothing can be compared.
    before = [token for token, _ in asked(scored_text(client.endpoint, TEXT, number, echo=True))]
    written = asked(scored_text(client.endpoint, TEXT, max(NUM_CHECKED, number), echo=False))
    tokens = [token for token, _ in written]
    scored = asked(scored_text(client.endpoint, TEXT + "".join(tokens), number, echo=True))
    for start in (len(before) - 1, len(before)):  # one was written beside the text's own, and is listed or not
        there = scored[start : start + len(written)]
        same_tokens = [token for token, _ in scored[: start + len(written)]] == [*before[:start], *tokens]
        if written and same_tokens and HALF not in "".join(tokens):
            gap, item, other = max((abs(a - b), a, b) for (_, a), (_, b) in zip(written, there, strict=True))
            if gap > LARGEST_GAP:
                raise EndpointError(
                    f"{client.name} gives scores of a text that are not its own: a token that it wrote with "
                    f"log-probability {item:.2f} it scores {other:.2f}. Ask another server, or a model whose weights "
                    "are available."
                )
            return


def _asked(client: EndpointClient, request: Request, settings: RequestSettings) -> Completion | Refused:
    item = sent(client.endpoint, request, settings)
    return client.probe(item, _reader(client, {item.key} if request.top_logprobs else ()))


def _reader(client: EndpointClient, with_logprobs: Collection[str]) -> Read[Completion]:
    """Reads completions.   with_logprobs: keys of those of which log-probabilities were asked for."""

    def read(item: Sent, response: Mapping[str, Any], date: str) -> Completion:
        needs_logprobs, keep = item.key in with_logprobs, client.endpoint.thinking == "keep"
        return read_completion(response, date, needs_logprobs=needs_logprobs, keep_thoughts=keep)

    return read


def completions(client: EndpointClient, requests: Sequence[Request]) -> list[Completion]:
    """One per request, in their order; those that the server did not accept have failed, with its reason.

    Raises EndpointError where it accepts none, and where it does not give the log-probabilities that are asked for.
    """
    if not requests:
        return []
    settings = settings_for(client)
    number = max(request.top_logprobs for request in requests)
    if number and number > (most := most_alternatives(client, "This question")):
        raise EndpointError(
            f"This question needs the log-probabilities of the {number} likeliest tokens, and {client.name} gives at "
            f"most {most}. Ask for fewer."
        )
    if client.endpoint.form == "chat" and any(request.bare for request in requests):
        _note(client, IN_WORDS.format(client.name))
    wanted = [sent(client.endpoint, request, settings) for request in requests]
    with_logprobs = {item.key for item, request in zip(wanted, requests, strict=True) if request.top_logprobs}
    answers = client.exchange(wanted, _reader(client, with_logprobs), f"asking {client.endpoint.model}")
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
    wanted = {doc_id: scored_text(client.endpoint, text, number, echo=True) for doc_id, text in text_of.items()}
    by_key = {item.key: text_of[doc_id] for doc_id, item in wanted.items()}

    def read(item: Sent, response: Mapping[str, Any], date: str) -> list[float]:
        return read_prompt_scores(response, by_key[item.key], number)

    listed = client.exchange([*wanted.values()], read, f"scoring by {client.endpoint.model}")
    _need_some(client, listed)
    answers = dict(zip(wanted, listed, strict=True))
    reasons: dict[str, str] = {}
    for doc_id, answer in answers.items():
        if isinstance(answer, Refused) and answer.status:
            raise EndpointError(
                f"{client.name} does not score the document {doc_id!r} ({answer.reason}). If it is too long, cut the "
                "documents (cleaning.max_words, say) or leave it out."
            )
        if isinstance(answer, Refused):
            reasons[doc_id] = f"the server's answer cannot be used: {answer.reason}"
    found = [answers.get(doc_id, []) for doc_id in shown.doc_ids]
    rows = [[] if isinstance(row, Refused) else row[: max_tokens - 1] for row in found]
    if number := sum(value == LOG_PROB_FLOOR for row in rows for value in row):
        note = (
            f"To {number:,} of {sum(map(len, rows)):,} tokens {client.name} gives a probability of 0; their "
            f"log-probability is taken as {LOG_PROB_FLOOR:g}, as for models with weights."
        )
        if _note(client, note):
            log.warning("%s", note)
    return replace(_table(shown.doc_ids, rows), reasons=reasons)


def answer_probabilities(client: EndpointClient, documents: Corpus, max_tokens: int, question: Question) -> TokenTable:
    """One row per answer of the question about each document, none where the server gave no probabilities.

    The probability of an answer that is not among the listed tokens is taken as 0, the least that it can be; how often
    that was so is noted with the client.

    An answer is the listed token of that very text, white space aside, the likeliest where there are several.
    A tokenizer is not at hand, so texts cannot be cut; one that is certainly too long is refused.
    """
    number = most_alternatives(client, "The probability of an answer")
    decoding: dict[str, Any] = {"max_new_tokens": 1, "temperature": 0.0, "seed": 0, "top_logprobs": number}
    requests = requests_about(documents, question, client.name, max_tokens, name="answer", **decoding)
    rows, num_absent = [], 0
    for answer in completions(client, requests):
        listed = answer.top_logprobs[0] if answer.top_logprobs and answer.outcome != "refused" else ()
        chances = ([chance for token, chance in listed if token.strip() == item] for item in question.answers)
        rows.append([max(found, default=-math.inf) for found in chances] if listed else [])
        num_absent += sum(map(math.isinf, rows[-1]))
    if num_absent:
        client.notes.append(
            f"In {num_absent:,} of {sum(map(len, rows)):,} cases an answer was not among the {number} tokens that "
            f"{client.name} lists; its probability is then taken as 0, the least that it can be."
        )
    return _table(documents.doc_ids, rows)


def requests_about(corpus: Corpus, prompt: Prompt, model: str, max_tokens: int, **further: Any) -> list[Request]:
    """The prompt about each document. Raises ValueError where one has more words than `max_tokens`.   model: its name.
    further: fields of the requests."""
    for document in corpus.documents:
        if (num_words := len(document.text.split())) > max_tokens:
            raise ValueError(
                f"The document {document.doc_id!r} has {num_words} words and max_tokens is {max_tokens}, but the "
                f"tokenizer of {model} is not available to cut it. Cut the documents (cleaning.max_words, say), or "
                "raise max_tokens."
            )
    return [
        Request(doc_id=item.doc_id, instruction=prompt.instruction, question=prompt.request(item.text), **further)
        for item in corpus.documents
    ]


def _need_some(client: EndpointClient, answers: Sequence[object]) -> None:
    refused = Counter(answer.reason for answer in answers if isinstance(answer, Refused))
    if answers and sum(refused.values()) == len(answers):
        with opened(client.folder) as table:
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
