"""A second implementation: our log-probabilities of SmolLM2 against llama.cpp's of the same GGUF file.

We dequantise the weights and calculate in 32 bits. llama.cpp leaves the weights in 4 bits and rounds what comes into
each matrix to 8 bits. So the dequantised weights are written to a GGUF file again, and both calculate in 32 bits.
"""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smollm2
import tiny
from nonmember.observations import TokenStatistics
from real_servers import llama_server

pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install xllamacpp")
pytestmark = pytest.mark.slow

TEXTS = [
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software.",
    'def mean(values):\n    """Arithmetic mean of numbers."""\n    return sum(values) / len(values)\n',
    "The ferry to Mull was late again, so we ate our sandwiches in the rain and counted gulls.",
    "Größe und Überfluß: 12,5 % mehr als im Vorjahr.",
    "zxq vblk 9931 -- qqq ;; wub wub wub wub",
]
FORCED = 1000.0  # added to a token's logit; what is told of it is from before


@dataclass
class Told:
    """ids: of each text.   ours: log-probability of each token but the first of all texts, by our observing."""

    model: Any
    ids: list[list[int]]
    ours: np.ndarray


@pytest.fixture(scope="module")
def gguf() -> Path:
    return smollm2.model().files[0]


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> Told:
    spec, shop = smollm2.model(), tiny.builder(tmp_path_factory.mktemp("shop"))
    table = shop.get(TokenStatistics(spec, tiny.texts(*TEXTS), view="original", max_tokens=64))
    loaded = shop.get(spec)
    return Told(loaded.model, loaded.tokenizer(TEXTS)["input_ids"], table.log_prob)


def by_llama(url: str, texts: list[list[int]]) -> np.ndarray:
    """Log-probability of each token but the first; NaN for a token that ends in the middle of a character, of which the
    server says nothing. It tells them of what it writes alone, so it is made to write each token after those before."""

    def asked(before: list[int], token: int) -> float:
        body = {"prompt": before, "max_tokens": 1, "logprobs": 1, "temperature": 0, "logit_bias": [[token, FORCED]]}
        request = urllib.request.Request(
            f"{url}/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            listed = json.load(response)["choices"][0]["logprobs"]
        if listed is None:
            return np.nan
        assert listed["content"][0]["id"] == token
        return float(listed["content"][0]["logprob"])

    return np.array([asked(ids[:index], ids[index]) for ids in texts for index in range(1, len(ids))])


def in_32_bits(gguf_file: Path, path: Path) -> Path:
    """The same model with its weights dequantised."""
    import gguf
    from gguf.quants import dequantize

    reader = gguf.GGUFReader(gguf_file)
    writer = gguf.GGUFWriter(path, reader.fields["general.architecture"].contents())
    for name, item in reader.fields.items():
        written_anyway = name.startswith("GGUF.") or name == "general.architecture"
        if not written_anyway and name not in ("general.file_type", "general.quantization_version"):
            writer.add_key_value(name, item.contents(), item.types[0], item.types[1] if len(item.types) > 1 else None)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, dequantize(tensor.data, tensor.tensor_type).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_the_dequantised_weights_say_the_same(told, gguf, tmp_path):
    """Measured: at most 3e-4 nats a token. Two orders of summing float32 numbers are left."""
    path = in_32_bits(gguf, tmp_path / "float32.gguf")
    with llama_server(path, exact=True) as url:
        theirs = by_llama(url, told.ids)
    path.unlink()
    known = np.isfinite(theirs)
    assert known.mean() > 0.95
    assert np.abs(theirs - told.ours)[known].max() < 2e-3
