"""A trained model is the one a plain loop over whole steps gives, however the steps are divided."""

from __future__ import annotations

import functools
import gc
import json
import math
from dataclasses import asdict, replace

import pandas
import pytest
import torch

import tiny
from marks import slow
from nonmember.tracking.curves import CurveLogger
from nonmember.tracking.trackers import CsvLogging, RunInfo
from nonmember.training import run
from nonmember.training.batches import packed_sequences, plan_steps
from nonmember.training.modules import learning_rate_factor
from nonmember.training.recipes import Optimization
from nonmember.training.run import Teacher, TrainingRun, train

VOCAB, END, SEED = 60, 0, 7
DOCUMENTS = tiny.sequences_of_ids(18, seed=3, vocab_size=VOCAB)
ALL = (slice(VOCAB), slice(VOCAB))
# A large epsilon: where a gradient is nearly 0, Adam's step would otherwise be the sign of a rounding error.
RECIPE = {"epsilon": 1e-3, "weight_decay": 0.1, "batch_size": 4, "epochs": 2, "gradient_clip": 0.5, "warmup": 0.3}


def trained(recipe, folder, *, documents=DOCUMENTS, teacher=None, base=None, loggers=(), **compute):
    student = base or tiny.model(1, VOCAB)
    run = TrainingRun(SEED, folder, tiny.compute(**compute), loggers)
    facts = train(student, documents, recipe, run, end_of_text=END, teacher=teacher)
    return student, facts


def sums_over_document(student, ids, teacher=None, tau=1.0, num_shared=VOCAB):
    """Cross-entropy and KL(teacher || student) summed over the scored tokens of one unpadded document."""
    ids = torch.tensor([ids])
    logits = student(ids).logits[0, :-1]
    cross_entropy = -torch.log_softmax(logits, 1)[torch.arange(len(logits)), ids[0, 1:]].sum()
    if teacher is None:
        return cross_entropy, torch.zeros(())
    with torch.no_grad():
        log_p = torch.log_softmax(teacher(ids).logits[0, :-1, :num_shared] / tau, 1)
    log_q = torch.log_softmax(logits[:, :num_shared] / tau, 1)
    return cross_entropy, (log_p.exp() * (log_p - log_q)).sum()


def by_hand(student, sequences, recipe: Optimization, *, lambda_=0.0, tau=1.0, teacher=None):
    """One document at a time, one backward pass a step, the linear schedule written out."""
    steps = plan_steps(len(sequences), batch_size=recipe.batch_size, epochs=recipe.epochs, seed=SEED)
    num_warmup = round(recipe.warmup * len(steps))
    optimizer = torch.optim.AdamW(
        student.parameters(), betas=recipe.betas, eps=recipe.epsilon, weight_decay=recipe.weight_decay
    )
    for number, step in enumerate(steps):
        rising, falling = (number + 1) / num_warmup, (len(steps) - number) / (len(steps) - num_warmup)
        optimizer.param_groups[0]["lr"] = recipe.learning_rate * min(rising, falling)
        sums = [sums_over_document(student, sequences[index], teacher, tau) for index in step]
        num_tokens = sum(len(sequences[index]) - 1 for index in step)
        loss = sum((1 - lambda_) * ce + lambda_ * tau**2 * kl for ce, kl in sums) / num_tokens
        optimizer.zero_grad()
        loss.backward()
        if recipe.gradient_clip is not None:
            torch.nn.utils.clip_grad_norm_(student.parameters(), recipe.gradient_clip)
        optimizer.step()
    return len(steps)


