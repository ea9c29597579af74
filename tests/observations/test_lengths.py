"""Models that read a text otherwise beside a longer one: whatever is read with whatever, each text counts as if a fresh
copy of the model had read it alone."""

from __future__ import annotations

import copy
import functools

import lightning
import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

import tiny
from nonmember.corpora.transforms.ordered import Orders
from nonmember.models.forward import split_forward
from nonmember.models.lengths import Lengths, lengths_of
from nonmember.models.loading import train_tokenizer
from nonmember.models.probing import probe
from nonmember.models.reading import position_limit
from nonmember.observations.base import Reading
from nonmember.observations.documents import load_divergences
from nonmember.observations.passes.documents import embed, observe_divergence
from nonmember.observations.passes.orders import OrderedShard, observe_orders
from nonmember.observations.passes.tokens import length_buckets, observe, observe_answers
from nonmember.observations.passes.writing import Writing, write
from nonmember.records import Corpus, Embeddings, OrderTable, TokenTable
from nonmember.runtime.compute import MIB
from nonmember.training.batches import StepLoader
from nonmember.training.losses import cross_entropy_terms

VOCAB, SWITCH = 280, 32
one_process = functools.partial(lightning.Trainer, accelerator="cpu", devices=1)
SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 48,
    "head_dim": 16,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0] * 8,
    "long_factor": [1.0 + 2 * index for index in range(8)],
    "original_max_position_embeddings": SWITCH,
}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}
PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
MODELS = {
    "longrope": ("phi3", {"rope_parameters": LONGROPE, "original_max_position_embeddings": SWITCH}),
    "dynamic": ("llama", {"rope_parameters": DYNAMIC, "max_position_embeddings": SWITCH}),
    "dynamic in some layers": (
        "gemma3_text",
        {
            "rope_parameters": {"full_attention": DYNAMIC, "sliding_attention": PLAIN},
            "layer_types": ["sliding_attention", "full_attention"],
            "max_position_embeddings": SWITCH,
            "sliding_window": 16,
        },
    ),
}


def config_of(name):
    model_type, changes = MODELS[name]
    return AutoConfig.for_model(model_type, **SIZES | changes)


@pytest.fixture(params=MODELS)
def model(request):
    torch.manual_seed(0)
    made = AutoModelForCausalLM.from_config(config_of(request.param)).eval()
    for parameter in made.parameters():
        if parameter.dim() >= 2:
            nn.init.normal_(parameter, std=0.15)
    return made


