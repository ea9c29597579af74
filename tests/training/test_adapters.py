"""Adapters are trained beside a model that stays as it is, are small, and go on after a stop as if nothing had been."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from test_resume import StopAfter, disturb_generators
from transformers import AutoConfig, AutoModelForCausalLM

import tiny
from command_line import rows_of, write_rows
from marks import slow
from nonmember.artifacts.store import canonical_json
from nonmember.models import Pretrained
from nonmember.models.exposure import truth_about
from nonmember.models.forward import split_forward
from nonmember.models.loading import save
from nonmember.observations import TokenStatistics
from nonmember.training import Trained
from nonmember.training.adapters import add_adapter, load_adapter, save_adapter
from nonmember.training.batches import plan_steps
from nonmember.training.modules import learning_rate_factor
from nonmember.training.recipes import AdaLora, AdapterTuning, Ia3, Lora
from nonmember.training.run import TrainingRun, tune

VOCAB = 60
DOCUMENTS = tiny.sequences_of_ids(18, seed=3, vocab_size=VOCAB)
LORA = Lora(rank=4, alpha=8, dropout=0.3, target_modules=None)
ADAPTERS = {
    "lora": LORA,
    "adalora": AdaLora(
        initial_rank=6,
        rank=3,
        alpha=8,
        dropout=0.3,
        before=0.1,
        after=0.3,
        interval=1,
        beta=0.85,
        orthogonality=0.5,
        target_modules=None,
    ),
    "ia3": Ia3(target_modules=None, feedforward_modules=None),
}
# What they share is LoRA's, which AdaLoRA is too.
mostly_adalora = pytest.mark.parametrize("kind", [name if name == "adalora" else slow(name) for name in ADAPTERS])


def tuning(adapter=LORA, *, max_tokens: int = 64, drop_last: bool = True, **changes) -> AdapterTuning:
    changes = {"batch_size": 5, "epochs": 4, "warmup": 2, "schedule": "cosine", "learning_rate": 3e-2} | changes
    return AdapterTuning(tiny.optimization(**changes), adapter, max_tokens, drop_last)


def tuned(recipe, folder, *further, base=None, documents=DOCUMENTS, **changes):
    """Adapted model, facts and base."""
    base = base or tiny.model(1, VOCAB)
    make_trainer = tiny.compute().make_trainer

    def make_trainer_with_further(**arguments):
        return make_trainer(**arguments | {"callbacks": [*arguments["callbacks"], *further]})

    changes = {"micro_batch_size": 2, "make_trainer": make_trainer_with_further} | changes
    model, facts = tune(base, documents, recipe, TrainingRun(7, folder, tiny.compute(**changes)))
    return model, facts, base


def adapter_of(model) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items() if "lora_" in name or "ia3_" in name}


@torch.no_grad()
def logits(model) -> torch.Tensor:
    return model(input_ids=torch.arange(24).reshape(2, 12)).logits


@torch.no_grad()
def loss(model) -> float:
    """Not the model's own: to that peft adds what keeps AdaLoRA's factors orthogonal."""
    values = []
    for ids in map(torch.tensor, DOCUMENTS):
        log_probs = torch.log_softmax(model(input_ids=ids[None]).logits[0, :-1], 1)
        values.append(-log_probs[torch.arange(len(ids) - 1), ids[1:]].mean())
    return float(torch.stack(values).mean())


# Training ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=ADAPTERS)
def whole(request, tmp_path_factory):
    """A tuning from its first step to its last: its recipe, the adapted model, facts and the base."""
    recipe = tuning(ADAPTERS[request.param])
    return recipe, *tuned(recipe, tmp_path_factory.mktemp("whole"))


@pytest.mark.slow
def test_the_adapter_learns_and_the_model_stays_as_it_is(whole, tmp_path):
    _, model, facts, base = whole
    fresh = tiny.model(1, VOCAB)
    tiny.assert_equal_weights(tiny.weights(base), tiny.weights(fresh))
    assert torch.equal(logits(base), logits(fresh))
    assert loss(model) < loss(base)
    with model.disable_adapter():
        assert torch.equal(logits(model), logits(base))
    assert facts["num_sequences"] == 18
    assert facts["num_steps"] == 4 * 3  # the three documents that fill no batch are left out in each epoch
    assert facts["num_tuned_parameters"] == sum(
        value.numel() for name, value in saved_weights(model, tmp_path).items() if "ranknum" not in name
    )
    assert not model.training


def saved_weights(model, folder) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    save_adapter(model, folder / "saved")
    return load_file(folder / "saved" / "adapter_model.safetensors")


@pytest.mark.slow
def test_it_is_the_plain_loop(tmp_path):
    """LoRA without dropout against peft in a loop of a few lines, with AdamW and its schedule written out."""
    recipe = tuning(replace(LORA, dropout=0.0), weight_decay=0.1, drop_last=True)
    model, facts, base = tuned(recipe, tmp_path)
    expected = add_adapter(base, recipe.adapter, seed=7, num_steps=12).train()
    parameters = [parameter for parameter in expected.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(parameters, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1)
    steps = plan_steps(18, batch_size=5, epochs=4, seed=7, drop_last=True)
    for number, step in enumerate(steps):
        optimizer.param_groups[0]["lr"] = 3e-2 * learning_rate_factor(number, len(steps), recipe.optimization)
        total, count = torch.zeros(()), 0
        for ids in (torch.tensor([DOCUMENTS[index]]) for index in step):
            total = total + expected(input_ids=ids, labels=ids).loss * (ids.shape[1] - 1)
            count += ids.shape[1] - 1
        optimizer.zero_grad()
        (total / count).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    assert facts["num_steps"] == len(steps)
    tiny.assert_equal_weights(adapter_of(model), adapter_of(expected), atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [slow("lora"), "adalora"])  # what IA3 loses is what LoRA loses
def test_however_a_step_is_divided(tmp_path, kind):
    adapter = replace(ADAPTERS[kind], dropout=0.0)
    item, other = (
        tuned(tuning(adapter, epsilon=1e-3), tmp_path / str(size), micro_batch_size=size)[0] for size in (2, 5)
    )
    tiny.assert_equal_weights(adapter_of(item), adapter_of(other), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("whole", ["lora"], indirect=True)
def test_first_weights_and_dropout_come_from_the_seed_alone(whole, tmp_path):
    recipe, item, *_ = whole
    base = tiny.model(1, VOCAB)
    disturb_generators()
    before = torch.get_rng_state()
    add_adapter(base, LORA, seed=1, num_steps=1)
    assert torch.equal(before, torch.get_rng_state())
    tiny.assert_equal_weights(adapter_of(item), adapter_of(tuned(recipe, tmp_path)[0]))


@pytest.mark.slow
@mostly_adalora
def test_beside_a_bfloat16_model_an_adapter_is_float32(tmp_path, kind):
    base = tiny.model(1, VOCAB).to(torch.bfloat16)
    before = tiny.weights(base)
    model, _, _ = tuned(tuning(ADAPTERS[kind]), tmp_path, base=base)
    assert loss(model) < loss(base)
    assert {value.dtype for value in saved_weights(model, tmp_path).values()} == {torch.float32}
    assert base.dtype == torch.bfloat16
    tiny.assert_equal_weights(tiny.weights(base), before)


def test_plain_gradient_descent(tmp_path):
    """One step of KDS's optimizer: minus the rate times the gradient, here through B, which is 0 at first."""
    recipe = tuning(
        replace(LORA, dropout=0.0),
        optimizer="sgd",
        schedule="constant",
        warmup=0,
        epochs=1,
        gradient_clip=None,
        learning_rate=0.5,
        batch_size=18,
    )
    model, _, base = tuned(recipe, tmp_path)
    expected = add_adapter(base, recipe.adapter, seed=7, num_steps=1).train()
    total = sum(
        expected(input_ids=ids, labels=ids).loss * (ids.shape[1] - 1) for ids in (torch.tensor([d]) for d in DOCUMENTS)
    )
    (total / sum(len(ids) - 1 for ids in DOCUMENTS)).backward()
    for name, parameter in expected.named_parameters():
        if parameter.requires_grad:
            moved = parameter.detach() - 0.5 * parameter.grad
            torch.testing.assert_close(moved, model.get_parameter(name).detach(), rtol=1e-4, atol=1e-6)