# 18 documents twice in batches of 4: nine whole steps. 19 documents: nine whole ones and one of two.
@pytest.mark.parametrize(("number", "micro_batch_size"), [slow(18, 1), slow(18, 4), (19, 3), (19, 64)])
def test_distillation_is_the_plain_loop_however_divided(tmp_path, monkeypatch, number, micro_batch_size):
    documents = tiny.sequences_of_ids(number, seed=3, vocab_size=VOCAB)
    recipe = tiny.distillation(lambda_=0.6, tau=2.0, **RECIPE)
    teacher = tiny.model(2, VOCAB)
    if micro_batch_size == 3:
        monkeypatch.setattr(run, "MIB", 64)  # four rows of logits at a time
    student, facts = trained(
        recipe, tmp_path, documents=documents, teacher=Teacher(teacher, ALL), micro_batch_size=micro_batch_size
    )
    expected = tiny.model(1, VOCAB)
    num_steps = by_hand(expected, documents, recipe.optimization, lambda_=0.6, tau=2.0, teacher=teacher)
    tiny.assert_equal_weights(tiny.weights(student), tiny.weights(expected), atol=1e-6)
    assert facts["num_steps"] == num_steps
    assert facts["num_tokens"] == 2 * sum(len(ids) - 1 for ids in documents)
    moved = max(
        (item - other).abs().max().item()
        for item, other in zip(student.parameters(), tiny.model(1, VOCAB).parameters(), strict=True)
    )
    assert moved > 1e-3  # else equal weights say nothing
    assert all(item.grad is None for item in student.parameters())
    weight, held = next(student.parameters()), [x for x in gc.get_objects() if isinstance(x, torch.optim.Optimizer)]
    assert not any(weight in item.state for item in held)  # three times the weights


@pytest.mark.slow
@pytest.mark.parametrize("micro_batch_size", [1, 3, slow(64)])
def test_pretraining_is_the_plain_loop_however_divided(tmp_path, micro_batch_size):
    recipe = tiny.pretraining(10, **RECIPE)
    student, facts = trained(recipe, tmp_path, micro_batch_size=micro_batch_size)
    sequences = packed_sequences(DOCUMENTS, length=10, end_of_text=END, seed=SEED)
    expected = tiny.model(1, VOCAB)
    by_hand(expected, sequences, recipe.optimization)
    tiny.assert_equal_weights(tiny.weights(student), tiny.weights(expected), atol=1e-6)
    assert facts["num_sequences"] == len(sequences)


@pytest.mark.slow
def test_an_optimizer_and_a_schedule_by_class_are_the_plain_loop_and_part_of_the_key(tmp_path):
    by_class = {
        "optimizer": functools.partial(torch.optim.NAdam, betas=[0.8, 0.9], eps=1e-3),
        "schedule": functools.partial(torch.optim.lr_scheduler.CosineAnnealingLR, T_max="num_steps"),
    }
    recipe = tiny.pretraining(10, batch_size=4, epochs=2, gradient_clip=None, **by_class)
    student, facts = trained(recipe, tmp_path, micro_batch_size=3)
    sequences = packed_sequences(DOCUMENTS, length=10, end_of_text=END, seed=SEED)
    expected = tiny.model(1, VOCAB)
    optimizer = torch.optim.NAdam(expected.parameters(), lr=1e-2, betas=(0.8, 0.9), eps=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, facts["num_steps"])
    for step in plan_steps(len(sequences), batch_size=4, epochs=2, seed=SEED):
        sums = [sums_over_document(expected, sequences[index])[0] for index in step]
        optimizer.zero_grad()
        (sum(sums) / sum(len(sequences[index]) - 1 for index in step)).backward()
        optimizer.step()
        schedule.step()
    tiny.assert_equal_weights(tiny.weights(student), tiny.weights(expected), atol=1e-6)
    kept = asdict(recipe)["optimization"]
    assert json.loads(json.dumps(kept["optimizer"])) == {
        "target": "torch.optim.NAdam",
        "arguments": [["betas", [0.8, 0.9]], ["eps", 1e-3]],
    }
    assert kept["schedule"]["target"] == "torch.optim.lr_scheduler.CosineAnnealingLR"
    assert hash(recipe) == hash(tiny.pretraining(10, batch_size=4, epochs=2, gradient_clip=None, **by_class))