def ids_of(length: int, seed: int) -> list[int]:
    return torch.randint(3, VOCAB, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


DOCUMENTS = {f"d{n}": ids_of(n, n) for n in (90, 5, 40, SWITCH, SWITCH + 1, 20, 89, SWITCH - 1, 6)}


@torch.no_grad()
def alone(model, ids, **options):
    """What a fresh copy says of one text."""
    return copy.deepcopy(model)(input_ids=torch.tensor([ids]), **options)


def reading(folder) -> Reading:
    return Reading(folder, one_process, 1000, MIB)


def log_probs_alone(model, ids) -> torch.Tensor:
    log_probs_TV = alone(model, ids).logits[0, :-1].log_softmax(-1)
    return log_probs_TV.gather(1, torch.tensor(ids)[1:, None])[:, 0]


@pytest.mark.slow
def test_tokens(model, tmp_path):
    fresh = copy.deepcopy(model)
    observe(model, DOCUMENTS, reading(tmp_path))
    table = TokenTable.load(sorted(tmp_path.glob("*.parquet")), list(DOCUMENTS))
    for index, ids in enumerate(DOCUMENTS.values()):
        np.testing.assert_allclose(table.log_prob[table.rows(index)], log_probs_alone(fresh, ids), atol=2e-5)


@pytest.mark.slow
def test_embeddings(model, tmp_path):
    fresh = copy.deepcopy(model)
    embed(model, DOCUMENTS, reading(tmp_path), layer=1, dropout_seed=None)
    found = Embeddings.load(sorted(tmp_path.glob("*.parquet")), list(DOCUMENTS))
    expected = [alone(fresh, ids, output_hidden_states=True).hidden_states[1][0, -1] for ids in DOCUMENTS.values()]
    np.testing.assert_allclose(found.values, nn.functional.normalize(torch.stack(expected)), atol=1e-5)


@pytest.mark.slow
def test_divergences_where_either_model_is_such_a_one(model, tmp_path):
    fresh, other = copy.deepcopy(model), tiny.model(1, VOCAB).eval()
    for index, (ours, theirs) in enumerate([(model, other), (other, model)]):
        both = (slice(None), slice(None))
        observe_divergence(ours, theirs, DOCUMENTS, reading(tmp_path / str(index)), shared_ids=both)
        found = load_divergences(sorted((tmp_path / str(index)).glob("*.parquet")), list(DOCUMENTS))
        for value, ids in zip(found.values, DOCUMENTS.values(), strict=True):
            p, q = (
                alone(fresh if item is model else item, ids).logits[0, :-1].log_softmax(-1) for item in (ours, theirs)
            )
            assert value == pytest.approx(float((q.exp() * (q - p)).sum(-1).mean()), abs=2e-5)


@pytest.mark.slow
def test_answers(model, tmp_path):
    fresh = copy.deepcopy(model)
    observe_answers(model, DOCUMENTS, [7, 9], reading(tmp_path))
    table = TokenTable.load(sorted(tmp_path.glob("*.parquet")), list(DOCUMENTS))
    for index, ids in enumerate(DOCUMENTS.values()):
        expected = alone(fresh, ids).logits[0, -1].log_softmax(-1)[[7, 9]]
        np.testing.assert_allclose(table.log_prob[table.rows(index)], expected, atol=2e-5)


@pytest.mark.slow
def test_orders(model, tmp_path):
    fresh = copy.deepcopy(model)
    shards = {
        name: OrderedShard([ids], Orders(np.zeros((1, 1), np.int32), np.ones(1, np.int32)))
        for name, ids in DOCUMENTS.items()
    }
    observe_orders(model, shards, [], reading(tmp_path), window=100, stride=50)
    table = OrderTable.load(sorted(tmp_path.glob("*.parquet")), tuple(DOCUMENTS))
    for index, ids in enumerate(DOCUMENTS.values()):  # the last token is not read
        log_probs_TV = alone(fresh, ids[:-1]).logits[0].log_softmax(-1)
        expected = float(log_probs_TV.gather(1, torch.tensor(ids)[1:, None]).sum())
        assert table.canonical[index] == pytest.approx(expected, abs=1e-3)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(Corpus(tiny.GENERAL.documents), tiny.VOCAB_SIZE)


@pytest.mark.slow
def test_what_is_written(model, tokenizer, tmp_path):
    """Also where a text passes the switch while it is written."""
    fresh = copy.deepcopy(model)
    prompts = {f"d{n}": ids_of(n, n) for n in (5, 24, SWITCH - 4, SWITCH - 2, SWITCH + 5, 50)}
    together = write(model, tokenizer, prompts, prompts, tmp_path, one_process, Writing(0.0, 8, 2**30), description="")
    for name, ids in prompts.items():
        written = copy.deepcopy(fresh).generate(
            torch.tensor([ids]), max_new_tokens=8, do_sample=False, eos_token_id=tokenizer.eos_token_id, pad_token_id=0
        )
        assert together[name].text == tokenizer.decode(written[0, len(ids) :], skip_special_tokens=True), name


@pytest.mark.slow
def test_a_training_steps_loss_is_that_of_its_sequences_alone(model):
    fresh, sequences = copy.deepcopy(model), list(DOCUMENTS.values())
    split = split_forward(model)
    steps = [list(range(len(sequences))), [0, 1]]
    loader = StepLoader(sequences, steps, micro_batch_size=4, padding_id=0, group=split.lengths.group)
    assert loader.num_steps == 2
    assert loader.num_tokens == sum(map(len, sequences)) - len(sequences) + len(sequences[0]) + len(sequences[1]) - 2
    total = 0.0
    with torch.no_grad():
        for batch in list(loader)[: loader.accumulate]:
            ids_BT, lengths_B = batch["input_ids"], batch["lengths"]
            mask = torch.arange(1, ids_BT.shape[1]) < lengths_B[:, None]
            features_ND = split.body(ids_BT)[:, :-1][mask]
            if len(features_ND):
                (loss,), _ = cross_entropy_terms(split.head(features_ND), ids_BT[:, 1:][mask], upstream_K=None)
                total += float(loss)
    expected = -sum(float(log_probs_alone(fresh, ids).sum()) for ids in sequences)
    assert total == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_such_a_model_passes_the_probe_and_is_left_fresh(model):
    fresh = copy.deepcopy(model)
    probe(model)
    for ids in (ids_of(SWITCH, 0), ids_of(60, 0)):
        torch.testing.assert_close(alone(model, ids).logits, alone(fresh, ids).logits, rtol=0, atol=1e-5)


# Which models they are ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, Lengths()),
        ({"rope_scaling": None}, Lengths()),
        *(({"rope_scaling": {"rope_type": kind, "factor": 4.0}}, Lengths()) for kind in ("linear", "yarn", "llama3")),
        ({"rope_scaling": {"type": "su"}, "original_max_position_embeddings": 64}, Lengths((64,))),
        ({"rope_parameters": LONGROPE}, Lengths((SWITCH,))),
        ({"rope_parameters": {"rope_type": "longrope"}, "max_position_embeddings": 99}, Lengths((99,))),
        ({"text_config": {"rope_scaling": DYNAMIC, "max_position_embeddings": 64}}, Lengths((), 64, 256)),
        ({"rope_parameters": {"full_attention": LONGROPE, "sliding_attention": PLAIN}}, Lengths((SWITCH,))),
        ({"rope_scaling": {"type": "dynamic", "factor": "four"}, "max_position_embeddings": None}, Lengths((), 0, 0)),
    ],
)
def test_they_are_known_by_their_configuration(config, expected):
    assert lengths_of(config) == expected


@pytest.mark.parametrize("name", MODELS)
def test_no_batch_holds_lengths_that_are_read_differently(name):
    config, numbers = config_of(name), [5, 90, 31, 32, 33, 6, 90, 50]
    batches = length_buckets(numbers, 1000, lengths_of(config).group)
    assert sorted(index for batch in batches for index in batch) == list(range(len(numbers)))
    beyond = [sorted(numbers[index] for index in batch) for batch in batches if numbers[batch[0]] > SWITCH]
    assert beyond == ([[33, 50, 90, 90]] if name == "longrope" else [[90, 90], [50], [33]])
    assert length_buckets(numbers, 1000) == length_buckets(numbers, 1000, Lengths().group)
    assert position_limit(config) == 128