# AdaLoRA ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_adalora_cuts_its_ranks_to_the_budget(tmp_path):
    ranks = []

    class See(tiny.lightning.Callback):
        def on_train_batch_end(self, trainer, module, *_):
            if trainer.global_step > len(ranks):
                values = [value for name, value in module.model.named_parameters() if "lora_E" in name]
                ranks.append(sum(int((value != 0).sum()) for value in values))

    model, facts, _ = tuned(tuning(ADAPTERS["adalora"]), tmp_path, See())
    assert facts["num_steps"] == len(ranks) == 12
    assert ranks[0] == 12  # two layers of rank 6, all of them until the share `before` is over
    assert all(later <= earlier for earlier, later in itertools.pairwise(ranks))
    assert set(ranks[-4:]) == {6}  # two layers of rank 3 on average, from the share `after` on
    saved = saved_weights(model, tmp_path)
    assert sum(value.numel() for name, value in saved.items() if "lora_E" in name) == 6
    loaded = load_adapter(tiny.model(1, VOCAB), tmp_path / "saved")
    torch.testing.assert_close(logits(loaded), logits(model), rtol=1e-5, atol=1e-5)


def test_adalora_needs_steps_to_cut_in(tmp_path):
    with pytest.raises(ValueError, match=r"AdaLoRA cuts its ranks between .* 1 steps leave too few"):
        tuned(tuning(ADAPTERS["adalora"], epochs=1, batch_size=18), tmp_path)


