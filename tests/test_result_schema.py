"""The schema of `result.json`: what is written is read back, also what earlier versions wrote; what models have read
stands in it as data."""

from __future__ import annotations

import io
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from rich.console import Console

import tiny
from flat_results import answer_like
from made_up_methods import PRISM
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.cli import table
from nonmember.config.choices import config_directory
from nonmember.config.roots import register
from nonmember.config.safety import instantiate
from nonmember.corpora import Component, Mixture
from nonmember.methods import Method
from nonmember.models.exposure import Exposures
from nonmember.records.exposure import NOT_READ, Exposure
from nonmember.results.result import (
    RESULT,
    SCHEMA_VERSION,
    AuditedModel,
    AuditQuestion,
    AuditResult,
    Exclusions,
    Health,
    Provenance,
    Statistics,
    Verdict,
)
from nonmember.results.seals import with_seal
from nonmember.training import Trained
from nonmember.training.planting import planted

OLDER = Path(__file__).parent / "older_results"  # written by commit 42d078f; all but `sealed` without their seals
UNREAD = tiny.texts(*tiny.random_texts(34, seed=77), name="unread")
BASE = Trained(tiny.scratch(1), tiny.pretraining(), tiny.GENERAL, seed=1, label="base")
REFERENCE = Trained(tiny.scratch(2), tiny.pretraining(), tiny.GENERAL, seed=2, label="reference")


# Written and read back ----------------------------------------------------------------------------------------------


def some_result(seed: int) -> AuditResult:
    rng = random.Random(seed)

    def maybe(value: Any) -> Any:
        return rng.choice([None, value])

    def number() -> float:
        return rng.choice([0.0, -1.5, 1e-300, rng.gauss(0, 1), rng.random() * 1e12])

    def text() -> str:
        return rng.choice(["", "plain", "a/b", "日本 \u2028 <&>", "line\nline", '"quoted"'])

    def exposure() -> Exposure | None:
        return maybe(Exposure(rng.choice([1.0, 0.5, 0.25]), rng.randrange(13)))

    models = {
        f"role{n}": AuditedModel(exposure(), maybe(text()), rng.random() < 0.5, tuple(f"d{i}" for i in range(n)))
        for n in range(rng.randrange(4))
    }
    nested = {text(): {"a": [1, number(), None], "b": {text(): maybe(number())}, "c": True}}
    return AuditResult(
        answer_like("inconclusive", text(), maybe(text()), maybe(number()), rng.randrange(1000)),
        AuditQuestion(
            "prism",
            nested,
            text(),
            maybe("membership"),
            text(),
            0.05,
            maybe(text()),
            maybe(text()),
            text(),
            maybe(text()),
            models,
            maybe("member"),
            rng.randrange(2**32),
            text(),
            text(),
            text(),
            {"half": maybe(text()), "n": number()},
        ),
        Statistics(
            text(),
            maybe(number()),
            maybe((-1.0, number())),
            maybe(number()),
            maybe(number()),
            maybe(number()),
            rng.randrange(1000),
            maybe(7),
            nested,
            "ranks",
        ),
        Verdict("inconclusive", text(), tuple(text() for _ in range(rng.randrange(3)))),
        Health({"ce_before": number()}, {"target": {"nll": number()}}, {"suspect": {"target": {"sigma": 3}}}),
        Exclusions({"suspect": {text(): text()}, "heldout": {}}, {text(): 3}),
        Provenance({"audit": text()}, {"torch": text()}, {"models_trained": 1}, number()),
    )


@pytest.mark.parametrize("seed", range(25))
def test_what_is_saved_is_loaded(tmp_path, seed):
    result = some_result(seed)
    result.save(tmp_path / RESULT)
    assert AuditResult.load(tmp_path / RESULT).to_json() == result.to_json()  # 7 stays 7, and is no 7.0
    assert json.loads((tmp_path / RESULT).read_text())["schema_version"] == SCHEMA_VERSION


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"schema_version": 2},
            "its schema version must be 3; got 2; the last version that reads it is nonmember 0.1.0",
        ),
        ({"question": {"method": "prism"}}, "result.question.settings: Field required"),
        ({"verdict": "inconclusive"}, "result.verdict: Input should be an object"),
        ({"more": 1}, "result.more: Unexpected keyword argument"),
    ],
)
def test_what_is_no_result_of_this_schema_is_refused_in_a_sentence(tmp_path, change, why):
    path = tmp_path / RESULT
    path.write_text(json.dumps(with_seal(json.loads(some_result(1).to_json()) | change, [])))
    with pytest.raises(ValueError, match=rf"is not a result this version can read \(.*{why}.*Move it away"):
        AuditResult.load(path)