@pytest.mark.slow
@pytest.mark.parametrize("divided", [slow({"micro_batch_size": 1}), {"micro_batch_size": 3}])
def test_curves_are_of_whole_steps_however_divided(tmp_path, divided):
    def curves(folder, **compute):
        log = CsvLogging().start(RunInfo("a", "b", "c", [], {}, folder))
        trained(
            tiny.distillation(**RECIPE),
            folder,
            teacher=Teacher(tiny.model(2, VOCAB), ALL),
            loggers=[CurveLogger(log, "train")],
            measure_health=False,
            **compute,
        )
        return pandas.read_csv(folder / "metrics.csv").set_index(["name", "step"])["value"].sort_index()

    whole, parts = curves(tmp_path / "whole", micro_batch_size=64), curves(tmp_path / "parts", **divided)
    assert len(whole["train/kl"]) == 9  # 18 documents twice, the last step a whole one too
    pandas.testing.assert_series_equal(parts, whole, rtol=1e-5)


@pytest.mark.slow
def test_padded_vocabularies_are_cut_to_the_shared_ids(tmp_path):
    # The student has 4 rows more than the tokenizer, the teacher 12; the cross-entropy is over all rows.
    recipe = tiny.distillation(lambda_=1.0, tau=2.0, **RECIPE)
    teacher = tiny.model(2, VOCAB + 12)
    student, facts = trained(recipe, tmp_path, teacher=Teacher(teacher, ALL), base=tiny.model(1, VOCAB + 4))
    expected = tiny.model(1, VOCAB + 4)
    by_hand(expected, DOCUMENTS, recipe.optimization, lambda_=1.0, tau=2.0, teacher=teacher)
    tiny.assert_equal_weights(tiny.weights(student), tiny.weights(expected), atol=1e-6)
    assert facts["kl_after"] < facts["kl_before"]


@pytest.mark.slow
def test_health_is_measured_before_and_after_at_temperature_1(tmp_path):
    teacher = tiny.model(2, VOCAB)
    recipe = tiny.distillation(tau=4.0, batch_size=4)
    before = tiny.model(1, VOCAB)
    after, facts = trained(recipe, tmp_path, teacher=Teacher(teacher, ALL), micro_batch_size=5)
    num_tokens = sum(len(ids) - 1 for ids in DOCUMENTS)
    for when, model in (("before", before), ("after", after)):
        with torch.no_grad():
            sums = [sums_over_document(model, ids, teacher) for ids in DOCUMENTS]
        assert facts[f"ce_{when}"] == pytest.approx(float(sum(ce for ce, _ in sums)) / num_tokens, abs=1e-5)
        assert facts[f"kl_{when}"] == pytest.approx(float(sum(kl for _, kl in sums)) / num_tokens, abs=1e-5)
    assert not after.training


@pytest.mark.slow
def test_a_number_of_steps_in_place_of_epochs(tmp_path):
    teacher, recipe = Teacher(tiny.model(2, VOCAB), ALL), tiny.distillation(batch_size=4, epochs=2)
    by_epochs, facts = trained(recipe, tmp_path / "epochs", teacher=teacher)
    by_steps, _ = trained(replace(recipe, num_steps=facts["num_steps"]), tmp_path / "steps", teacher=teacher)
    tiny.assert_equal_weights(tiny.weights(by_steps), tiny.weights(by_epochs), atol=0)
    few = trained(replace(recipe, num_steps=3), tmp_path / "few", teacher=teacher)[1]
    (first, *_) = plan_steps(18, batch_size=12, epochs=1, seed=SEED)  # as three of four sequences
    assert (few["num_steps"], few["num_tokens"]) == (3, sum(len(DOCUMENTS[index]) - 1 for index in first))
    assert [replace(recipe, num_steps=steps).num_epochs(18) for steps in (1, 4, 5, 46, None)] == [1, 1, 2, 11, 2]