# Resume and what is kept ------------------------------------------------------------------------------------


# Three micro-batches of at most two to a step: within a step, after the last, after one (both also in test_resume.py).
@pytest.mark.slow
@pytest.mark.parametrize(
    ("whole", "stop_after"),
    [
        ("adalora", 11),
        *(slow(kind, place) for kind in ADAPTERS for place in (11, 36, 3) if (kind, place) != ("adalora", 11)),
    ],
    indirect=["whole"],
)
def test_goes_on_to_the_last_bit(whole, tmp_path, stop_after):
    recipe, model, facts, _ = whole
    weights = adapter_of(model)
    with pytest.raises(RuntimeError, match="interrupted"):
        tuned(recipe, tmp_path, StopAfter(stop_after), checkpoint_seconds=0.0)
    point = torch.load(max(tmp_path.glob(".resume-3-*.ckpt")), weights_only=True)
    names = {name.removeprefix("model.") for name in point["state_dict"]}
    assert names == {name for name in weights if "ranknum" not in name}  # no weights of the base
    disturb_generators()
    again, facts_again, base = tuned(recipe, tmp_path)
    tiny.assert_equal_weights(adapter_of(again), weights)
    assert facts_again == facts
    tiny.assert_equal_weights(tiny.weights(base), tiny.weights(tiny.model(1, VOCAB)))


@pytest.mark.slow
def test_what_is_saved_is_small_and_comes_back(whole, tmp_path):
    _, model, _, base = whole
    save_adapter(model, tmp_path / "saved")
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    base.save_pretrained(tmp_path / "base")
    size = (tmp_path / "saved" / "adapter_model.safetensors").stat().st_size
    assert size < 0.2 * (tmp_path / "base" / "model.safetensors").stat().st_size
    torch.testing.assert_close(logits(load_adapter(base, tmp_path / "saved")), logits(model), rtol=1e-6, atol=1e-6)
    with warnings.catch_warnings(action="ignore"):
        with_peft = PeftModel.from_pretrained(tiny.model(1, VOCAB), tmp_path / "saved").eval()
    torch.testing.assert_close(logits(with_peft), logits(model), rtol=1e-6, atol=1e-6)


def test_body_and_head_are_told_apart_under_an_adapter(whole):
    _, model, _, _ = whole
    split = split_forward(model)
    assert split.streaming, split.note
    ids = torch.arange(24).reshape(2, 12)
    with torch.no_grad():
        torch.testing.assert_close(split.head(split.body(ids)), logits(model), rtol=0, atol=1e-5)


# What is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("documents", [[], [[5], []]])
def test_nothing_to_tune_on(tmp_path, documents):
    with pytest.raises(ValueError, match="nothing to tune on"):
        tuned(tuning(), tmp_path, documents=documents)


def test_fewer_documents_than_a_batch(tmp_path):
    with pytest.raises(ValueError, match=r"whole batches of 8 documents; got 7 of two tokens or more"):
        tuned(tuning(batch_size=8), tmp_path, documents=[*DOCUMENTS[:7], [1]])
    _, facts, _ = tuned(tuning(batch_size=8, drop_last=False), tmp_path, documents=DOCUMENTS[:7])
    assert facts["num_steps"] == 4


