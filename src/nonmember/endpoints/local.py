"""Requests answered by a local model: through its chat template, or as plain text where it has none or the request
wants it bare; or by a masked
language model, which fills blanks without instructions: the baseline that knows the language but not the works (BERT,
in the paper on name cloze).

Shapes: T tokens, V vocabulary, M blanks of a text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from nonmember.corpora.names import BLANK
from nonmember.endpoints.reading import answer_rows, without_thoughts
from nonmember.models.encoding import token_spans
from nonmember.models.loading import LoadedModel
from nonmember.models.neighbours import masked_model
from nonmember.models.prompting import PromptParts, encode_prompts
from nonmember.models.reading import room_of_masked
from nonmember.models.tokenizing import ids_of
from nonmember.observations.passes.writing import Writing, WrittenText, longest_context, write
from nonmember.records.answers import Completion, Request
from nonmember.runtime.compute import MIB, Compute

if TYPE_CHECKING:
    from nonmember.endpoints.models import MaskedModel

_WORKING = ".asked-{}"  # what was written of the requests of one decoding


def complete_locally(
    loaded: LoadedModel, requests: Sequence[Request], compute: Compute, folder: Path, description: str
) -> list[Completion]:
    """What the model answers, in the order of the requests.

    folder: what an earlier call that was stopped wrote there is kept; it must have had the same requests. A request
    that the model cannot read has failed, with the reason. The draws of a request come from its seed, document and
    name, so an answer depends on no other request.
    """
    prompts = encode_prompts(
        loaded.tokenizer, [PromptParts(item.instruction, item.question, item.as_text, item.bare) for item in requests]
    )
    completions = {
        index: Completion("", "failed", reason=reason)
        for index, (request, ids) in enumerate(zip(requests, prompts, strict=True))
        if (reason := _too_long(loaded.model, request, len(ids)))
    }
    waiting: dict[tuple[float, int, int], list[int]] = {}
    for index, request in enumerate(requests):
        if index not in completions:
            decoding = (request.temperature, request.max_new_tokens, request.top_logprobs)
            waiting.setdefault(decoding, []).append(index)
    for number, ((temperature, max_new_tokens, top_logprobs), indices) in enumerate(waiting.items()):
        working = folder / _WORKING.format(number)
        working.mkdir(exist_ok=True)
        written = write(
            loaded.model,
            loaded.tokenizer,
            {str(index): prompts[index] for index in indices},
            {str(index): _seed(requests[index]) for index in indices},
            working,
            compute.trainer,
            Writing(temperature, max_new_tokens, compute.cache_mib * MIB, top_logprobs),
            description=description,
        )
        completions |= {index: _completion(written[str(index)], len(prompts[index])) for index in indices}
    return [completions[index] for index in range(len(requests))]


def _too_long(model: Any, request: Request, num_tokens: int) -> str:
    """Why the model cannot read it; empty where it can."""
    most = longest_context(model)
    if most is None or num_tokens + request.max_new_tokens <= most:
        return ""
    return f"the model reads at most {most} tokens, those to come included, and the question is longer"


def _seed(request: Request) -> str:
    return f"{request.seed}\0{request.doc_id}\0{request.name}"


def _completion(written: WrittenText, num_prompt_tokens: int) -> Completion:
    return Completion(
        written.text,
        "answered" if written.text.strip() else "empty",
        finish_reason="stop" if written.finished else "length",
        top_logprobs=written.top_logprobs,
        prompt_tokens=num_prompt_tokens,
        completion_tokens=written.num_tokens,
    )


# What is kept in a store --------------------------------------------------------------------------------------------

_SCHEMA = pa.schema(
    [
        ("doc_id", pa.string()),
        ("name", pa.string()),
        ("text", pa.string()),
        ("outcome", pa.string()),
        ("finish_reason", pa.string()),
        ("served_model", pa.string()),
        ("date", pa.string()),
        ("top_logprobs", pa.string()),  # JSON
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("reason", pa.string()),
    ]
)


def save_completions(requests: Sequence[Request], completions: Sequence[Completion], path: Path) -> None:
    rows = [_row(request, completion) for request, completion in zip(requests, completions, strict=True)]
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), path)


def load_completions(path: Path) -> list[Completion]:
    """In the order in which they were saved."""
    return [_of_row(row) for row in pq.read_table(path, schema=_SCHEMA).to_pylist()]


def _row(request: Request, completion: Completion) -> dict[str, Any]:
    values = vars(completion) | {"top_logprobs": json.dumps(completion.top_logprobs)}
    return {"doc_id": request.doc_id, "name": request.name, **values}


def _of_row(row: Mapping[str, Any]) -> Completion:
    """Thoughts are cut off here, so that what earlier versions kept is read alike."""
    kept = {name: value for name, value in row.items() if name not in ("doc_id", "name")}
    top = tuple(tuple((token, value) for token, value in step) for step in json.loads(row["top_logprobs"]))
    completion = Completion(**{**kept, "top_logprobs": top})
    text, has_thoughts, missing = without_thoughts(completion.text, completion.finish_reason)
    if not has_thoughts:
        return completion
    tokens = [step[0][0] for step in top]  # the likeliest, which was written
    begin = "".join(tokens).rfind(text)
    return replace(
        completion,
        text=text,
        outcome="answered" if text else "empty",
        reason=missing,
        has_thoughts=True,
        top_logprobs=answer_rows(top, tokens, begin) if text and begin >= 0 else (),
    )


# Masked language models -----------------------------------------------------------------------------------------------

WORD_BEGINS = ("Ġ", "▁")  # how byte-level and SentencePiece vocabularies mark it; WordPiece marks what goes on
WORD_GOES_ON = "##"


def fill_blanks(spec: MaskedModel, requests: Sequence[Request], device: torch.device) -> list[Completion]:
    """The one word that the model finds likeliest in all blanks of each request's plain text together: the largest sum
    of log-probabilities among the tokens of letters that begin a word.

    A text longer than the model reads is cut to a window around its first blank. Raises ValueError where the model
    cannot be loaded or its tokenizer has no mask.
    """
    tokenizer, model = masked_model(spec.path, spec.revision)
    model.to(device)
    words = _whole_words(tokenizer, model.config.vocab_size)
    candidates_V = torch.tensor(sorted(words), device=device)
    completions = []
    for request in requests:
        text = _around_first_blank(tokenizer, model, request.plain.replace(BLANK, tokenizer.mask_token))
        ids_T = torch.tensor(ids_of(tokenizer, [text])[0], device=device)
        log_probs_V = _of_all_blanks(model, ids_T, ids_T == tokenizer.mask_token_id)[candidates_V]
        word = words[int(candidates_V[log_probs_V.argmax()])]
        completions.append(Completion(word, "answered", served_model=spec.path))
    return completions


@torch.inference_mode()
def _of_all_blanks(model: Any, ids_T: Tensor, is_blank_T: Tensor) -> Tensor:
    """[V] log-probabilities, summed over the blanks."""
    logits_MV = model(input_ids=ids_T[None]).logits[0, is_blank_T]
    sums_V: Tensor = logits_MV.float().log_softmax(-1).sum(dim=0)
    return sums_V


def _whole_words(tokenizer: Any, num_rows: int) -> dict[int, str]:
    """Id -> word, of tokens of two letters or more that begin a word."""
    vocabulary = tokenizer.get_vocab()
    marked = any(token.startswith(WORD_BEGINS) for token in vocabulary)
    words = {}
    for token, index in vocabulary.items():
        begins = token.startswith(WORD_BEGINS) if marked else not token.startswith(WORD_GOES_ON)
        word = token[1:] if marked else token
        if begins and len(word) > 1 and word.isalpha() and index < num_rows:
            words[index] = word
    return words


def _around_first_blank(tokenizer: Any, model: Any, text: str) -> str:
    """Cut to what the model reads; most texts are whole. Byte-level pieces of letters beyond English pass as marks."""
    spans = token_spans(tokenizer)(text)
    room = room_of_masked(tokenizer, model.config) - len(ids_of(tokenizer, [""])[0])
    if len(spans) <= room:
        return text
    blank = text.index(tokenizer.mask_token)
    first = next(index for index, (_, end) in enumerate(spans) if end > blank)
    start = max(0, min(first - room // 2, len(spans) - room))
    return text[spans[start][0] : spans[start + room - 1][1]]
