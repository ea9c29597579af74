"""Embeddings: the model's own hidden state at each document's last token, however documents are batched."""

from __future__ import annotations

import functools
from dataclasses import replace

import lightning
import numpy as np
import pytest
import torch

import tiny
from nonmember.observations import Embedded
from nonmember.observations.base import Reading
from nonmember.observations.passes import tokens
from nonmember.observations.passes.documents import embed
from nonmember.records import Embeddings
from nonmember.records.documents import NO_EMBEDDING, ZERO_EMBEDDING
from nonmember.training.adapters import add_adapter
from nonmember.training.recipes import AdapterTuning, Lora

LORA = Lora(rank=4, alpha=8, dropout=0.5, target_modules=None)
one_process = functools.partial(lightning.Trainer, accelerator="cpu", devices=1)
two_processes = functools.partial(lightning.Trainer, accelerator="cpu", devices=2, strategy="ddp_fork")


def embedded(model, documents, folder, make_trainer=one_process, *, layer=-1, dropout_seed=None, max_batch_tokens=64):
    reading = Reading(folder, make_trainer, max_batch_tokens)
    counts = embed(model, documents, reading, layer=layer, dropout_seed=dropout_seed)
    return counts, Embeddings.load(sorted(folder.glob("part-*.parquet")), list(documents))


def documents(number=17) -> dict[str, list[int]]:
    return {f"d{index}": ids for index, ids in enumerate(tiny.sequences_of_ids(number))}


def with_lora(base=None, seed=0):
    """An adapter that changes something."""
    model = add_adapter(base or tiny.model(0), LORA, seed=seed, num_steps=1).eval()
    for name, weights in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weights, generator=torch.Generator().manual_seed(seed))
    return model


@pytest.mark.parametrize("layer", [-1, 2, 1, 0, -3])
def test_it_is_the_hidden_state_at_the_last_real_token(tmp_path, layer):
    model, given = tiny.model(0), documents()
    counts, found = embedded(model, given, tmp_path, layer=layer)
    assert (counts["num_documents"], counts["num_zero"], counts["num_tokens"]) == (17, 0, sum(map(len, given.values())))
    assert (found.doc_ids, found.reasons, found.values.dtype) == (tuple(given), {}, np.float32)
    for vector, ids in zip(found.values, given.values(), strict=True):
        with torch.no_grad():
            state = model(torch.tensor([ids]), output_hidden_states=True).hidden_states[layer][0, -1]
        np.testing.assert_allclose(vector, state / state.norm(), rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found.values, axis=1), 1, rtol=0, atol=1e-6)


def test_an_inner_layer_of_an_adapted_model_is_its_own(tmp_path):
    """Also after its base, whose weights it has, was asked for that layer."""
    base, given = tiny.model(0), documents(4)
    embedded(base, given, tmp_path / "base", layer=1)
    model = with_lora(base)
    _, found = embedded(model, given, tmp_path / "adapted", layer=1)
    states = []
    model.get_base_model().gpt_neox.layers[0].register_forward_hook(
        lambda _, __, out: states.append(out[0] if isinstance(out, tuple) else out)
    )
    for vector, ids in zip(found.values, given.values(), strict=True):
        with torch.no_grad():
            model(torch.tensor([ids]))
        last = states[-1].reshape(-1, 16)[len(ids) - 1]
        np.testing.assert_allclose(vector, last / last.norm(), rtol=0, atol=1e-6)


def test_no_logits_are_made(tmp_path):
    model = tiny.model(0)
    split = tokens.split_forward(model)  # which compares logits
    model.get_output_embeddings().register_forward_hook(lambda *_: pytest.fail("logits were made"))
    for layer in (-1, 1):
        embedded(split, documents(), tmp_path / str(layer), layer=layer)


def test_a_model_that_cannot_be_split_gives_the_same(tmp_path):
    model, given = tiny.model(0), documents()
    whole = replace(tokens.split_forward(model), body_name=None)
    item, other = (embedded(each, given, tmp_path / name)[1] for name, each in (("split", model), ("whole", whole)))
    np.testing.assert_allclose(item.values, other.values, rtol=0, atol=1e-6)


def test_documents_without_an_embedding_have_a_reason(tmp_path):
    model, given = tiny.model(0), documents(3) | {"short": [5], "empty": []}
    counts, found = embedded(model, given, tmp_path)
    assert counts["num_documents"] == 3
    assert found.reasons == dict.fromkeys(("short", "empty"), NO_EMBEDDING)
    assert not found.values[3:].any()
    with pytest.raises(ValueError, match="None of the 1 documents has two tokens"):
        embedded(model, {"short": [5]}, tmp_path)