@pytest.mark.parametrize(
    "adapter", [replace(LORA, target_modules=["q_proj"]), Ia3(["q_proj"], ["q_proj"])], ids=["lora", "ia3"]
)
def test_a_model_without_the_named_modules(tmp_path, adapter):
    base = tiny.model(1, VOCAB)
    with pytest.raises(
        ValueError, match=r"no modules called q_proj .* name some of query_key_value, dense, dense_h_to"
    ):
        tuned(tuning(adapter), tmp_path, base=base)
    assert torch.equal(logits(base), logits(tiny.model(1, VOCAB)))


def test_a_trainer_that_would_change_the_model_for_good(tmp_path):
    with pytest.raises(ValueError, match="An adapter shares its base model with other runs"):
        tuned(tuning(), tmp_path, precision="bf16-true")


def test_weights_that_training_ruined_are_never_an_adapter(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="no longer finite"):
        tuned(tuning(learning_rate=1e30, gradient_clip=None), tmp_path / "infinite")
    monkeypatch.setattr("nonmember.training.run.LARGEST_RISE", -9.0)  # as of a loss that has risen
    with pytest.raises(ValueError, match=r"diverged. The loss .* rose from \d"):
        tuned(tuning(), tmp_path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: replace(ADAPTERS["adalora"], initial_rank=3), "must be larger than rank"),
        (lambda: replace(ADAPTERS["adalora"], before=0.7), "leave some in between"),
        (lambda: Ia3(["dense"], None), "both or neither"),
        (lambda: Ia3(["dense"], ["other"]), "must be among the target_modules; got other"),
    ],
)
def test_recipes_that_make_no_sense(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# The schedule, the plan, the keys ---------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "batch_size"), [(18, 5), (20, 5), (5, 5)])
def test_a_plan_of_whole_batches_leaves_out_others_in_each_epoch(number, batch_size):
    steps = plan_steps(number, batch_size=batch_size, epochs=3, seed=1, drop_last=True)
    per_epoch = number // batch_size
    assert len(steps) == 3 * per_epoch
    assert {len(step) for step in steps} == {batch_size}
    for epoch in range(3):
        seen = [index for step in steps[epoch * per_epoch : (epoch + 1) * per_epoch] for index in step]
        assert len(set(seen)) == len(seen)


def test_what_changes_an_adapter_changes_its_key(tmp_path):
    shop = tiny.builder(tmp_path)
    recipes = [
        *(tuning(adapter) for adapter in ADAPTERS.values()),
        *(tuning(replace(LORA, **change)) for change in ({"rank": 5}, {"alpha": 9}, {"dropout": 0.1})),
        *(tuning(replace(LORA, target_modules=names)) for names in (["dense"], ["dense", "query_key_value"])),
        *(
            tuning(**change)
            for change in ({"optimizer": "sgd"}, {"warmup": 3}, {"max_tokens": 9}, {"drop_last": False})
        ),
    ]
    keys = {canonical_json(Trained(tiny.scratch(1), recipe, tiny.SUSPECT, seed=1).key(shop)) for recipe in recipes}
    assert len(keys) == len(recipes)
    item, other = (replace(LORA, target_modules=names) for names in (["a", "b"], ["b", "a"]))
    assert item == other


# In the workshop --------------------------------------------------------------------------------------------

TARGET = Trained(tiny.scratch(1), tiny.pretraining(), tiny.GENERAL, seed=1, label="target")
TUNED = Trained(TARGET, tuning(batch_size=8), tiny.SUSPECT, seed=2, label="tuned")
FURTHER = replace(TUNED, base=TUNED, corpus=tiny.GENERAL, label="further")


@pytest.fixture(scope="module")
def both_made(tmp_path_factory) -> Path:
    """A store with target and adapter."""
    folder = tmp_path_factory.mktemp("both")
    tiny.builder(folder).entry(TUNED)
    return folder


@pytest.fixture
def stocked(both_made, tmp_path) -> Path:
    """A copy of it."""
    return shutil.copytree(both_made, tmp_path / "stocked")


def observed(shop, spec):
    return shop.get(TokenStatistics(spec, tiny.SUSPECT, view="original", max_tokens=64)).log_prob.tolist()


@pytest.mark.slow
def test_base_and_tuned_come_from_one_model(stocked):
    alone = observed(tiny.builder(stocked), TARGET)
    shutil.rmtree(stocked / "observations")
    shop = tiny.builder(stocked)
    other = replace(TUNED, seed=3)
    first, second = observed(shop, TUNED), observed(shop, other)
    assert observed(shop, TARGET) == alone
    assert len({tuple(first), tuple(second), tuple(alone)}) == 3
    models = [shop.get(spec) for spec in (TARGET, TUNED, other)]
    weights = [{parameter.data_ptr() for parameter in loaded.model.parameters()} for loaded in models]
    assert weights[0] == weights[0] & weights[1] & weights[2]
    assert models[0].tokenizer is models[1].tokenizer
    assert TUNED.num_parameters(shop) == models[1].num_parameters > models[0].num_parameters
    # The two do not mix, in whatever order they are used.
    again = [logits(loaded.model) for loaded in reversed(models)][::-1]
    for loaded, expected in zip(models, again, strict=True):
        assert torch.equal(logits(loaded.model), expected)
    fresh = tiny.builder(stocked)
    assert torch.equal(logits(fresh.get(other).model), again[2])
    assert torch.equal(logits(fresh.get(TUNED).model), again[1])
    assert fresh.counters.models_trained == 0


@pytest.mark.slow
def test_an_adapter_leaves_memory_with_its_base(stocked):
    shop = tiny.builder(stocked)
    shop.get(TUNED)
    for seed in range(2, 5):
        shop.get(tiny.scratch(seed))
    assert not shop.memory.pools["adapted"]
    parameters = {parameter.data_ptr() for parameter in shop.get(TUNED).model.parameters()}
    assert {parameter.data_ptr() for parameter in shop.get(TARGET).model.parameters()} <= parameters


def test_the_entry_is_the_adapter(both_made):
    entry = tiny.builder(both_made).entry(TUNED)
    names = sorted(path.name for path in entry.path.iterdir())
    assert names == ["adapter_config.json", "adapter_model.safetensors", "curves.csv", "sidecar.json"]
    assert str(both_made) not in (entry.path / "adapter_config.json").read_text()
    assert entry.facts["num_dropped_documents"] == 0
    assert entry.facts["target_modules"] == ["query_key_value"]


@pytest.mark.slow
def test_an_adapter_on_an_adapter_is_on_the_merged_model(stocked):
    shop = tiny.builder(stocked)
    further = shop.get(FURTHER)
    with further.model.disable_adapter():
        torch.testing.assert_close(logits(further.model), logits(shop.get(TUNED).model), rtol=0, atol=1e-5)
    distilled = Trained(TUNED, tiny.distillation(), tiny.SUSPECT, seed=3, teacher=TARGET)
    assert shop.entry(distilled).facts["num_sequences"] == 34
    assert all(parameter.requires_grad for parameter in shop.get(distilled).model.parameters())


@pytest.mark.slow
@mostly_adalora
def test_a_merged_model_needs_no_adapter(stocked, tmp_path, kind):
    shop = tiny.builder(stocked)
    spec = replace(TUNED, training=tuning(ADAPTERS[kind], batch_size=8))
    save(spec.weights(shop), tmp_path / "merged")
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged").eval()
    loaded = shop.get(spec)
    torch.testing.assert_close(logits(merged), logits(loaded.model), rtol=0, atol=1e-5)
    assert not torch.allclose(logits(merged), logits(shop.get(TARGET).model), atol=1e-4)
    assert tiny.builder(tmp_path).get(Pretrained(str(tmp_path / "merged"))).num_parameters


def test_a_tuning_that_is_refused_names_the_model(tmp_path):
    few = tiny.texts("moss fern", "reed pine")
    with pytest.raises(ValueError, match=r"tuned cannot be tuned. Tuning takes whole batches of 8 documents; got 2"):
        tiny.builder(tmp_path).entry(replace(TUNED, corpus=few))


def test_a_base_of_fewer_bits_is_never_trained_itself(both_made, tmp_path):
    base = tiny.builder(both_made).entry(TARGET).path
    spec = Pretrained(str(base), quantization="8bit")
    with pytest.raises(ValueError, match="cannot be trained or merged"):
        tiny.builder(tmp_path).entry(replace(TARGET, base=spec))


def test_truth_of_a_tuned_model_knows_what_it_was_tuned_on(tmp_path):
    shop = tiny.builder(tmp_path)
    assert truth_about(shop, TUNED, tiny.SUSPECT) == "member"
    assert truth_about(shop, TARGET, tiny.SUSPECT) == "non_member"


# On the command line ----------------------------------------------------------------------------------------


@pytest.fixture
def tune_it(nonmember, make_model, tmp_path):
    """tune_it("export=x"): the command on 20 unseen documents."""
    write_rows(tmp_path / "unseen.jsonl", rows_of(tiny.random_texts(20, seed=6)))

    def call(*more):
        given = {"model.base.path": make_model(1), "model.corpus.source.path": "unseen.jsonl"}
        arguments = [*(f"{name}={value}" for name, value in given.items()), "model.training.max_tokens=128", *more]
        return nonmember("train", "model=tuned", "logger=none", *arguments)

    return call


@pytest.mark.slow
def test_an_adapter_is_exported_alone_or_merged(tune_it, make_model):
    def full_disk(_, to, **more):
        to.mkdir()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(to))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "copytree", full_disk)
        assert tune_it("export=adapter").status == 1
    assert not Path("adapter").exists(), "no half of a model"
    said = tune_it("export=adapter")
    assert (said.status, said.err) == (0, "")
    names = {path.name for path in Path("adapter").iterdir()}
    assert names == {"adapter_config.json", "adapter_model.safetensors"}
    merged = tune_it("export=merged", "merge=true")
    assert merged.status == 0
    assert Path(merged.last_line).samefile("merged")
    whole = AutoModelForCausalLM.from_pretrained("merged").eval()
    base = AutoModelForCausalLM.from_pretrained(make_model(1)).eval()
    assert not torch.allclose(logits(whole), logits(base), atol=1e-4)
    torch.testing.assert_close(logits(whole), logits(load_adapter(base, Path("adapter"))), rtol=0, atol=1e-5)
    assert (Path("merged") / "tokenizer.json").exists()


