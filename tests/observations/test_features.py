"""What a model made of documents serves the next pass over them, to the last bit, and no longer than it is true."""

from __future__ import annotations

import gc

import pytest
import torch

import tiny
from nonmember.models.forward import split_forward
from nonmember.observations.passes import features as module
from nonmember.observations.passes.features import Features

IDS = torch.randint(tiny.VOCAB_SIZE, (3, 20), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def split(monkeypatch):
    """A split model that counts what its body reads."""
    found = split_forward(tiny.model(1, tiny.VOCAB_SIZE).eval())
    read: list[tuple[int, ...]] = []
    body = type(found).body

    def counted(self, input_ids_BT):
        read.append(tuple(input_ids_BT.shape))
        return body(self, input_ids_BT)

    monkeypatch.setattr(type(found), "body", counted)
    return found, read


@torch.inference_mode()
def test_the_same_batch_is_read_once(split):
    model, read = split
    features = Features()
    first, second = features.of(model, IDS), features.of(model, IDS.clone())
    assert torch.equal(first, second)
    assert read == [(3, 20)]
    features.of(model, IDS[:2])
    other = IDS.clone()
    other[0, 0] = (other[0, 0] + 1) % tiny.VOCAB_SIZE
    features.of(model, other)
    assert read == [(3, 20), (2, 20), (3, 20)], "another batch is read by itself"


def test_changed_weights_read_again(split):
    model, read = split
    features = Features()
    with torch.no_grad():
        before = features.of(model, IDS)
        next(model.model.parameters()).mul_(1.5)
        assert not torch.equal(features.of(model, IDS), before)
        model.model.double()
        assert features.of(model, IDS).dtype == torch.float64
    assert len(read) == 3


def test_dropout_is_drawn_anew(split):
    model, read = split
    model.model.train()
    features = Features()
    for _ in range(2):
        features.of(model, IDS)
    assert len(read) == 2


@torch.inference_mode()
def test_no_more_is_kept_than_there_is_room_for(split, monkeypatch):
    model, read = split
    features = Features()
    size = model.body(IDS).nbytes
    read.clear()
    monkeypatch.setattr(module, "LARGEST_SHARE", 1)
    monkeypatch.setattr(module, "MOST_BYTES", 2 * size)
    for shift in (0, 1, 2, 2, 1, 0):
        features.of(model, (IDS + shift) % tiny.VOCAB_SIZE)
    assert len(read) == 4, "the first went"
    monkeypatch.setattr(module, "MOST_BYTES", size - 1)
    for _ in range(2):
        features.of(model, (IDS + 3) % tiny.VOCAB_SIZE)
    assert len(read) == 6, "too large to be kept"


@pytest.mark.slow
@torch.inference_mode()
def test_it_goes_with_its_model():
    features = Features()
    features.of(split_forward(tiny.model(2, tiny.VOCAB_SIZE).eval()), IDS)
    gc.collect()
    assert not list(features._of)
