"""Distilling the reference again: with real models, small ones."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_up_audits import SECRET, bundled, checked, gathered
from made_up_questions import CLEARANCE, MC_PDD, PRISM, PRISM_GATES, asked, audit

import tiny
from nonmember.audits.keys import audit_keys
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.evidence.gathering import Gathered, Included, gather
from nonmember.evidence.repeating import model_of, observer, trainer
from nonmember.methods import PairedT
from nonmember.methods.prism.ladder import Ladder
from nonmember.models import Pretrained
from nonmember.models.loading import save
from nonmember.reports.audit_page import write as pages
from nonmember.training import Trained

METHOD = PairedT(PRISM.score, tiny.distillation(), alpha=0.05, max_tokens=64)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Two models in folders, an audit of them, and what a bundle tells of it."""
    root = tmp_path_factory.mktemp("retraining")
    artifacts = tiny.builder(root / "store")
    for name, seed in (("target", 1), ("reference", 2)):
        (root / name).mkdir()
        save(Trained(tiny.scratch(seed), tiny.pretraining(), tiny.GENERAL, seed=seed).weights(artifacts), root / name)
    question = Audit(
        Pretrained(str(root / "target")), Pretrained(str(root / "reference")), tiny.SUSPECT, METHOD, 5, "suspect texts"
    )
    return SimpleNamespace(root=root, question=question, one=told(question, artifacts, root / "run"))


def told(question: Audit, artifacts: Any, folder: Path) -> Gathered:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "write_page", lambda *_: folder)
        run_audit(question, artifacts, folder, audit_keys(question, artifacts))
    return gather(question, artifacts, folder, SECRET, Included())


def lines(one: Gathered, root: Path, path: Path, **given: Any) -> dict[str, Any]:
    """What is said of the reference."""
    bundled([one], path, Included())
    plain = {
        "documents": one.texts,
        "secret": SECRET,
        "model": root / "target",
        "reference": root / "reference",
        "num_documents": 34,
        "observe": lambda *_: None,
        "retrain": trainer(tiny.builder),
    }
    return {line.what: line for line in checked(path, **plain | given).lines if line.what.startswith("reference")}


@pytest.mark.slow
def test_the_same_recipe_gives_the_same_scores(world, tmp_path):
    said = lines(world.one, world.root, tmp_path / "bundle")["reference"]
    assert said.kind == "ok", said
    assert "34 documents drawn now" in said.told


@pytest.mark.slow
def test_the_rate_that_a_ladder_chose_is_taken_and_not_the_one_that_was_asked_for(world, tmp_path):
    gates = replace(
        PRISM_GATES, min_ce_gain=-9.0, min_kl_gain=-9.0, max_kl_rise=99.0, max_nll_rise=99.0, min_characters=5
    )
    method = replace(PRISM, gates=gates, ladder=Ladder([0.03]))
    general = tiny.texts(*tiny.random_texts(100, seed=9), name="further")
    question = replace(world.question, method=method, general=general)
    item = told(question, tiny.builder(tmp_path / "store"), tmp_path / "run")
    assert item.described["recipes"]["distilled"]["recipe"]["optimization"]["learning_rate"] == 0.01
    assert item.result["question"]["settings"]["distillation"]["optimization"]["learning_rate"] == 0.03
    said = lines(item, world.root, tmp_path / "bundle")["reference"]
    assert said.kind == "ok", said


def changed(one: Gathered, by: float, **provenance: str) -> Gathered:
    tables, result = copy.deepcopy(one.tables), copy.deepcopy(one.result)
    tables["scores.parquet"]["distilled"][3] += by
    result["provenance"]["versions"] |= provenance
    return replace(one, tables=tables, result=result)


@pytest.mark.slow
def test_other_scores_are_found_where_nothing_else_explains_them(world, tmp_path):
    said = lines(changed(world.one, 0.001), world.root, tmp_path / "bundle")["reference"]
    assert said.kind == "FAILED"
    assert "The scores are not those of a reference made by this recipe, or the audit ran on a GPU" in said.told
    assert lines(changed(world.one, 0.00001), world.root, tmp_path / "bundle")["reference"].kind == "ok"


@pytest.mark.slow
def test_a_difference_between_libraries_is_no_accusation(world, tmp_path):
    said = lines(changed(world.one, 0.001, torch="1.0"), world.root, tmp_path / "bundle")["reference"]
    assert said.kind == "not checked"
    assert "rank correlation with the stated scores" in said.told
    assert "no sign of a lie" in said.told
    assert "torch 1.0 there" in said.told


