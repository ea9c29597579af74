"""Requests answered by a local model: through its chat template, or as plain text where it has none or the request
wants it bare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nonmember.models.loading import LoadedModel
from nonmember.models.prompting import PromptParts, encode_prompts
from nonmember.models.reading import position_limit
from nonmember.observations.passes.writing import Writing, WrittenText, write
from nonmember.records.answers import Completion, Request
from nonmember.runtime.compute import MIB, Compute

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
    most = position_limit(loaded.model.config)
    too_long = f"the model reads at most {most} tokens, those to come included, and the question is longer"
    completions = {
        index: Completion("", "failed", reason=too_long)
        for index, (request, ids) in enumerate(zip(requests, prompts, strict=True))
        if most is not None and len(ids) + request.max_new_tokens > most
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
            {str(index): f"{(item := requests[index]).seed}\0{item.doc_id}\0{item.name}" for index in indices},
            working,
            compute.trainer,
            Writing(temperature, max_new_tokens, compute.cache_mib * MIB, top_logprobs),
            description=description,
        )
        completions |= {index: _completion(written[str(index)], len(prompts[index])) for index in indices}
    return [completions[index] for index in range(len(requests))]


def _completion(written: WrittenText, num_prompt_tokens: int) -> Completion:
    return Completion(
        written.text,
        "answered" if written.text.strip() else "empty",
        finish_reason="stop" if written.finished else "length",
        top_logprobs=written.top_logprobs,
        prompt_tokens=num_prompt_tokens,
        completion_tokens=written.num_tokens,
    )
