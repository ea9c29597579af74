"""One audit from a file of texts to a result on disk: complete, repeatable, nothing made twice."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import tiny
from made_up_methods import LLM_DI, PAIRED_T, PRISM
from marks import slow
from nonmember.artifacts import Builder, Memory
from nonmember.audits import run as run_module
from nonmember.audits.keys import audit_keys
from nonmember.audits.measuring import join
from nonmember.audits.question import Audit
from nonmember.audits.record import finished, table_of_scores
from nonmember.audits.run import run_audit
from nonmember.corpora import Documents
from nonmember.methods import Blind, RankAgreement
from nonmember.models import Scratch
from nonmember.observations import Scored, TokenStatistics
from nonmember.observations.passes import tokens as observer
from nonmember.records import Corpus, Document
from nonmember.results.result import RESULT, AuditResult
from nonmember.scores import DocumentScores, Loss, MinK, MinKPlusPlus, ReferenceRatio
from nonmember.tracking.trackers import NoTracker
from nonmember.training import Trained
from nonmember.training import run as training_run
from tiny import jsonl

RANK_AGREEMENT = RankAgreement(Loss(), "spearman", num_resamples=100, alpha=0.05, max_tokens=64)
NOTHING_MADE = {"models_trained": 0, "tokens_observed": 0, "answers_asked": 0}


def write_jsonl(path: Path, texts: list[str]) -> Documents:
    path.write_text(
        "".join(json.dumps({"id": f"{path.stem}-{n}", "text": text}) + "\n" for n, text in enumerate(texts))
    )
    return jsonl(str(path), id_field="id", text_field="text")


@pytest.fixture
def audit(tmp_path) -> Audit:
    """Trained target and reference, neither of which read the 40 suspect documents."""
    general = write_jsonl(tmp_path / "general.jsonl", tiny.random_texts(40, seed=1))
    suspect = write_jsonl(tmp_path / "suspect.jsonl", tiny.random_texts(40, seed=2))
    target, reference = (
        Trained(tiny.scratch(seed, general), tiny.pretraining(), general, seed=seed, label=label)
        for seed, label in ((1, "target"), (2, "reference"))
    )
    return Audit(target, reference, suspect, PRISM, seed=5, corpus_label="suspect texts")


@pytest.fixture
def untrained(audit) -> Audit:
    """The same question about models with random weights: nothing but the distilled reference is trained."""
    return replace(audit, target=audit.target.base, reference=audit.reference.base)


def run(audit: Audit, folder: Path, name: str = "one", store: str = "store", tracker=None, **compute) -> AuditResult:
    shop = tiny.builder(folder / store, **compute)
    return run_audit(audit, replace(shop, tracker=tracker or NoTracker()), folder / name)


@pytest.fixture(scope="module")
def answered(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("answered")


@pytest.fixture
def made(untrained, tmp_path, answered) -> Audit:
    """That question, for which nothing is left to train or to observe: the store has it all."""
    if not (answered / "store").exists():
        run(untrained, answered)
    shutil.copytree(answered / "store", tmp_path / "store")
    return untrained


def found(audit: Audit, folder: Path) -> AuditResult | None:
    return finished(folder, audit_keys(audit, tiny.builder(folder.parent / "store"))["audit"])


def strict(path: Path) -> dict:
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(path.read_text(), parse_constant=refuse)


def numbers(result: AuditResult) -> dict:
    """All but what a run had to make, how long it took and where it lies."""
    told = replace(
        result,
        answer=replace(result.answer, finished="", other_looks=0),
        question=replace(result.question, cell=""),
        provenance=replace(result.provenance, made={}, seconds=0.0),
    )
    return asdict(told)


def forbid_work(monkeypatch) -> None:
    def never(*_, **__):
        raise AssertionError("this was made already")

    monkeypatch.setattr(observer, "observe", never)
    monkeypatch.setattr(training_run, "train", never)


# The result -------------------------------------------------------------------------------------------------


def test_a_result_says_everything_and_can_be_had_again(audit, tmp_path, monkeypatch):
    result = run(audit, tmp_path)
    told = strict(tmp_path / "one" / "result.json")
    assert set(told) == {field.name for field in fields(AuditResult)} | {"seal"}
    assert told["seal"]["files"].keys() == {"scores.parquet", "distribution.parquet"}
    assert AuditResult.load(tmp_path / "one" / "result.json") == result
    assert (result.question.method, result.question.target, result.question.reference) == (
        "prism",
        "target",
        "reference",
    )
    assert (result.question.corpus, result.question.truth, result.question.seed, result.question.alpha) == (
        "suspect texts",
        "non_member",
        5,
        0.05,
    )
    assert (result.statistics.num_documents, result.exclusions.num_documents, result.exclusions.documents) == (
        40,
        0,
        {},
    )
    assert result.verdict.decision in ("evidence_of_non_membership", "inconclusive")
    assert result.verdict.allowed_claim
    assert 0 < result.statistics.p_value <= 1
    assert result.statistics.value == pytest.approx(
        result.statistics.details.get("rho_reference_target") - result.statistics.details.get("rho_distilled_target")
    )
    assert result.statistics.ci_low < result.statistics.ci_high
    assert result.question.score == "minkpp(0.2)"
    assert result.question.settings["score"] == {"kind": "MinKPlusPlus", "k": 0.2, "compat": "none"}
    assert result.question.settings["distillation"]["optimization"]["learning_rate"] == 1e-2
    assert result.health.training.keys() == {"ce_before", "ce_after", "kl_before", "kl_after"}
    assert result.health.capability.keys() == {"target", "reference", "distilled"}
    assert (
        result.health.capability["target"]["num_parameters"] == result.health.capability["distilled"]["num_parameters"]
    )
    assert 2 < result.health.capability["target"]["nll"] < np.log(tiny.VOCAB_SIZE)
    assert result.provenance.keys.keys() == {"target", "reference", "distilled", "corpus", "audit"}
    assert {"python", "nonmember", "torch", "transformers", "lightning"} <= result.provenance.versions.keys()
    assert (result.provenance.made["models_trained"], result.provenance.made["observations_found"]) == (3, 0)
    assert result.provenance.made["tokens_observed"] == 3 * sum(observed(audit, tmp_path))
    assert result.provenance.seconds > 0
    assert any("below 150" in warning for warning in result.verdict.warnings)

    scores = pq.read_table(tmp_path / "one" / "scores.parquet")
    assert scores.column_names == ["doc_id", "target", "reference", "distilled"]
    assert scores["doc_id"].to_pylist() == [f"suspect-{n}" for n in range(40)]
    distribution = pq.read_table(tmp_path / "one" / "distribution.parquet")["statistic"].to_numpy()
    assert (1 + np.sum(distribution <= 1e-12)) / 201 == pytest.approx(result.statistics.p_value)

    anew = run(audit, tmp_path, "anew", store="another store")
    assert numbers(anew) == numbers(result)
    assert (tmp_path / "anew" / "scores.parquet").read_bytes() == (tmp_path / "one" / "scores.parquet").read_bytes()

    forbid_work(monkeypatch)
    monkeypatch.setattr(Scratch, "load_tokenizer", None)  # which would bring torch
    found = run(audit, tmp_path, "found")
    assert numbers(found) == numbers(result)
    assert found.provenance.made == NOTHING_MADE | {"models_found": 3, "observations_found": 3, "answers_found": 0}


def observed(audit: Audit, folder: Path) -> list[int]:
    table = tiny.builder(folder / "store").get(
        TokenStatistics(audit.target, audit.suspect, view="original", max_tokens=64)
    )
    return table.num_tokens.tolist()


@pytest.mark.slow
def test_another_fraction_takes_no_forward_pass(made, tmp_path, monkeypatch):
    shop = tiny.builder(tmp_path / "store")
    item = run_audit(made, shop, tmp_path / "one")
    forbid_work(monkeypatch)
    for k in (0.1, 0.5, 1.0):
        other = replace(made, method=replace(PRISM, score=MinKPlusPlus(k)))
        for again in (shop, tiny.builder(tmp_path / "store")):
            result = run_audit(other, again, tmp_path / f"{k}")
            assert result.provenance.made.items() >= NOTHING_MADE.items()
            assert result.question.score == f"minkpp({k:g})"
            assert result.statistics.details.get("rho_reference_target") != item.statistics.details.get(
                "rho_reference_target"
            )
            assert result.provenance.keys["distilled"] == item.provenance.keys["distilled"]
            assert result.provenance.keys["audit"] != item.provenance.keys["audit"]


@pytest.mark.slow
def test_a_method_beside_another_shares_its_distilled_reference(made, tmp_path, monkeypatch):
    run(made, tmp_path)
    forbid_work(monkeypatch)
    result = run(replace(made, method=PAIRED_T), tmp_path, "paired")
    told = strict(tmp_path / "paired" / "result.json")
    assert (result.verdict.decision, result.provenance.made["models_trained"]) == ("score_only", 0)
    assert told["statistics"]["ci_low"] is None
    assert told["statistics"]["details"].keys() == {"mean_difference"}
    assert 0 <= result.statistics.p_value <= 1
    assert not (tmp_path / "paired" / "distribution.parquet").exists()


@pytest.mark.slow
def test_another_seed_trains_the_distilled_reference_anew_and_nothing_else(audit, tmp_path):
    item = run(audit, tmp_path)
    other = run(replace(audit, seed=6), tmp_path, "other")
    assert other.provenance.made["models_trained"] == 1
    assert other.statistics.details.get("rho_reference_target") == item.statistics.details.get("rho_reference_target")
    assert other.statistics.details.get("rho_distilled_target") != item.statistics.details.get("rho_distilled_target")


@pytest.mark.slow
@pytest.mark.parametrize(("given", "expected"), [(None, "member"), ("non_member", "non_member")])
def test_truth_is_the_askers_or_else_the_recipes(audit, tmp_path, given, expected):
    target = replace(audit.target, base=audit.target.base, corpus=audit.suspect)
    cheap = replace(audit, reference=audit.reference.base, method=RANK_AGREEMENT)
    assert run(replace(cheap, target=target, truth=given), tmp_path).question.truth == expected


def test_what_the_asker_says_must_be_one_of_two(audit):
    with pytest.raises(ValueError, match="truth must be one of member, non_member; got"):
        replace(audit, truth="perhaps")


# Documents that cannot be scored, too few of them, weak models ----------------------------------------------


def with_short_texts(audit: Audit, folder: Path, number: int, of: int = 60) -> Audit:
    texts = ["m"] * number + tiny.random_texts(of - number, seed=2)
    return replace(audit, suspect=write_jsonl(folder / "short.jsonl", texts))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "warns", "invalid"),
    [slow(1, False, False), slow(12, True, False), (3, False, False), (4, True, False), (13, True, True)],
)
def test_documents_without_a_scored_token_leave_all_roles_with_a_reason(untrained, tmp_path, number, warns, invalid):
    result = run(with_short_texts(untrained, tmp_path, number), tmp_path)
    assert (result.statistics.num_documents, result.exclusions.num_documents) == (60 - number, number)
    reason = "target: no scored token: the text has fewer than two tokens"
    assert result.exclusions.documents == {"suspect": {f"short-{n}": reason for n in range(number)}}
    table = pq.read_table(tmp_path / "one" / "scores.parquet")
    assert table["doc_id"].to_pylist() == [f"short-{n}" for n in range(number, 60)]
    assert all(np.isfinite(table[role].to_numpy()).all() for role in ("target", "reference", "distilled"))
    assert any("could not be scored" in warning for warning in result.verdict.warnings) == warns
    assert (result.verdict.decision == "invalid") == invalid
    assert ("nothing may be concluded" in result.verdict.allowed_claim) == invalid
    strict(tmp_path / "one" / "result.json")


def test_too_few_documents_are_refused_before_anything_is_made(untrained, tmp_path):
    few = replace(untrained, suspect=write_jsonl(tmp_path / "few.jsonl", tiny.random_texts(29, seed=2)))
    with pytest.raises(ValueError, match="suspect texts has 29 documents and prism needs at least 30"):
        run(few, tmp_path)
    assert not (tmp_path / "one").exists()
    assert not (tmp_path / "store").exists()


def test_fewer_than_thirty_after_exclusions_is_invalid(untrained, tmp_path):
    result = run(with_short_texts(untrained, tmp_path, 2, of=31), tmp_path)
    assert result.verdict.decision == "invalid"
    assert any("29 documents are left" in warning for warning in result.verdict.warnings)


def test_nothing_to_score_at_all(untrained, tmp_path):
    with pytest.raises(ValueError, match=r"40 of 40 documents could not be scored .*Give longer texts"):
        run(with_short_texts(untrained, tmp_path, 40, of=40), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("hidden_size", "warns"), [(8, True), (16, False), slow(32, False)])
def test_a_reference_smaller_than_the_target_warns(untrained, tmp_path, hidden_size, warns):
    smaller = replace(untrained.reference, architecture=untrained.reference.architecture | {"hidden_size": hidden_size})
    result = run(replace(untrained, reference=smaller), tmp_path)
    assert any("reference is smaller than the target" in warning for warning in result.verdict.warnings) == warns


@pytest.mark.slow
def test_a_distilled_reference_that_learnt_nothing_warns(untrained, tmp_path):
    idle = replace(PRISM, distillation=tiny.distillation(learning_rate=1e-30))
    result = run(replace(untrained, method=idle), tmp_path)
    assert result.health.training["ce_before"] == result.health.training["ce_after"]
    assert sum("did not fall" in warning for warning in result.verdict.warnings) == 2
    assert result.statistics.value == 0  # the distilled reference is the reference
    assert result.verdict.decision == "inconclusive"


# Who hears of it --------------------------------------------------------------------------------------------


class Listener(NoTracker):
    takes_media = True

    def __init__(self, result: Path):
        self.result, self.told, self.curves, self.tables = result, {}, {}, {}

    def log(self, prefix, values, step):
        for name, value in values.items():
            self.curves.setdefault(f"{prefix}/{name}", []).append((step, value))

    def summarise(self, values):
        assert self.result.exists(), "the disk comes first"
        self.told |= values

    def histogram(self, name, values):
        self.tables[name] = values

    def scores(self, name, columns):
        self.tables[name] = columns


@pytest.mark.slow
def test_the_tracker_hears_the_result_under_names_that_never_change(audit, tmp_path):
    listener = Listener(tmp_path / "one" / "result.json")
    shop = tiny.builder(tmp_path / "store")
    shop.tracker = listener
    result = run_audit(audit, shop, tmp_path / "one")
    health = {f"health/{name}": value for name, value in result.health.training.items()}
    names_of_old = health | {
        "test/statistic": result.statistics.value,
        "test/p_value": result.statistics.p_value,
        "test/ci_low": result.statistics.ci_low,
        "test/ci_high": result.statistics.ci_high,
        "rho/reference_target": result.statistics.details.get("rho_reference_target"),
        "rho/distilled_target": result.statistics.details.get("rho_distilled_target"),
        "verdict": result.verdict.decision,
        "num_documents": 40,
        "num_excluded": 0,
    }
    assert {name: listener.told[name] for name in names_of_old} == names_of_old
    assert len(listener.tables["test/distribution"]) == 200
    assert list(listener.tables["scores"]) == ["doc_id", "target", "reference", "distilled"]
    assert {"train/loss", "train/ce", "train/kl", "train/learning_rate"} <= listener.curves.keys()
    assert {"train_target/loss", "train_reference/loss"} <= listener.curves.keys()
    assert [step for step, _ in listener.curves["train/loss"]] == list(range(5))


def test_a_tracker_that_fails_costs_no_result(made, tmp_path):
    class Broken(NoTracker):
        def summarise(self, values):
            raise ConnectionError("no network")

    with pytest.raises(ConnectionError):
        run(made, tmp_path, tracker=Broken())
    assert found(made, tmp_path / "one") is not None


def test_a_further_process_writes_no_result(made, tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "process_rank", lambda: 1)
    run(made, tmp_path)
    assert not (tmp_path / "one").exists()


# Skipped where it is there ----------------------------------------------------------------------------------


def test_a_finished_question_is_known_by_all_that_determines_it(made, tmp_path):
    result = run(made, tmp_path)
    shop = tiny.builder(tmp_path / "store")
    folder = tmp_path / "one"
    assert finished(folder, audit_keys(made, shop)["audit"]) == result
    assert finished(folder, audit_keys(replace(made, corpus_label="another name"), shop)["audit"]) == result
    others = {
        "seed": replace(made, seed=6),
        "truth": replace(made, truth="member"),
        "alpha": replace(made, method=replace(PRISM, alpha=0.01)),
        "score": replace(made, method=replace(PRISM, score=MinK(0.2))),
        "resamples": replace(made, method=replace(PRISM, num_resamples=201)),
        "lambda": replace(made, method=replace(PRISM, distillation=tiny.distillation(lambda_=0.6))),
        "target": replace(made, target=made.reference),
        "method": replace(made, method=PAIRED_T),
    }
    for other in others.values():
        assert finished(folder, audit_keys(other, shop)["audit"]) is None
    keys = {audit_keys(other, shop)["audit"] for other in (made, *others.values())}
    assert len(keys) == 1 + len(others)
    assert found(made, tmp_path / "nothing") is None


def test_the_seed_determines_a_result_also_where_nothing_is_trained(untrained, tmp_path):
    drawn = replace(untrained, method=RANK_AGREEMENT)
    item, other = (audit_keys(audit, tiny.builder(tmp_path)) for audit in (drawn, replace(drawn, seed=6)))
    assert {name for name in item if item[name] != other[name]} == {"audit"}


def test_a_result_this_version_cannot_read_is_made_again_and_kept(made, tmp_path):
    first = run(made, tmp_path)
    (tmp_path / "one" / "result.json").write_text('{"of": "an older version"}')
    assert found(made, tmp_path / "one") is None
    assert numbers(run(made, tmp_path)) == numbers(first)
    (kept,) = (tmp_path / "one").glob("result-unreadable-*.json")
    assert kept.read_text() == '{"of": "an older version"}'


def test_a_result_whose_scores_were_damaged_is_made_anew_without_a_duplicate(made, tmp_path, caplog):
    first = run(made, tmp_path)
    folder, key = tmp_path / "one", first.provenance.keys["audit"]
    scores = (folder / "scores.parquet").read_bytes()
    for damage in (lambda path: path.write_bytes(scores[:-9]), Path.unlink):
        damage(folder / "scores.parquet")
        assert finished(folder, key) is None
        assert f"{folder / 'scores.parquet'} must" in caplog.text
        assert numbers(run(made, tmp_path)) == numbers(first)
        assert finished(folder, key) is not None
        assert sorted(path.name for path in folder.iterdir()) == [
            "audit.html",
            "distribution.parquet",
            RESULT,
            "scores.parquet",
        ]
        assert (folder / "scores.parquet").read_bytes() == scores
    edited = json.loads((folder / RESULT).read_text())
    edited["statistics"]["p_value"] = 0.9
    (folder / RESULT).write_text(json.dumps(edited))
    assert finished(folder, key) is None
    run(made, tmp_path)
    (kept,) = folder.glob("result-unreadable-*.json")
    assert json.loads(kept.read_text())["statistics"]["p_value"] == 0.9


def test_a_changed_text_is_another_question(made, tmp_path):
    run(made, tmp_path)
    write_jsonl(tmp_path / "suspect.jsonl", ["moss", *tiny.random_texts(40, seed=2)[1:]])
    assert found(made, tmp_path / "one") is None


# Scores and roles -------------------------------------------------------------------------------------------


def scores_of(**values: float | None) -> DocumentScores:
    numbers = np.array([np.nan if value is None else value for value in values.values()])
    return DocumentScores(tuple(values), numbers, {name: "why" for name, value in values.items() if value is None})


def test_roles_are_joined_by_document_never_zipped():
    corpus = Corpus(tuple(Document(name, name.upper(), f"of {name}") for name in "abcd"))
    scores = join(
        corpus, {"target": scores_of(a=1, b=2, c=None, d=4), "reference": scores_of(d=40, c=30, b=None, a=10)}
    )
    assert (scores.texts, scores.cluster_ids) == (("A", "D"), ("of a", "of d"))
    assert scores.doc_ids == ("a", "d")
    assert scores.values["target"].tolist() == [1, 4]
    assert scores.values["reference"].tolist() == [10, 40]
    assert {name: str(item) for name, item in scores.excluded.items()} == {"c": "target: why", "b": "reference: why"}


def test_a_table_of_scores_keeps_undefined_values():
    columns, reasons = table_of_scores(["one", "two"], [scores_of(a=1, b=None), scores_of(b=2, a=3)])
    assert columns["doc_id"] == ["a", "b"]
    np.testing.assert_array_equal(columns["one"], [1, np.nan])
    assert columns["two"].tolist() == [3, 2]
    assert reasons == {"one": {"b": "why"}, "two": {}}


def test_a_score_gets_what_it_declares(untrained, tmp_path):
    shop = tiny.builder(tmp_path / "store")

    def inputs_of(score, **more):
        return Scored("target", untrained.target, untrained.suspect, score, 64, **more).inputs(shop)

    assert inputs_of(Loss()).reference is None
    with pytest.raises(ValueError, match="compares with a reference model"):
        inputs_of(ReferenceRatio())
    inputs = inputs_of(ReferenceRatio(), reference=untrained.reference)
    assert inputs.reference.doc_ids == inputs.tokens.doc_ids
    assert not np.array_equal(inputs.reference.log_prob, inputs.tokens.log_prob)


# Methods that compare two sets of documents -----------------------------------------------------------------


@pytest.mark.slow
def test_suspect_and_held_out_text_go_through_one_audit(untrained, tmp_path):
    heldout = write_jsonl(tmp_path / "heldout.jsonl", [*tiny.random_texts(35, seed=3), ""])
    audit = replace(untrained, method=LLM_DI, heldout=heldout, heldout_label="held out", world="micro", sweep="table4")
    result = run(audit, tmp_path)
    assert (result.question.target, result.question.reference, result.question.heldout) == (
        "gpt_neox-scratch",
        "gpt_neox-scratch",
        "held out",
    )
    assert (result.question.world, result.question.sweep, result.question.cell) == ("micro", "table4", "one")
    assert (result.statistics.num_documents, result.statistics.details["num_heldout"]) == (40, 35)
    assert {name: list(ids) for name, ids in result.exclusions.documents.items()} == {"heldout": ["heldout-35"]}
    assert result.provenance.keys.keys() == {"target", "reference", "corpus", "heldout", "audit"}
    other = replace(audit, reference=replace(audit.reference, seed=7))
    assert found(other, tmp_path / "one") is None, "some features are against it"
    scores = pq.read_table(tmp_path / "one" / "scores.parquet").to_pydict()
    assert scores["group"] == ["suspect"] * 40 + ["heldout"] * 35
    assert len(scores) == 2 + 16 + 4 + 2
    # Target on both sets as they are and perturbed, reference on both: no forward pass more.
    assert len([*(tmp_path / "store" / "observations").glob("[!.]*")]) == 6
    assert found(audit, tmp_path / "one") == result
    fewer = write_jsonl(tmp_path / "fewer.jsonl", [*tiny.random_texts(29, seed=3), ""])
    result = run(replace(audit, heldout=fewer), tmp_path)
    assert result.verdict.decision == "invalid", "of a whole method's audit, whatever it looks at itself"
    assert any("29 documents of the held-out set could be scored" in warning for warning in result.verdict.warnings)
    shorter = write_jsonl(tmp_path / "shorter.jsonl", tiny.random_texts(34, seed=3))
    assert found(replace(audit, heldout=shorter), tmp_path / "one") is None


def test_the_blind_baseline_asks_no_model(untrained, tmp_path, monkeypatch):
    forbid_work(monkeypatch)
    heldout = write_jsonl(tmp_path / "heldout.jsonl", tiny.random_texts(40, seed=3))
    blind = Blind(num_folds=5, inverse_penalty=1.0, num_resamples=100, alpha=0.05, max_tokens=64)
    result = run(replace(untrained, method=blind, heldout=heldout), tmp_path)
    assert (result.question.target, result.question.reference, result.question.truth, result.statistics.num_tokens) == (
        None,
        None,
        None,
        None,
    )
    assert result.health.capability == {}
    assert 0.2 < result.statistics.value < 0.8
    few = write_jsonl(tmp_path / "few.jsonl", tiny.random_texts(10, seed=3))
    with pytest.raises(ValueError, match="The held-out set has 10 documents and blind needs at least 30"):
        run(replace(untrained, method=blind, heldout=few), tmp_path)


# What the cells of a sweep share ----------------------------------------------------------------------------


@pytest.mark.slow
def test_cells_share_what_was_read_and_count_for_themselves(untrained, tmp_path, monkeypatch):
    alone = run(untrained, tmp_path, "alone", store="another store")
    memory = Memory()
    store = tiny.builder(tmp_path / "store").store
    loads = []
    for kind in (Scratch, Trained):
        weights, load = kind.weights, kind.load
        monkeypatch.setattr(kind, "weights", lambda self, *a, weights=weights: loads.append(self) or weights(self, *a))
        monkeypatch.setattr(kind, "load", lambda self, *a, load=load: loads.append(self) or load(self, *a))

    def cell(name: str, **changes) -> AuditResult:
        shop = Builder(store, tiny.compute(), NoTracker(), memory)
        return run_audit(replace(untrained, **changes), shop, tmp_path / name)

    first = cell("first")
    assert numbers(first) == numbers(alone)
    before = len(loads)
    second = cell("second", method=replace(PRISM, distillation=tiny.distillation(lambda_=0.2)))
    # One copy of the reference to be trained, the reference again, which made room for that, and the distilled one.
    assert len(loads) - before == 3
    assert second.provenance.made["models_trained"] == 1
    assert second.provenance.made["observations_found"] == 2
    assert second.provenance.made["tokens_observed"] * 3 == first.provenance.made["tokens_observed"]
