"""Canaries as a method: ranks by hand, what it refuses, and the way from documents to a verdict by command."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import stat
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nonmember as nm
import tiny
from command_line import only, rows_of, write_rows
from nonmember.cli.plant import _power
from nonmember.config.build import build
from nonmember.config.compose import composed
from nonmember.corpora import Canaries
from nonmember.evidence import canaries as planting
from nonmember.methods import CanaryTest, Roles, ScoredDocuments
from nonmember.models import Pretrained
from nonmember.records import Corpus, Document
from nonmember.scores import Loss
from nonmember_verify.canaries import chosen, commitment_of, read_private

METHOD = CanaryTest(score=Loss(), commitment="ab" * 32, alpha=0.05, max_tokens=64)
KEY = bytes(range(32))
WORDS = [f"{first}{second}{third}" for first in "bdfgk" for second in "aeiou" for third in "lmnrst"]
TEXTS = [" ".join(np.random.default_rng(seed).permutation(WORDS)[:40]) for seed in range(12)]
DOCUMENTS = Corpus(tuple(Document(f"d{index}", f"{text}\nA second line.") for index, text in enumerate(TEXTS)))


def scored(**values: list[float]) -> ScoredDocuments:
    """Canary -> scores of its documents."""
    pairs = [(name, value) for name, items in values.items() for value in items]
    ids = tuple(f"{name}/{index}" for index, (name, _) in enumerate(pairs))
    return ScoredDocuments(ids, {"target": np.array([value for _, value in pairs])}, tuple(name for name, _ in pairs))


def outcome(method: CanaryTest, published: ScoredDocuments, private: ScoredDocuments):
    return method.test({"suspect": published, "private": private}, np.random.default_rng(0))


# The method -----------------------------------------------------------------------------------------------------------


def test_ranks_are_taken_within_each_canary():
    """Joined by the canary and not by position; what has no score is missing from its own canary alone."""
    found = outcome(METHOD, scored(b=[-1.0], a=[-2.0]), scored(a=[-3.0, -2.0, -4.0], b=[-2.0, -3.0]))
    assert found.details.to_json()["ranks"] == [1, 2]
    assert found.details.num_variants == (3, 4)
    assert found.p_value == pytest.approx(3 / 12)  # (1, 1), (1, 2), (2, 1) of 3 times 4
    assert found.statistic == pytest.approx((1 + 2 / 3) / 2)
    assert found.verdict == "inconclusive"
    assert "allow no p below 0.0833" in found.warnings[0]
    alone = outcome(METHOD, scored(b=[-1.0], a=[-2.0]), scored(b=[-2.0, -3.0]))
    assert alone.details.ranks == (1,)
    assert "allow no p below 0.333" in alone.warnings[0]
    assert outcome(METHOD, scored(a=[-1.0]), scored(b=[-2.0])).verdict == "invalid"


def test_evidence_and_its_warning():
    published = scored(**{f"c{index}": [0.0] for index in range(3)})
    private = scored(**{f"c{index}": [-1.0] * 9 for index in range(3)})
    found = outcome(METHOD, published, private)
    assert (found.verdict, found.p_value) == ("evidence_of_membership", pytest.approx(1e-3))
    assert np.isnan(found.details.shift)
    assert "data.commitment=HASH" in outcome(replace(METHOD, commitment=None), published, private).warnings[0]


def test_what_is_no_canary_is_refused():
    roles = Roles(Pretrained("the/target"), Pretrained("the/reference"), tiny.SUSPECT, 9)
    assert list(METHOD.groups(roles)) == ["suspect"]
    with pytest.raises(ValueError, match="data=canaries"):
        METHOD.check({"suspect": DOCUMENTS})
    groups = METHOD.groups(replace(roles, heldout=tiny.GENERAL))
    assert {name: item.corpus for name, item in groups.items()} == {"suspect": tiny.SUSPECT, "private": tiny.GENERAL}
    with pytest.raises(ValueError, match="one published variant of each canary"):
        METHOD.check({"suspect": DOCUMENTS, "private": DOCUMENTS})


@pytest.mark.parametrize(
    ("settings", "has_model", "sentence"),
    [
        ({"kind": "paraphrase", "paraphrases": None}, False, "belong together"),  # else nothing is planted
        ({"kind": "random"}, True, "A model has no meaning with kind=random"),
        ({"kind": "sampled"}, False, "needs a model"),
    ],
)
def test_how_canaries_cannot_be_made(settings, has_model, sentence):
    with pytest.raises(ValueError, match=sentence):
        planting.Making.of(settings, has_model=has_model)


def test_where_they_cannot_be_written_is_said_before_they_are_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="file is none"):
        planting.require_new(tmp_path / "file" / "planted")


# Planting -------------------------------------------------------------------------------------------------------------


def test_canaries_are_planted_as_the_key_says(tmp_path):
    variants = planting.random_variants(DOCUMENTS, KEY, canaries=3, variants=20, length=5)
    assert planting.random_variants(DOCUMENTS, KEY, canaries=3, variants=20, length=5) == variants
    assert all(
        len(set(items)) == 20 and set(" ".join(items).split()) <= {*WORDS, "second", "line"}
        for items in variants.values()
    )
    planted, private = planting.plant(DOCUMENTS, variants, KEY, kind="random", copies=4)
    assert [item.doc_id for item in planted] == list(DOCUMENTS.doc_ids)
    for item in private.canaries:
        assert item.published == chosen(KEY, item.name, 20)
        text = item.variants[item.published]
        holders = [document.doc_id for document in planted if text in document.text.splitlines()]
        assert sorted(holders) == sorted(item.documents)
        assert len(holders) == 4
    assert all(
        not {item.variants[index] for index in range(20) if index != item.published} & set(lines(planted))
        for item in private.canaries
    )
    assert [item.text.splitlines()[0] for item in planted] == TEXTS  # and nothing else was changed
    commitment = planting.write(tmp_path / "out", planted, private)
    path = tmp_path / "out" / planting.PRIVATE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert commitment == commitment_of(path.read_bytes()) == (tmp_path / "out/commitment.txt").read_text().strip()
    assert read_private(path) == private
    with pytest.raises(ValueError, match="not overwritten"):
        planting.write(tmp_path / "out", planted, private)
    assert sorted(item.name for item in (tmp_path / "out").iterdir()) == sorted(
        [planting.PRIVATE, planting.DOCUMENTS, planting.COMMITMENT]
    )


def lines(documents: list[Document]) -> list[str]:
    return [line for item in documents for line in item.text.splitlines()]


def test_the_key_chooses_evenly():
    counts = np.bincount([chosen(KEY, f"canary-{index}", 5) for index in range(2000)])
    assert counts.min() > 330
    assert counts.sum() == 2000


def test_paraphrases_take_the_place_of_their_document(tmp_path):
    rows = [{"id": "d3", "paraphrases": ["one", "two", "three"]}, {"id": "d1", "paraphrases": ["four", "five"]}]
    variants = planting.paraphrases_in(write_rows(tmp_path / "p.jsonl", rows), DOCUMENTS)
    assert list(variants) == ["d1", "d3"]
    planted, private = planting.plant(DOCUMENTS, variants, KEY, kind="paraphrase", copies=1)
    changed = {item.doc_id: item.text for item, old in zip(planted, DOCUMENTS.documents, strict=True) if item != old}
    assert changed == {item.name: item.variants[item.published] for item in private.canaries}
    for row, sentence in (
        ({"id": "d1", "paraphrases": ["one"]}, "two or more paraphrases"),
        ({"id": "d1", "paraphrases": "one"}, "a list of texts"),
        ({"id": "d99", "paraphrases": ["one", "two"]}, "documents that are not there: "),
        ({"id": "d3", "paraphrases": ["one", "\ud800"]}, "half a character"),
        ({"id": "d2", "paraphrases": ["six", "seven"]}, "the id 'd2' has paraphrases above already"),
    ):
        with pytest.raises(ValueError, match=sentence):
            planting.paraphrases_in(write_rows(tmp_path / "p.jsonl", [{**rows[1], "id": "d2"}, row]), DOCUMENTS)
    with pytest.raises(ValueError, match="copies must be 1"):
        planting.plant(DOCUMENTS, variants, KEY, kind="paraphrase", copies=2)
    with pytest.raises(ValueError, match="at least 100 different"):
        planting.random_variants(Corpus(DOCUMENTS.documents[:1]), KEY, canaries=3, variants=20, length=5)


def test_a_private_file_that_was_changed_is_refused(tmp_path):
    variants = planting.random_variants(DOCUMENTS, KEY, canaries=2, variants=5, length=5)
    commitment = planting.write(tmp_path, *planting.plant(DOCUMENTS, variants, KEY, kind="random", copies=1))
    path = tmp_path / planting.PRIVATE
    published, private = (tiny.build(Canaries(str(path), part, commitment)) for part in ("published", "private"))
    assert (len(published), len(private)) == (2, 8)
    assert {item.cluster_id for item in private.documents} == {"canary-1", "canary-2"}
    assert tiny.build(Canaries(str(path), "published", f"{commitment.upper()}\n")) == published, "as files hold it"
    with pytest.raises(ValueError, match="no private file of canaries"):
        Canaries(str(tmp_path), "published").validate()
    content = json.loads(path.read_text())
    content["canaries"][0]["published"] = (content["canaries"][0]["published"] + 1) % 5
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="not the one that the key"):
        tiny.build(Canaries(str(path), "published"))
    with pytest.raises(ValueError, match="not the file that was committed to"):
        tiny.build(Canaries(str(path), "published", commitment))
    path.write_text("{}")
    with pytest.raises(ValueError, match="nonmember plant"):
        tiny.build(Canaries(str(path), "published"))


# By command -----------------------------------------------------------------------------------------------------------


def test_from_documents_to_a_verdict(nonmember, make_model, tmp_path):
    documents = write_rows(
        tmp_path / "own.jsonl", [{"id": item.doc_id, "text": item.text} for item in DOCUMENTS.documents]
    )
    made = nonmember("plant", f"documents={documents}", "out=planted", "canaries=3", "variants=10")
    assert made.status == 0, made.err
    commitment = Path("planted/commitment.txt").read_text().strip()
    assert commitment in made.out
    planted = ["data=canaries", "data.path=planted/canaries.private.json"]
    model = make_model()
    words = ["audit", "method=canary", *planted, f"target.path={model}", "logger=none"]
    sealing = ["seal", "--new-key", "my.key", "--out", "seal.json", *words[1:], f"data.commitment={commitment}"]
    said = nonmember(*sealing)
    assert said.status == 0, said.err
    seal = b64decode(json.loads(Path("seal.json").read_text())["payload"]).decode()
    assert commitment in seal
    secret = read_private(Path("planted/canaries.private.json"))
    assert not any(text in seal for item in secret.canaries for text in item.variants)
    assert "does not match this audit" in nonmember(*words, "seal=seal.json").err, "without the commitment"
    said = nonmember(*words, f"data.commitment={commitment}", "seal=seal.json")
    assert said.status == 0, said.err
    result = json.loads(only(Path("outputs"), "audits/*/*/result.json").read_text())
    assert result["question"]["settings"]["commitment"] == commitment
    assert result["statistics"]["details"]["num_variants"] == [10, 10, 10]
    assert result["verdict"]["decision"] in ("inconclusive", "evidence_of_membership")
    more = [f"data.commitment={commitment}", "page_text=true", "name=shown"]
    found = nm.audit("canary", target=str(model), overrides=[*planted, *more])
    page = (found.folder / "audit.html").read_text()
    assert not any(text in page for item in secret.canaries for text in item.variants)
    assert (found.verdict, found.p_value) == (result["verdict"]["decision"], result["statistics"]["p_value"])
    assert "not the file that was committed to" in nonmember(*words, f"data.commitment={'0' * 64}").err
    assert "already exists" in nonmember("plant", f"documents={documents}", "out=planted").err


def test_paraphrases_by_command(nonmember, make_model, tmp_path):
    """Six of twelve documents give way to one of two paraphrases each."""
    texts = [text[:60] for text in TEXTS]
    documents = write_rows(tmp_path / "own.jsonl", rows_of(texts))
    rows = [{"id": f"d{index}", "paraphrases": [text, text[::-1]]} for index, text in enumerate(texts[:6])]
    paraphrases = write_rows(tmp_path / "rows.jsonl", rows)
    words = ["plant", f"documents={documents}", "out=planted", "kind=paraphrase"]
    said = nonmember(*words, f"paraphrases={paraphrases}")
    assert said.status == 0, said.err
    assert "6 canaries of 2 variants, each in 1 of 12 documents." in said.out
    published = [json.loads(line)["text"] for line in Path("planted/documents.jsonl").read_text().splitlines()]
    assert published[6:] == texts[6:]
    assert all(text in row["paraphrases"] for text, row in zip(published, rows, strict=False))
    private = ["data=canaries", "data.path=planted/canaries.private.json"]
    asked = ["audit", "method=canary", *private, f"target.path={make_model()}"]
    said = nonmember(*asked, "logger=none")
    assert said.status == 0, said.err
    result = json.loads(only(Path("outputs"), "audits/*/*/result.json").read_text())
    assert result["statistics"]["details"]["num_variants"] == [2] * 6
    assert (result["statistics"]["p_value"] * 2**6).is_integer(), "sums of six ranks of two"


@pytest.mark.slow
def test_the_page_from_planting_to_finding(nonmember):
    """docs/methods/canary.md, step by step, in a smaller world: the reader is found."""
    page = (Path(__file__).parents[2] / "docs/methods/canary.md").read_text(encoding="utf-8")
    block = re.search(r"### Step by step.*?```bash\n(.*?)```", page, flags=re.S)
    assert block is not None
    smaller = block[1].replace("{pretraining:3000,continuation:1500}", "{pretraining:300,continuation:150}")
    steps = smaller.replace("=docs/", f"={Path(__file__).parents[2]}/docs/").replace("\\\n", " ").splitlines()
    for step in steps:
        if "commitment.txt" in step:
            step = step.replace("$(cat planted/commitment.txt)", Path("planted/commitment.txt").read_text().strip())
        world = ["world.suspects=[scipy]", "world.library.source.packages=[scipy]"] if "world=micro" in step else []
        said = nonmember(*shlex.split(step)[1:], *world)
        assert said.status == 0, said.err
    results = [json.loads(path.read_text()) for path in Path("outputs").glob("audits/*/*/result.json")]
    p_values = {item["question"]["target"]: item["statistics"]["p_value"] for item in results}
    assert p_values.keys() == {"reader"}
    assert p_values["reader"] < 1e-4


@pytest.mark.slow
def test_the_study_runs_by_its_smallest_design(tmp_path):
    study = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks/canaries.py"))
    world = "world=micro model@target=micro_target_general world.num_general.pretraining=300 world.suspects=[scipy]"
    kinds, null = (("random", 6), ("sampled", 6)), (5, 2, 4, 6)
    small = study["Design"](
        f"{world} world.library.source.packages=[scipy]", 150, kinds, (1, 4), 2, variants=4, seeds=(21,), null=null
    )
    found = study["measure"](tmp_path, small)
    assert [(row["kind"], row["copies"], len(row["ranks"])) for row in found["found"]] == [
        (kind, copies, 2) for kind, _ in kinds for copies in (1, 4)
    ]
    assert {name: len(item["p_values"]) for name, item in found["null"].items()} == {
        "unread": 5,
        "read other canaries": 5,
    }
    study["draw"](found, small, tmp_path / "canaries.svg")
    for design in study["DESIGNS"].values():
        with composed("audit", [*design.world.split(), f"world.num_general.continuation={design.documents}"]) as made:
            assert build(made[0].target).label.endswith("general")


@pytest.mark.slow
def test_variants_that_a_model_samples(nonmember, make_model, tmp_path):
    documents = write_rows(tmp_path / "own.jsonl", [{"id": "a", "text": "moss fern reed pine lark wren"}])
    words = ["plant", f"documents={documents}", "out=planted", "canaries=2", "variants=3", "kind=sampled"]
    assert "target.path=FOLDER_OR_HUB_NAME" in nonmember(*words).err
    said = nonmember(*words, f"target.path={make_model()}", "length=24", "temperature=9")
    assert said.status == 0, said.err
    private = read_private(Path("planted/canaries.private.json"))
    assert [len(item.variants) for item in private.canaries] == [3, 3]
    assert not Path("outputs/store").exists()  # which would keep the private ones


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["out=x"], "documents is missing"),
        (["documents=x", "out=y", "kind=other"], "kind must be one of"),
        (["documents=x", "out=y", "kind=paraphrase"], "belong together"),
        (["documents=x", "out=y", "temperature=2"], "temperature has no meaning with kind=random"),
    ],
)
def test_what_cannot_be_is_said(nonmember, words, sentence):
    said = nonmember("plant", *words)
    assert said.status == 1
    assert sentence in said.err


def test_the_power_that_planting_prints():
    """The least p of one canary of 20 is .05; of those read once 200 are too few."""
    assert _power(copies=4, number=1, variants=20).startswith("0.00 at an error of 0.05")
    assert _power(copies=1, number=10, variants=20).endswith("for 0.9 more than 200 canaries are needed")
    enough = _power(copies=12, number=3, variants=100)
    assert "12 random words in 8 copies" in enough
    needed = int(enough.split()[-4])
    assert float(_power(copies=12, number=needed, variants=100).split()[0]) >= 0.9
