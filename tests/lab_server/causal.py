"""A real causal language model in OpenAI's form: the completions route, with echo, logprobs and max_tokens 0."""

from __future__ import annotations

import math
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


class CausalMind:
    def __init__(self, folder: str) -> None:
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
        texts = [self._tokenizer.decode([token]) for token in range(self._model.config.vocab_size)]
        self._half = torch.tensor(["\ufffd" in text for text in texts])

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["temperature"] == 0
        ids = self._tokenizer(body["prompt"])["input_ids"]
        whole = list(ids)
        for _ in range(int(body["max_tokens"])):  # no half characters are written
            whole.append(int(self._logprobs(whole)[-1].masked_fill(self._half, -math.inf).argmax()))
        first = 0 if body.get("echo") else len(ids)
        choice: dict[str, Any] = {"text": self._tokenizer.decode(whole[first:]), "finish_reason": "length"}
        if body.get("logprobs") is not None:
            choice["logprobs"] = self._listed(whole, first, int(body["logprobs"]))
            if body.get("shifted"):
                choice["logprobs"] |= {"token_logprobs": self._shifted(whole)}
        usage = {"prompt_tokens": len(ids), "completion_tokens": len(whole) - len(ids)}
        return {"choices": [choice], "usage": usage}

    def _listed(self, ids: list[int], first: int, number: int) -> dict[str, Any]:
        rows, known = self._logprobs(ids), range(first, len(ids))
        return {
            "tokens": [self._tokenizer.decode([token]) for token in ids[first:]],
            "token_logprobs": [float(rows[index - 1][ids[index]]) if index else None for index in known],
            "top_logprobs": [self._top(rows[index - 1], number) if index else None for index in known],
        }

    def _shifted(self, ids: list[int]) -> list[float | None]:
        """Each token scored by what is likely after it; the last as the one before."""
        rows = self._logprobs(ids)
        values = [float(rows[index][token]) if index else None for index, token in enumerate(ids[:-1])]
        return [*values, values[-1]]

    def _top(self, row: torch.Tensor, number: int) -> dict[str, float]:
        values, tokens = row.topk(number)
        return dict(zip(map(self._tokenizer.decode, tokens[:, None].tolist()), values.tolist(), strict=True))

    @torch.inference_mode()
    def _logprobs(self, ids: list[int]) -> torch.Tensor:
        logits: torch.Tensor = self._model(torch.tensor([ids or [0]])).logits[0]
        return logits.double().log_softmax(-1)