USUAL = {  # by model type: what LoRA and IA3 adapt, and what of it is IA3's inner layer
    "llama": ({"q_proj", "v_proj"}, {"k_proj", "v_proj", "down_proj"}, {"down_proj"}),  # of peft's tables
    "gpt2": ({"c_attn"}, {"c_attn", "mlp.c_proj"}, {"mlp.c_proj"}),
    "mixtral": ({"q_proj", "v_proj"}, {"k_proj", "v_proj", "w2"}, {"w2"}),
    "olmo": ({"q_proj", "v_proj"}, {"k_proj", "v_proj", "down_proj"}, {"down_proj"}),  # of none
    "olmo2": ({"q_proj", "v_proj"}, {"k_proj", "v_proj", "down_proj"}, {"down_proj"}),
    "phi3": ({"qkv_proj"}, {"qkv_proj", "down_proj"}, {"down_proj"}),
    "biogpt": ({"q_proj", "v_proj"}, {"k_proj", "v_proj", "fc2"}, {"fc2"}),
    "starcoder2": ({"q_proj", "v_proj"}, {"k_proj", "v_proj"}, set()),
    "persimmon": ({"query_key_value"}, {"query_key_value", "dense_4h_to_h"}, {"dense_4h_to_h"}),
}


def untrained(model_type: str) -> torch.nn.Module:
    settings = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    further = {"num_key_value_heads": 2} if model_type not in ("gpt2", "biogpt") else {}
    further |= {"pad_token_id": 0} if model_type in ("phi3", "olmo", "olmo2") else {}
    config = AutoConfig.for_model(model_type, vocab_size=VOCAB, **settings, **further)
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


@pytest.mark.slow
@pytest.mark.parametrize("model_type", USUAL)
def test_usual_modules_are_peft_s_or_those_that_the_model_has(model_type, caplog):
    model = untrained(model_type)
    caplog.set_level("INFO")
    found = [
        add_adapter(model, replace(ADAPTERS[kind], target_modules=None), seed=1, num_steps=9).active_peft_config
        for kind in ("lora", "ia3")
    ]
    of_lora, of_ia3, inner = USUAL[model_type]
    assert (found[0].target_modules, found[1].target_modules, found[1].feedforward_modules) == (of_lora, of_ia3, inner)
    is_known = model_type in ("llama", "gpt2", "mixtral")
    assert ("are adapted (adapter.target_modules names others)" in caplog.text) is not is_known


def test_where_nothing_usual_is_there_the_linear_modules_are_named():
    with pytest.raises(ValueError, match=r"no usual modules of a mamba model for lora; name some of in_proj, x_proj"):
        add_adapter(untrained("mamba"), LORA, seed=1, num_steps=9)
