"""The divergence per document against one computed directly from the logits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tiny
from nonmember.models.forward import split_forward
from nonmember.observations.base import Reading
from nonmember.observations.documents import load_divergences
from nonmember.observations.passes.documents import observe_divergence

RNG = np.random.default_rng(3)
DOCUMENTS = {f"d{index}": RNG.integers(0, 60, size=size).tolist() for index, size in enumerate((2, 31, 9, 17, 1, 64))}
ALL = (slice(None), slice(None))


def compared(folder, *, shared=ALL, max_batch_tokens=128, block_bytes=2**20):
    reading = Reading(folder, tiny.compute().trainer, max_batch_tokens, block_bytes)
    observe_divergence(tiny.model(1), tiny.model(2), DOCUMENTS, reading, shared_ids=shared)
    return load_divergences(sorted(folder.glob("part-*.parquet")), list(DOCUMENTS))


def directly(ids, shared=ALL):
    with torch.no_grad():
        ours, theirs = (tiny.model(seed)(torch.tensor([ids])).logits[0, :-1].double() for seed in (1, 2))
    log_q, log_p = F.log_softmax(ours[:, shared[0]], -1), F.log_softmax(theirs[:, shared[1]], -1)
    return float((log_p.exp() * (log_p - log_q)).sum(-1).mean())


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"max_batch_tokens": 1}, {"block_bytes": 1000}])
def test_it_is_kl_of_the_other_from_the_model_by_document(tmp_path, changes):
    found = compared(tmp_path, **changes)
    expected = [directly(ids) if len(ids) > 1 else np.nan for ids in DOCUMENTS.values()]
    assert found.values == pytest.approx(expected, rel=1e-5, nan_ok=True)
    assert list(found.reasons) == ["d4"]


def test_only_what_both_vocabularies_have_is_compared(tmp_path):
    shared = (torch.tensor([1, 5, 7, 30]), torch.tensor([2, 5, 9, 31]))
    found = compared(tmp_path, shared=shared)
    assert found.values[1] == pytest.approx(directly(DOCUMENTS["d1"], shared), rel=1e-5)


class Masked:
    """A head that gives no probability to some of the vocabulary."""

    def __init__(self, head, ids):
        self._head, self._ids, self.vocab_size = head, ids, head.vocab_size

    def __call__(self, features, out=None):
        logits = self._head(features)
        logits[:, self._ids] = -torch.inf
        return logits


def test_masked_entries_count_for_nothing(tmp_path):
    ours, theirs = (split_forward(tiny.model(seed)) for seed in (1, 2))
    reading = Reading(tmp_path, tiny.compute().trainer, 128)
    without = torch.arange(40)
    masked = [replace(split, head=Masked(split.head, slice(40, None))) for split in (ours, theirs)]
    observe_divergence(*masked, DOCUMENTS, reading, shared_ids=ALL)
    found = load_divergences([tmp_path / "part-0.parquet"], list(DOCUMENTS)).values[1]
    assert found == pytest.approx(directly(DOCUMENTS["d1"], (without, without)), rel=1e-5)
    nothing = replace(theirs, head=Masked(theirs.head, slice(None)))
    with pytest.raises(ValueError, match="no distribution"):
        observe_divergence(ours, nothing, DOCUMENTS, reading, shared_ids=ALL)


def test_a_model_does_not_diverge_from_itself(tmp_path):
    reading = Reading(tmp_path, tiny.compute().trainer, 128)
    observe_divergence(tiny.model(1), tiny.model(1), DOCUMENTS, reading, shared_ids=ALL)
    assert np.nanmax(np.abs(load_divergences([tmp_path / "part-0.parquet"], list(DOCUMENTS)).values)) < 1e-6
