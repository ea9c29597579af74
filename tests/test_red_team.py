"""Presets of the red team: each changes what it says it changes, and nothing else of the audit."""

from __future__ import annotations

import functools
import gzip
import json
import os
from dataclasses import replace
from types import SimpleNamespace

import pytest
from omegaconf import DictConfig, OmegaConf

import tiny
from marks import slow
from nonmember.audits.question import Audit
from nonmember.config.build import build_audit
from nonmember.config.choices import options
from nonmember.corpora import Mixture, NearDuplicates, Part, Viewed
from nonmember.generated.picked import Picked
from nonmember.methods.clearance.shams import Damaged, OnOtherText
from nonmember.models import PerturbedOutputs
from nonmember.records import Corpus, Document
from nonmember.training import Trained
from test_configs import SWEEPS, composed
from tiny import Texts

PRESETS = [name for name in options("experiment") if name.startswith("red_")]
SOONEST = ("red_sham", "red_noise", "red_agreeing", "red_reader", "red_wrapped")  # one of each kind; all with -m slow
METHODS = ("red_prism", "red_clearance", "red_paired_t")


GIVEN = "NONMEMBER_DECOP_DIR" in os.environ


@pytest.fixture(autouse=True, scope="module")
def passages(tmp_path_factory):
    """A file in the place of the passages, where none are given."""
    with pytest.MonkeyPatch.context() as patch:
        if not GIVEN:
            folder = tmp_path_factory.mktemp("decop")
            line = {"text": "a passage", "paraphrases": ["another"], "book": "A"}
            with gzip.open(folder / "public_domain_passages.jsonl.gz", "wt") as file:
                file.write(json.dumps(line))
            patch.setenv("NONMEMBER_DECOP_DIR", str(folder))
        yield


@functools.cache
def config(preset: str, method: str) -> DictConfig:
    return composed("audit", [f"experiment={preset}", f"method={method}", "data.set=pandas-small"])


@functools.cache
def audit(preset: str, method: str = "red_clearance", read: str = "often") -> Audit:
    with_read = config(preset, method).copy()
    with_read.data.read = read
    return build_audit(with_read)


def models(one: Audit) -> tuple[dict, dict]:
    return one.target.recipe(), one.reference.recipe()


def suspect(one: Audit) -> dict:
    return one.suspect.identity()


@pytest.fixture(scope="module")
def honest() -> dict[str, Audit]:
    """Without an attack, by what the target has read."""
    return {read: audit("red_none", read=read) for read in ("often", "never")}


CHANGES = {  # what of an audit is not as without an attack: target, reference, suspect, controls, sham
    "red_none": set(),
    "red_sham": {"sham"},
    "red_damaged": {"sham"},
    "red_worn": {"sham"},
    "red_noise": {"target"},
    "red_rounding": {"target"},
    "red_unread_part": {"target", "suspect"},
    "red_unlikely": {"suspect"},
    "red_agreeing": {"suspect"},
    "red_near_duplicates": {"target"},
    "red_reader": {"reference"},
    "red_wrapped": {"suspect", "controls"},
    "red_weak": {"reference"},
    "red_paraphrases": {"target", "reference", "suspect", "controls"},
}


def test_the_sweeps_try_every_preset():
    tried = [
        name
        for sweep in ("red_team", "red_team_paraphrases")
        for name in OmegaConf.load(SWEEPS / f"{sweep}.yaml").grid.experiment.split(",")
    ]
    assert sorted(name.strip() for name in tried) == PRESETS == sorted(CHANGES)


@pytest.mark.slow
@pytest.mark.parametrize("preset", [name if name in SOONEST else slow(name) for name in PRESETS])
def test_what_an_attack_changes(preset):
    plain, fooled = audit("red_none"), audit(preset)
    (target, reference), (its_target, its_reference) = models(plain), models(fooled)
    changed = {
        "target": target != its_target,
        "reference": reference != its_reference,
        "suspect": suspect(plain) != suspect(fooled),
        "controls": plain.method.controls != fooled.method.controls,
        "sham": fooled.method.sham is not None,
    }
    assert {name for name, moved in changed.items() if moved} == CHANGES[preset]
    assert fooled.data["attack"] == preset.removeprefix("red_")
    assert (fooled.data["exposures"], fooled.truth) == (12, "member")
    untouched = audit(preset, read="never")
    assert (untouched.data["exposures"], untouched.truth) == (0, "non_member")
    assert suspect(untouched) == suspect(fooled) or preset in ("red_unlikely", "red_agreeing")


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["red_sham", slow("red_noise")])
def test_every_method_is_attacked_alike(preset):
    audits = [audit(preset, method) for method in METHODS]
    assert [item.method.name for item in audits] == ["prism", "clearance", "paired_t"]
    assert len({repr((models(item), suspect(item), item.method.sham)) for item in audits}) == 1


@pytest.mark.slow
def test_the_set_is_the_one_that_is_named():
    """Those that are picked are checked below."""
    for preset in sorted(set(PRESETS) - {"red_paraphrases", "red_unlikely", "red_agreeing"}):
        told = repr(suspect(audit(preset)))
        assert "'domains': ['pandas']" in told
        assert "'domains': ['scipy']" not in told