@pytest.mark.slow
def test_another_recipe_is_found(world, tmp_path):
    described = copy.deepcopy(world.one.described)
    described["recipes"]["distilled"]["seed"] = 6
    said = lines(replace(world.one, described=described), world.root, tmp_path / "bundle")["reference"]
    assert said.kind == "FAILED"


@pytest.mark.slow
def test_what_cannot_be_trained_again_is_said(world, tmp_path):
    def why(one: Gathered, kind: str = "not checked", **given: Any) -> str:
        (said, *_) = lines(one, world.root, tmp_path / "bundle", **given).values()
        assert said.kind == kind
        return said.told

    few = world.one.texts[:-2]
    assert "2 of them were not given" in why(world.one, documents=few)
    assert "needs the whole package" in why(world.one, "FAILED", retrain=None)
    assert "needs the folder of the target" in why(world.one, "FAILED", model=None)
    assert "needs --documents and --secret" in why(world.one, "FAILED", secret=None)
    described = copy.deepcopy(world.one.described)
    described["recipes"]["distilled"]["recipe"]["of tomorrow"] = 1
    assert "none that this version knows" in why(replace(world.one, described=described))
    described = copy.deepcopy(world.one.described)
    described["recipes"]["distilled"]["corpus"] = "[path left out]"
    assert "left out of the bundle" in why(replace(world.one, described=described))
    for change, said in (
        (lambda one: one["recipes"]["distilled"]["recipe"].update(kind="Pretraining"), "it is no distillation"),
        (lambda one: one["columns"]["suspect"]["distilled"]["score"].update(kind="Zlib"), "is not made again here"),
        (lambda one: one["recipes"].pop("distilled"), "no distilled reference was made"),
    ):
        described = copy.deepcopy(world.one.described)
        change(described)
        assert said in why(replace(world.one, described=described))
    described = copy.deepcopy(world.one.described)
    described["recipes"]["distilled"]["corpus"] = "f" * 16
    assert "names other documents than" in why(replace(world.one, described=described), "FAILED")


@pytest.mark.slow
def test_a_model_is_observed_again_on_documents_that_nobody_knew_before(world, tmp_path):
    def observed(one: Gathered, **given: Any) -> dict[str, Any]:
        bundled([one], tmp_path / "bundle", Included())
        plain = {
            "documents": one.texts,
            "secret": SECRET,
            "model": world.root / "target",
            "num_documents": 3,
            "observe": observer(tiny.builder),
        }
        lines = checked(tmp_path / "bundle", **plain | given).lines
        return {line.what: line for line in lines if line.what in ("model", "files of the model")}

    assert observed(world.one)["model"].told.startswith("3 documents drawn now")
    other = observed(world.one, model=world.root / "reference")
    assert [line.kind for line in other.values()] == ["FAILED", "FAILED"]
    assert "This is another model" in other["model"].told
    assert "other files than the audited model" in other["files of the model"].told
    none = observed(world.one, documents=[("another", "document")])["model"]
    assert (none.kind, none.told) == ("not checked", "none of the given documents is a committed one")
    (name,) = world.one.described["columns"]["suspect"]["target"]["tables"]
    table = {
        key: [one if key == "document" else one[1:] for one in values] for key, values in world.one.tokens[name].items()
    }
    shorter = observed(replace(world.one, tokens={**world.one.tokens, name: table}))["model"]
    assert shorter.kind == "FAILED"
    assert "are stated" in shorter.told
    described = copy.deepcopy(world.one.described)
    for how in described["columns"]["suspect"].values():
        how["tables"] = []
    without = observed(replace(world.one, described=described))["model"]
    assert "holds no token statistics of the target" in without.told


@pytest.mark.slow
def test_models_of_a_made_up_world_are_no_folders(tmp_path):
    item = gathered(audit(CLEARANCE, heldout=None), tmp_path / "run")
    said = lines(item, tmp_path, tmp_path / "bundle")
    assert list(said) == ["reference", "reference/2"], "one for each seed"
    assert all("was itself made by a recipe" in line.told for line in said.values())
    item = gathered(asked(MC_PDD), tmp_path / "other")
    assert "mc_pdd distils no reference" in lines(item, tmp_path, tmp_path / "bundle")["reference"].told


def test_a_model_is_read_as_its_key_says():
    key = {"pretrained": {"files": "0", "dtype": "bfloat16", "attention": "eager", "bos": "never"}}
    assert model_of(Path("f"), key) == Pretrained("f", dtype="bfloat16", attention="eager", bos="never")