# Exposures ---------------------------------------------------------------------------------------------------------


def continued(corpus) -> Trained:
    return Trained(BASE, tiny.pretraining(), corpus, seed=3, label="label that tells nothing")


def mixture(exposures: int, suspect=tiny.SUSPECT) -> Mixture:
    return Mixture((Component(tiny.GENERAL, 1), Component(suspect, exposures)))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (BASE, NOT_READ),
        (continued(tiny.GENERAL), NOT_READ),
        (continued(mixture(12)), Exposure(1.0, 12)),
        (continued(Mixture((Component(mixture(3), 2),))), Exposure(1.0, 6)),
        (Trained(continued(mixture(2)), tiny.pretraining(), tiny.SUSPECT, seed=1), Exposure(1.0, 3)),
        (Trained(BASE, tiny.distillation(), tiny.SUSPECT, seed=1, teacher=BASE), Exposure(1.0, 1)),
    ],
)
def test_exposure_is_counted_from_the_recipe(model, expected):
    assert Exposures(tiny.builder(Path("never made")), tiny.SUSPECT).exposure(model) == expected


@pytest.mark.parametrize("reading", [Exposure(0.5, 8), Exposure(1.0, 4), NOT_READ])
def test_a_planted_model_has_the_exposure_that_was_planted(reading):
    model = planted(
        BASE,
        tiny.pretraining(),
        tiny.GENERAL,
        {"a": tiny.SUSPECT, "b": UNREAD},
        [reading, Exposure(1.0, 1)],
        "a",
        0,
        seed=1,
    )
    exposures = Exposures(tiny.builder(Path("never made")), tiny.SUSPECT)
    assert exposures.exposure(model) == reading
    assert exposures.truth(model) == {8: None, 4: "member", 0: "non_member"}[reading.exposures]


def test_some_documents_read_more_often_than_others_have_no_one_exposure():
    half = tiny.texts(*[item.text for item in tiny.build(tiny.SUSPECT).documents[:17]], name="half")
    exposures = Exposures(tiny.builder(Path("never made")), tiny.SUSPECT)
    assert exposures.exposure(continued(half)) == Exposure(0.5, 1)
    assert exposures.exposure(continued(Mixture((Component(tiny.SUSPECT, 1), Component(half, 1))))) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "times"), [("micro_target", None), ("micro_target_low", 2), ("micro_target_high", 12)]
)
def test_targets_of_the_demo_tell_how_often_they_read_the_members(name, times):
    register()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_directory()), version_base=None):
        config = compose("audit", ["world=micro", f"model@target={name}", "data=micro_suspect", "method=prism"])
    target, members = instantiate(config.target), instantiate(config.world.members)
    components, is_all = target.corpora_read()
    assert is_all
    assert [item.exposures for item in components if item.corpus == members] == ([times] if times else [])


@pytest.mark.slow
def test_an_audit_records_exposures_counters_and_what_it_tests(tmp_path):
    method = replace(PRISM, num_resamples=20)
    audit = Audit(continued(mixture(3)), REFERENCE, tiny.SUSPECT, method, seed=5, corpus_label="texts")
    result = run_audit(audit, tiny.builder(tmp_path / "store"), tmp_path / "one")
    assert AuditResult.load(tmp_path / "one" / RESULT) == result
    assert result.question.models == {
        "target": AuditedModel(Exposure(1.0, 3), "base", distilled=("distilled",)),
        "reference": AuditedModel(NOT_READ, "reference"),
        "distilled": AuditedModel(Exposure(1.0, 1), "reference"),
    }
    assert result.question.truth == "member"
    assert (result.question.claim, result.statistics.bounds) == ("non_membership", (-2.0, 2.0))
    counters = result.health.counters["suspect"]
    assert counters.keys() == {"target", "reference", "distilled"}
    assert all(set(counted) == {"sigma_below_eps"} for counted in counters.values())
    around = {"bos": None, "eos": None}
    assert result.provenance.tokens == {"target": around, "reference": around, "distilled": around}
    table.show([result], console=Console(file=(printed := io.StringIO())))
    assert "tokens added to each text" not in printed.getvalue(), "all models read alike"


def test_every_test_says_what_it_claims_and_what_its_p_value_is_of():
    waiting = [Method]
    while waiting:
        method = waiting.pop()
        waiting += method.__subclasses__()
        assert (method.claim is None) == (method.null_hypothesis == ""), method
        if method.statistic_bounds is not None:
            assert method.statistic_bounds[0] < method.statistic_bounds[1]
