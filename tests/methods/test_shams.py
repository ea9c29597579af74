"""Shams: what is exchanged, what stays the auditor's, and that clearance refuses what PRISM is fooled by."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

import tiny
from made_up_methods import GATES, PAIRED_T, PRISM, clearance
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.methods import Roles
from nonmember.methods.clearance.controls import PlantedControls
from nonmember.methods.clearance.shams import Damaged, OnOtherText, ShamClearance, ShamPairedT, ShamPrism
from nonmember.models import Noised
from nonmember.records.exposure import Exposure
from nonmember.training import Trained

NONE, OFTEN = Exposure(1.0, 0), Exposure(1.0, 6)
STAND_IN = Trained(tiny.scratch(1), tiny.pretraining(), tiny.GENERAL, seed=1, label="stand-in")
REFERENCE = Trained(tiny.scratch(2), tiny.pretraining(), tiny.GENERAL, seed=2, label="reference")
CONTROLS = PlantedControls(STAND_IN, tiny.pretraining(), tiny.GENERAL, [NONE, OFTEN], seeds=[1, 2])
TARGET = replace(CONTROLS.models(tiny.SUSPECT)[2].model, seed=9, label="target")  # has read it often
OTHER = tiny.texts(*tiny.random_texts(34, seed=8), name="other")
THIRD = tiny.texts(*tiny.random_texts(60, seed=9), name="third")
CLEARANCE = clearance(
    CONTROLS, OFTEN, THIRD, gates=replace(GATES, max_seed_sd=0.5, max_layout_auc=0.9, min_separation=-2.0)
)
ROLES = Roles(TARGET, REFERENCE, tiny.SUSPECT, seed=7)
KINDS = {ShamPrism: PRISM, ShamPairedT: PAIRED_T, ShamClearance: CLEARANCE}


def given(kind, sham):
    method = KINDS[kind]
    return kind(**{field.name: getattr(method, field.name) for field in fields(method)}, sham=sham)


def models(method) -> dict[tuple[str, str], object]:
    return {
        (name, role): item.model
        for name, group in method.groups(ROLES).items()
        for role, item in group.measured.items()
    }


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_sham_it_is_the_method_itself(kind):
    assert models(given(kind, None)) == models(KINDS[kind])
    assert given(kind, None).name == KINDS[kind].name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sham", [OnOtherText(OTHER, lambda_=0.0), Damaged(0.3)])
def test_only_the_targets_distilled_references_are_exchanged(kind, sham):
    honest, fooled = models(KINDS[kind]), models(given(kind, sham))
    assert honest.keys() == fooled.keys()
    moved = {key for key in honest if honest[key] != fooled[key]}
    seeds = ("", "/2") if kind is ShamClearance else ("",)
    columns = ("distilled", "loss/distilled", "kl/distilled") if kind is ShamClearance else ("distilled",)
    places = {("suspect", f"{column}{seed}") for column in columns for seed in seeds}
    if kind is ShamClearance:
        places |= {("third", f"{column}{seed}") for column in columns[1:] for seed in seeds}
    assert moved == places
    for key in moved:
        assert fooled[key] == sham(honest[key])


def test_what_a_sham_is():
    honest = models(PRISM)["suspect", "distilled"]
    other = OnOtherText(OTHER, lambda_=0.0)(honest)
    assert (other.corpus, other.teacher, other.base, other.seed) == (OTHER, TARGET, REFERENCE, honest.seed)
    assert replace(other.training, lambda_=honest.training.lambda_) == honest.training
    assert other.training.lambda_ == 0
    assert Damaged(0.3)(honest) == Noised(honest, 0.3, honest.seed)


@pytest.mark.slow
def test_clearance_refuses_a_sham_and_says_why(tmp_path):
    """End to end: noise larger than the weights."""
    method = replace(given(ShamClearance, Damaged(5.0)), distillation_seeds=[1], shams=False)
    audit = Audit(TARGET, REFERENCE, tiny.SUSPECT, method, seed=7, corpus_label="suspect")
    result = run_audit(audit, tiny.builder(tmp_path / "store"), tmp_path / "run")
    assert (result.question.method, result.question.truth, result.verdict.decision) == (
        "clearance",
        "member",
        "invalid",
    )
    assert not result.statistics.details["gates"]["kl"]["passed"]
    assert any("The fall of distilled's divergence" in warning for warning in result.verdict.warnings)
    assert result.question.settings["sham"] == {"kind": "Damaged", "scale": 5.0}