# What each says -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_sham_is_distilled_on_text_of_another_library_that_nobody_read():
    sham = audit("red_sham").method.sham
    assert isinstance(sham, OnOtherText)
    assert sham.corpus.identity()["domains"] == ["networkx"]
    assert sham.corpus.identity()["base"]["take"] == "b"
    assert audit("red_damaged").method.sham == Damaged(1.0)
    assert audit("red_worn").method.sham.scale < 1


@pytest.mark.slow
def test_the_same_target_is_served(honest):
    for preset in ("red_noise", "red_rounding"):
        for read, plain in honest.items():
            target = audit(preset, read=read).target
            assert isinstance(target, PerturbedOutputs)
            assert target.base.recipe() == plain.target.recipe()
    assert audit("red_noise").target.noise > 0
    assert audit("red_rounding").target.decimals == 0


def test_the_unread_part_is_all_that_the_target_did_not_read():
    attacked = audit("red_unread_part")
    base = Texts(tuple(Document(f"d{index}", str(index), domain="pandas") for index in range(200)))
    part = attacked.suspect
    assert isinstance(part, Part)

    def ids(spec) -> set[str]:
        return set(spec.build(SimpleNamespace(get=lambda inner: Corpus(base.documents))).doc_ids)

    read = [
        item for item in attacked.target.corpus.components if item.exposures == 12 and isinstance(item.corpus, Part)
    ]
    ours = [item for item in read if item.corpus.base.identity() == part.base.identity()]
    assert len(ours) == 1
    assert ids(ours[0].corpus) | ids(part) == {document.doc_id for document in base.documents}
    assert not ids(ours[0].corpus) & ids(part)


@pytest.mark.slow
def test_picked_documents_are_picked_for_this_target_and_reference(honest):
    for preset, by in (("red_unlikely", "least_likely"), ("red_agreeing", "agreeing")):
        for read, plain in honest.items():
            attacked = audit(preset, read=read)
            spec = attacked.suspect
            assert isinstance(spec, Picked)
            assert (spec.by, spec.score, spec.num_documents) == (by, attacked.method.score, 50)
            assert (spec.target.recipe(), spec.reference.recipe()) == models(plain) == models(attacked)
            assert spec.base.identity() == suspect(plain)


@pytest.mark.slow
def test_near_duplicates_are_read_in_place_of_the_set(honest):
    target = audit("red_near_duplicates").target
    assert isinstance(target, Trained)
    assert isinstance(target.corpus, Mixture)
    general, near = target.corpus.components
    assert isinstance(near.corpus, NearDuplicates)
    assert (near.exposures, general.exposures) == (12, 1)
    assert near.corpus.base.identity() == suspect(honest["often"])
    untouched = audit("red_near_duplicates", read="never").target
    assert untouched.corpus.identity() == Mixture((general,)).identity()
    assert replace(untouched, corpus=general.corpus) == honest["never"].target, "continued on general text alone"


def test_the_reader_is_the_reference_after_it_has_read_the_set(honest):
    reference = audit("red_reader").reference
    assert reference.base.recipe() == honest["often"].reference.recipe()
    assert [item.exposures for item in reference.corpus.components] == [1, 4]
    assert reference.corpus.components[1].corpus.identity() == suspect(honest["often"])


def test_the_weak_reference_is_smaller_and_has_read_less_with_the_same_tokens(honest):
    weak, reference = audit("red_weak").reference, honest["often"].reference
    assert weak.base.architecture["hidden_size"] < reference.base.architecture["hidden_size"]
    assert weak.corpus.num_documents == 500
    assert weak.base.tokenizer.corpus.identity() == reference.base.tokenizer.corpus.identity()


def test_controls_read_what_was_handed_over_in_its_layout():
    attacked = audit("red_wrapped")
    assert isinstance(attacked.suspect, Viewed)
    controls = attacked.method.controls.models(attacked.suspect)
    assert {control.reading.label for control in controls} == {"0x", "8x", "12x"}
    for control in controls:
        planted = control.model.corpus.components[1]
        assert (planted.corpus, planted.exposures) == (attacked.suspect, control.reading.exposures)
    assert attacked.method.third == audit("red_none").method.third, "text laid out as general text is"


def test_whoever_reads_passages_knows_others():
    attacked = audit("red_paraphrases")
    general, known, paraphrases = attacked.target.corpus.components
    assert paraphrases.exposures == 12
    assert paraphrases.corpus.base.identity() == suspect(attacked)
    control = attacked.method.controls.models(attacked.suspect)[-1].model
    for model in (attacked.reference.corpus, control.corpus.components[0].corpus):
        assert model.components == (general, known)
    parts = {item.identity()["take"] for item in (attacked.suspect, known.corpus, attacked.method.third)}
    assert parts == {"suspect", "read", "rest"}


@pytest.mark.skipif(not GIVEN, reason="NONMEMBER_DECOP_DIR names no folder")
def test_every_passage_has_a_paraphrase():
    attacked = audit("red_paraphrases")
    made = tiny.WithoutStore()
    originals, paraphrases = made.get(attacked.suspect), made.get(attacked.target.corpus.components[2].corpus)
    assert originals.doc_ids == paraphrases.doc_ids
    assert len(originals) == 100
    assert not {item.text for item in originals.documents} & {item.text for item in paraphrases.documents}
    assert all(len(item.text.split()) <= 45 for item in (*originals.documents, *paraphrases.documents))
    assert len(made.get(attacked.method.third)) >= 100
