"""How far weights have moved, against the same by hand."""

from __future__ import annotations

import pytest
import torch

import tiny
from nonmember.endpoints.models import Endpoint
from nonmember.observations.weights import WeightChange, relative_change, weights_at_hand
from nonmember.training import Trained
from nonmember.training.recipes import AdapterTuning, Lora

BASE = Trained(tiny.scratch(1), tiny.pretraining(), tiny.GENERAL, seed=1, label="base")
ADAPTED = Trained(BASE, AdapterTuning(tiny.optimization(), Lora(None, 4, 8.0, 0.0), 64, False), tiny.SUSPECT, seed=5)


def test_it_is_the_norm_of_what_moved_over_all_matrices(tmp_path):
    builder = tiny.builder(tmp_path)
    further = Trained(BASE, tiny.pretraining(), tiny.SUSPECT, seed=2)
    before, after = (builder.get(item).model.state_dict() for item in (BASE, further))
    matrices = [name for name, weights in before.items() if weights.dim() >= 2]
    flat = [torch.cat([item[name].flatten() for name in matrices]) for item in (before, after)]
    expected = ((flat[1] - flat[0]).norm() / flat[0].norm()).item()
    assert builder.get(WeightChange(further, BASE)) == pytest.approx(expected, rel=1e-5)
    assert builder.get(WeightChange(BASE, BASE)) == 0


@pytest.mark.slow
def test_an_adapter_counts_as_merged_and_is_kept(tmp_path):
    builder = tiny.builder(tmp_path)
    change = builder.get(WeightChange(ADAPTED, BASE))
    assert 0 < change < 0.5
    again = tiny.builder(tmp_path)
    assert again.get(WeightChange(ADAPTED, BASE)) == change
    assert again.counters.models_trained == 0


def test_models_without_a_matrix_in_common():
    other = torch.nn.Module()
    other.inner = tiny.model(1)  # whose names are others
    assert relative_change(other, tiny.model(1)) is None


def test_rows_of_added_tokens_are_no_difference():
    base, moved = tiny.model(1), tiny.model(2)
    change = relative_change(moved, base)
    moved.resize_token_embeddings(base.config.vocab_size + 3)
    assert relative_change(moved, base) == pytest.approx(change)


def test_what_is_behind_an_endpoint_has_no_weights_to_look_at():
    assert weights_at_hand(BASE)
    assert weights_at_hand(ADAPTED)
    assert not weights_at_hand(Endpoint("http://localhost:1/v1", "m", "chat", "KEY"))
