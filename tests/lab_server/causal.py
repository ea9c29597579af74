"""A real causal language model in OpenAI's form, as far as the protocol's older servers go.

Completions: echo, logprobs, max_tokens 0, lists of prompts and of token ids, seeds. Chat: logprobs and top_logprobs.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from lab_server.app import Refusal


class CausalMind:
    def __init__(self, folder: str) -> None:
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
        texts = [self._tokenizer.decode([token]) for token in range(self._model.config.vocab_size)]
        self._half = torch.tensor(["\ufffd" in text for text in texts])
        self._most = self._model.config.get_text_config().max_position_embeddings

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        prompts = body["prompt"]
        if isinstance(prompts, str) or (prompts and isinstance(prompts[0], int)):
            prompts = [prompts]
        choices, num_prompt, num_new = [], 0, 0
        for index, prompt in enumerate(prompts):
            ids = self._tokenizer(prompt)["input_ids"] if isinstance(prompt, str) else list(prompt)
            new = self._written(ids, body, int(body.get("max_tokens", 16)))
            num_prompt, num_new = num_prompt + len(ids), num_new + len(new)
            shown = [*ids, *new] if body.get("echo") else new
            choice: dict[str, Any] = {
                "index": index,
                "text": self._tokenizer.decode(shown),
                "finish_reason": "length",
                "logprobs": None,
            }
            if body.get("logprobs") is not None:
                choice["logprobs"] = self._legacy(ids, new, bool(body.get("echo")), int(body["logprobs"]))
                if body.get("shifted"):
                    choice["logprobs"] = self._shifted(choice["logprobs"], [*ids, *new])
            choices.append(choice)
        return {"object": "text_completion", "choices": choices, "usage": _usage(num_prompt, num_new)}

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        turns = body["messages"]
        if getattr(self._tokenizer, "chat_template", None):
            text = self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        else:
            text = "\n\n".join(turn["content"] for turn in turns)
        ids = self._tokenizer(text)["input_ids"]
        new = self._written(ids, body, int(body.get("max_tokens", 16)))
        message = {"role": "assistant", "content": self._tokenizer.decode(new), "refusal": None}
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "length", "logprobs": None}
        if body.get("logprobs"):
            number = int(body.get("top_logprobs") or 0)
            rows = self._logprobs([*ids, *new])
            choice["logprobs"] = {
                "content": [
                    {
                        "token": self._tokenizer.decode([token]),
                        "logprob": float(rows[len(ids) + index - 1][token]),
                        "bytes": None,
                        "top_logprobs": [
                            {"token": name, "logprob": value, "bytes": None}
                            for name, value in self._top(rows[len(ids) + index - 1], number)
                        ],
                    }
                    for index, token in enumerate(new)
                ]
            }
        return {"object": "chat.completion", "choices": [choice], "usage": _usage(len(ids), len(new))}

    def _legacy(self, ids: list[int], new: list[int], echo: bool, number: int) -> dict[str, Any]:
        whole = [*ids, *new]
        rows = self._logprobs(whole)
        first = 0 if echo else len(ids)
        tokens = [self._tokenizer.decode([token]) for token in whole]
        offsets = [sum(map(len, tokens[:index])) for index in range(len(tokens))]
        known = range(first, len(whole))
        return {
            "tokens": tokens[first:],
            "token_logprobs": [float(rows[index - 1][whole[index]]) if index else None for index in known],
            "top_logprobs": [dict(self._top(rows[index - 1], number)) if index else None for index in known],
            "text_offset": offsets[first:],
        }

    def _shifted(self, listed: dict[str, Any], ids: list[int]) -> dict[str, Any]:
        """Each token scored by what is likely after it; the last as the one before."""
        rows = self._logprobs(ids)
        values = [float(rows[index][token]) if index else None for index, token in enumerate(ids[:-1])]
        return {**listed, "token_logprobs": [*values, values[-1]]}

    def _top(self, row: torch.Tensor, number: int) -> list[tuple[str, float]]:
        values, tokens = row.topk(number)
        return [
            (self._tokenizer.decode([token]), value)
            for token, value in zip(tokens.tolist(), values.tolist(), strict=True)
        ]

    @torch.inference_mode()
    def _logprobs(self, ids: list[int]) -> torch.Tensor:
        if len(ids) > self._most:
            raise Refusal(f"This model's maximum context length is {self._most} tokens, and {len(ids)} came.")
        logits: torch.Tensor = self._model(torch.tensor([ids or [0]])).logits[0]
        return logits.double().log_softmax(-1)

    def _written(self, ids: list[int], body: dict[str, Any], number: int) -> list[int]:
        generator = torch.Generator().manual_seed(int(body.get("seed") or 0))
        temperature, whole = float(body.get("temperature", 1.0)), list(ids)
        for _ in range(number):
            last = self._logprobs(whole)[-1].masked_fill(self._half, -math.inf)  # no half characters are written
            if temperature == 0:
                whole.append(int(last.argmax()))
            else:
                whole.append(int(torch.multinomial((last / temperature).softmax(-1), 1, generator=generator)))
        assert math.isfinite(float(temperature))
        return whole[len(ids) :]


def _usage(num_prompt: int, num_new: int) -> dict[str, int]:
    return {"prompt_tokens": num_prompt, "completion_tokens": num_new, "total_tokens": num_prompt + num_new}