@pytest.mark.slow
def test_the_teacher_is_read_in_evaluation_mode_and_left_as_it_was(tmp_path):
    dropout = {"hidden_dropout": 0.5, "attention_dropout": 0.5}
    recipe = tiny.distillation(batch_size=4)
    dropping = tiny.model(2, VOCAB, **dropout).train()
    before = tiny.weights(dropping)
    student, _ = trained(recipe, tmp_path, teacher=Teacher(dropping, ALL))
    tiny.assert_equal_weights(tiny.weights(dropping), before)
    expected, _ = trained(recipe, tmp_path, teacher=Teacher(tiny.model(2, VOCAB), ALL))
    tiny.assert_equal_weights(tiny.weights(student), tiny.weights(expected))


@pytest.mark.slow
def test_the_student_trains_with_its_dropout_drawn_from_the_seed(tmp_path):
    recipe = tiny.pretraining(10, **RECIPE)
    runs = []
    for dropout in (0.0, 0.5, 0.5):
        base = tiny.model(1, VOCAB, hidden_dropout=dropout)
        torch.manual_seed(len(runs))  # the generators' state before a run does not matter
        runs.append(tiny.weights(trained(recipe, tmp_path, base=base)[0]))
    tiny.assert_equal_weights(runs[1], runs[2])
    with pytest.raises(AssertionError):
        tiny.assert_equal_weights(runs[0], runs[1])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`gradient_checkpointing_enable` is deprecated")
def test_gradient_checkpointing_changes_nothing(tmp_path):
    recipe = tiny.pretraining(10, **RECIPE)
    plain, checkpointed = (trained(recipe, tmp_path, gradient_checkpointing=value)[0] for value in (False, True))
    tiny.assert_equal_weights(tiny.weights(plain), tiny.weights(checkpointed), atol=1e-6)


@pytest.mark.slow
def test_documents_of_one_token_are_not_distilled_from_and_long_ones_cut(tmp_path):
    documents = [[5], [], *DOCUMENTS, list(range(30))]
    recipe = tiny.distillation(max_tokens=10, batch_size=4)
    _, facts = trained(recipe, tmp_path, documents=documents, teacher=Teacher(tiny.model(2, VOCAB), ALL))
    assert facts["num_sequences"] == len(DOCUMENTS) + 1
    assert facts["num_tokens"] == sum(min(10, len(ids)) - 1 for ids in documents if len(ids) >= 2)


# What is refused --------------------------------------------------------------------------------------------


def test_nothing_to_train_on(tmp_path):
    with pytest.raises(ValueError, match="nothing to train on"):
        trained(tiny.distillation(), tmp_path, documents=[[5], []], teacher=Teacher(tiny.model(2, VOCAB), ALL))
    with pytest.raises(ValueError, match="nothing to train on"):  # but an end of text
        trained(tiny.pretraining(), tmp_path, documents=[[]])


@pytest.mark.parametrize("recipe", [tiny.pretraining(200), tiny.distillation(max_tokens=200)])
def test_more_than_the_models_read(tmp_path, recipe):
    teacher = Teacher(tiny.model(2, VOCAB), ALL)
    with pytest.raises(ValueError, match=r"has 200 tokens, and the model reads at most 128\. Lower"):
        trained(recipe, tmp_path, documents=[[1] * 200], teacher=teacher)


def test_distillation_without_a_teacher(tmp_path):
    with pytest.raises(ValueError, match="needs a teacher"):
        trained(tiny.distillation(), tmp_path)


@pytest.mark.parametrize(
    ("rate", "sentence"),
    [(1e30, r"no longer finite.*learning rate \(1e\+30\)"), (3.0, r"diverged. The loss .* rose from \d.*rate \(3.0\)")],
)
def test_weights_that_training_ruined_are_never_a_model(tmp_path, rate, sentence):
    with pytest.raises(ValueError, match=sentence):
        trained(tiny.pretraining(10, learning_rate=rate, gradient_clip=None), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [{"limit_train_batches": 2}, {"max_steps": 2}])