def test_a_zero_vector_stays_one_and_has_a_reason(tmp_path):
    model = tiny.model(0)
    for name, weights in model.named_parameters():
        if "final_layer_norm" in name:
            weights.data.zero_()
    counts, found = embedded(model, documents(4), tmp_path)
    assert (counts["num_documents"], counts["num_zero"]) == (4, 4)
    assert not found.values.any()
    assert set(found.reasons.values()) == {ZERO_EMBEDDING}
    assert embedded(model, documents(4), tmp_path / "other", layer=1)[1].reasons == {}


def test_what_cannot_be_embedded_is_said_in_a_sentence(tmp_path):
    model = tiny.model(0)
    with pytest.raises(ValueError, match=r"layer must be from 0 .* to 2 .*; got 3"):
        embedded(model, documents(), tmp_path, layer=3)
    embedded(model, documents(), tmp_path)
    with pytest.raises(ValueError, match="They belong to another corpus"):
        Embeddings.load(sorted(tmp_path.glob("part-*.parquet")), ["d0"])
    model.get_input_embeddings().weight.data[:] = torch.nan
    with pytest.raises(ValueError, match=r"NaN or infinity for .* documents of a batch, first for 'd"):
        embedded(tokens.split_forward(model), documents(), tmp_path)


@pytest.mark.slow
def test_dropout_is_the_adapters_and_comes_from_the_seed_and_the_document(tmp_path):
    model, given = with_lora(), documents()
    plain = embedded(model, given, tmp_path / "plain")[1].values
    item = embedded(model, given, tmp_path / "one", dropout_seed=3)[1].values
    model.train()  # however it was left
    torch.manual_seed(11)
    backwards = dict(reversed(given.items()))
    again = embedded(model, backwards, tmp_path / "again", two_processes, dropout_seed=3)[1]
    np.testing.assert_array_equal(item, again.values[::-1])
    other = embedded(model, given, tmp_path / "other", dropout_seed=4)[1].values
    assert np.abs(item - plain).max(axis=1).min() > 1e-4, "each document is moved"
    assert np.abs(item - other).max(axis=1).min() > 1e-4
    np.testing.assert_array_equal(embedded(model, given, tmp_path / "after")[1].values, plain)


def test_without_an_adapter_nothing_drops_out(tmp_path):
    model, given = tiny.model(0, hidden_dropout=0.5, attention_dropout=0.5), documents(5)
    item, other = (
        embedded(model, given, tmp_path / str(seed), dropout_seed=seed, max_batch_tokens=1)[1].values
        for seed in (None, 3)
    )
    np.testing.assert_array_equal(item, other)


@pytest.mark.slow
def test_the_workshop_keeps_them_and_shares_the_weights(tmp_path):
    from nonmember.training import Trained

    tuning = AdapterTuning(tiny.optimization(), LORA, max_tokens=64, drop_last=False)
    base = tiny.scratch(1)
    tuned = Trained(base, tuning, tiny.SUSPECT, seed=2)
    shop = tiny.builder(tmp_path)
    before, after = (
        shop.get(Embedded(model, tiny.SUSPECT, role="target", layer=-1, max_tokens=64)) for model in (base, tuned)
    )
    assert before.values.shape == after.values.shape == (34, 16)
    assert np.abs(before.values - after.values).max() > 1e-4
    assert len(shop.memory.pools["models"]) == len(shop.memory.pools["adapted"]) == 1
    ours, theirs = shop.get(base).model, shop.get(tuned).model.get_base_model()
    assert ours.get_input_embeddings().weight is theirs.get_input_embeddings().weight

    num_tokens = shop.counters.tokens_observed
    again = shop.get(Embedded(tuned, tiny.SUSPECT, role="target", layer=-1, max_tokens=64))
    np.testing.assert_array_equal(again.values, after.values)
    assert shop.counters.tokens_observed == num_tokens
    for changes in ({"layer": 1}, {"max_tokens": 5}, {"dropout_seed": 0}):
        other = shop.get(Embedded(tuned, tiny.SUSPECT, role="target", **{"layer": -1, "max_tokens": 64} | changes))
        assert np.abs(other.values - after.values).max() > 1e-4, changes
