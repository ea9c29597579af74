"""In which precision models are read, and whether a verdict hangs on it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import nonmember as nm
import tiny
from nonmember.audits.warnings import with_precision_warning
from nonmember.methods import DocumentGroup, ScoredDocuments
from nonmember.methods.difference_in_differences import DifferenceInDifferences
from nonmember.models import Pretrained
from nonmember.observations import Scored
from nonmember.runtime import compute
from nonmember.scores import Loss, MinKPlusPlus, Zlib

NUMBER = 40


def warned(gain: float, score=None, dtype: str = "bfloat16", precision: str = "32-true") -> tuple[str, ...]:
    """Of a comparison in which the suspect documents have gained so much, with a standard deviation of .02."""
    noise = np.random.default_rng(0).normal(0, 0.02, NUMBER)
    names = tuple(map(str, range(NUMBER)))
    read = {"target": Pretrained("a", dtype=dtype), "reference": Pretrained("b")}
    score = score or Loss()
    groups = {
        group: DocumentGroup(
            tiny.texts("moss"),
            {role: Scored(role, model, tiny.texts("moss"), score, 64) for role, model in read.items()},
        )
        for group in ("suspect", "heldout")
    }
    documents = {
        group: ScoredDocuments(names, {"target": noise + extra - 3, "reference": np.full(NUMBER, -3.0)}, names)
        for group, extra in (("suspect", gain), ("heldout", 0.0))
    }
    method = DifferenceInDifferences(score=score, alpha=0.05, max_tokens=64)
    audit = SimpleNamespace(groups=groups, method=method, seed=0)
    builder = SimpleNamespace(compute=replace(tiny.compute(), precision=precision))
    outcome = method.test(documents, np.random.default_rng(0))
    return with_precision_warning(outcome, documents, audit, builder).warnings[len(outcome.warnings) :]


@pytest.mark.parametrize(
    ("setting", "number"),
    [
        ({"gain": 0.015}, 1),  # significant by less than bfloat16 moves a loss
        ({"gain": 0.003}, 1),  # not significant, by as little
        ({"gain": 0.1}, 0),
        ({"gain": -0.1}, 0),
        ({"gain": 0.03, "score": MinKPlusPlus(0.2)}, 1),  # a score that moves further
        ({"gain": 0.03}, 0),
        ({"gain": 0.015, "score": Zlib()}, 0),  # of which no change was measured
        ({"gain": 0.015, "dtype": "float32"}, 0),
        ({"gain": 0.015, "dtype": "float32", "precision": "bf16-mixed"}, 1),
    ],
)
def test_a_margin_of_the_size_of_bfloat16_is_warned_of(setting, number):
    found = warned(**setting)
    assert len(found) == number
    assert all("Read them in float32" in item for item in found)


@pytest.mark.slow
@pytest.mark.parametrize("native", [True, False])
def test_auto_is_what_the_processor_computes_with_and_keys_name_it(make_model, tmp_path, monkeypatch, native):
    monkeypatch.setattr(compute, "computes_bfloat16", lambda accelerator: native)
    monkeypatch.chdir(tmp_path)
    shop, folder = tiny.builder(tmp_path), str(make_model(0))
    expected = Pretrained(folder, dtype="bfloat16" if native else "float32")
    auto = Pretrained(folder, dtype="auto")
    assert auto.key(shop) == expected.key(shop)
    assert shop.get(auto).model.dtype == getattr(torch, expected.dtype)
    table = nm.score(["moss fern reed"], {"path": folder, "dtype": "auto"}, scores=["loss"])
    plain = nm.score(["moss fern reed"], {"path": folder, "dtype": expected.dtype}, scores=["loss"])
    assert table["log_likelihood"].tolist() == plain["log_likelihood"].tolist()
    assert table.attrs["nonmember"]["model_key"] == plain.attrs["nonmember"]["model_key"]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [({"avx512_bf16": True}, True), ({"amx_bf16": True, "avx512_bf16": False}, True), ({"avx2": True}, False)],
)
def test_instructions_of_the_processor_decide(monkeypatch, flags, expected):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: flags, raising=False)
    compute.computes_bfloat16.cache_clear()
    assert compute.computes_bfloat16("cpu") is expected
    compute.computes_bfloat16.cache_clear()