def test_a_trainer_that_stops_early_is_no_interruption(tmp_path, limit):
    make_trainer = tiny.compute().make_trainer
    with pytest.raises(ValueError, match=r"made 2 of 5 steps. Take limit_train_batches, max_steps"):
        trained(
            tiny.distillation(batch_size=4),
            tmp_path,
            teacher=Teacher(tiny.model(2, VOCAB), ALL),
            make_trainer=lambda **arguments: make_trainer(**arguments | limit),
        )


# The schedule -----------------------------------------------------------------------------------------------


def factors(num_steps: int, **changes) -> list[float]:
    recipe = tiny.optimization(**changes)
    return [learning_rate_factor(step, num_steps, recipe) for step in range(num_steps)]


def test_linear_schedule_by_hand():
    assert factors(10, warmup=0.2) == pytest.approx([0.5, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8])
    assert factors(4, warmup=0.0) == pytest.approx([1, 0.75, 0.5, 0.25])
    assert factors(4, warmup=0.0, final_fraction=0.2) == pytest.approx([1, 0.8, 0.6, 0.4])
    assert factors(4, warmup=0) == factors(4, warmup=0.0)  # whole numbers are steps
    assert factors(20, warmup=4)[:5] == pytest.approx([0.25, 0.5, 0.75, 1, 1])
    assert factors(20, warmup=30)[-1] == pytest.approx(20 / 30)
    assert factors(32, warmup=0.05)[:3] == [0.5, 1, 1]  # the paper's, of two steps


def test_cosine_and_constant_schedules_by_hand():
    half = math.sqrt(0.5)
    assert factors(5, warmup=0.2, schedule="cosine") == pytest.approx([1, 1, (1 + half) / 2, 0.5, (1 - half) / 2])
    assert factors(5, warmup=0.2, schedule="cosine", final_fraction=0.1)[3] == pytest.approx(0.1 + 0.9 * 0.5)
    assert factors(5, warmup=0.4, schedule="constant", final_fraction=0.1) == pytest.approx([0.5, 1, 1, 1, 1])


@pytest.mark.parametrize("warmup", [0.0, 0.05, 0.99])
@pytest.mark.parametrize("num_steps", [1, 2, 3])
def test_few_steps_have_a_learning_rate_too(num_steps, warmup):
    values = factors(num_steps, warmup=warmup)
    assert all(0 < value <= 1 for value in values)
    assert max(values) == 1


@pytest.mark.slow
@pytest.mark.parametrize("logits_budget_mib", [slow(16), 1])
def test_mixed_precision_keeps_float32_weights_and_nearly_the_same_numbers(tmp_path, monkeypatch, logits_budget_mib):
    monkeypatch.setattr(run, "MIB", 1000)
    recipe = tiny.distillation(batch_size=4, epsilon=1e-3)
    settings = {"teacher": Teacher(tiny.model(2, VOCAB), ALL), "logits_budget_mib": logits_budget_mib}
    _, facts = trained(recipe, tmp_path, **settings)
    mixed, mixed_facts = trained(recipe, tmp_path, precision="bf16-mixed", **settings)
    assert {parameter.dtype for parameter in mixed.parameters()} == {torch.float32}
    assert mixed_facts["kl_after"] == pytest.approx(facts["kl_after"], rel=0.05)
    assert mixed_facts["kl_after"] != facts["kl_after"]


def test_weights_that_were_trained_in_bfloat16_come_back_into_the_float32_model(tmp_path):
    """Such a trainer rounds a model for good, so it gets a copy."""
    student, facts = trained(tiny.pretraining(**RECIPE), tmp_path, precision="bf16-true")
    weights, before = tiny.weights(student), tiny.weights(tiny.model(1, VOCAB))
    assert {weight.dtype for weight in weights.values()} == {torch.float32}
    assert all(torch.equal(weight, weight.bfloat16().float()) for weight in weights.values())
    assert max((weights[name] - before[name]).abs().max() for name in before) > 1e-2, "more than rounding"
    assert facts["num_steps"] > 0
