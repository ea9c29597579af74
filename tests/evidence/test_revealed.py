"""The private file of canaries, or of a hold-out, before those who were not there; and lies about either."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from doctored import SCORES, in_numbers, in_result, in_scores, require_found, rows, written
from made_up_audits import SECRET, bundled, checked, gathered
from made_up_questions import READ, UNREAD, audit, canaries, texts

import tiny
from nonmember.audits.question import Audit
from nonmember.corpora import Canaries, Component, Drawn, Mixture
from nonmember.evidence import canaries as planting
from nonmember.evidence import holdout, signing
from nonmember.methods import Holdout
from nonmember.records import Corpus, Document
from nonmember.scores import Loss
from nonmember.stats.canaries import rank_sum_cdf
from nonmember.training import Trained
from nonmember_verify.canaries import commitment_of, read_private
from nonmember_verify.methods.canary import _rank_sum_p

WORDS = [f"{first}{second}{third}" for first in "bdfgk" for second in "aeiou" for third in "lmnrst"]
OF_CANARIES = Corpus((Document("a", " ".join(WORDS)), Document("b", "Another.")))
TO_DRAW = [
    replace(item, author=f"author {index // 20}")
    for index, item in enumerate(texts(80, "suspect", per_cluster=2).documents)
]


def plant_canaries(folder: Path, key: bytes = bytes(32)) -> Path:
    variants = planting.random_variants(OF_CANARIES, key, canaries=4, variants=8, length=15)
    planting.write(folder, *planting.plant(OF_CANARIES, variants, key, kind="random", copies=1))
    return folder / planting.PRIVATE


def draw_holdout(folder: Path, strata: str | None = None) -> Path:
    return holdout.make(folder, Corpus(tuple(TO_DRAW)), strata=strata).private


def of_canaries(path: Path, commitment: str) -> Audit:
    published, private = (Canaries(str(path), part) for part in ("published", "private"))
    return replace(canaries(commitment=commitment), target=READ, suspect=published, heldout=private)


def of_holdout(path: Path, commitment: str) -> Audit:
    published, kept = (Drawn(str(path), part, commitment) for part in ("published", "kept"))
    read = tiny.Texts(published.build(None).documents)
    target = Trained(UNREAD, tiny.pretraining(), Mixture((Component(read, 6),)), seed=3, label="reader")
    method = Holdout(Loss(), commitment, num_permutations=999, alpha=0.05, max_tokens=64)
    return audit(method, target=target, suspect=published, heldout=kept)


# How the file is made and asked about, and how another is made.
KINDS: dict[str, tuple[Callable[..., Path], Callable[..., Audit], Callable[..., Path]]] = {
    "canaries": (plant_canaries, of_canaries, partial(plant_canaries, key=bytes(range(32)))),
    "hold-out": (draw_holdout, of_holdout, draw_holdout),
    "hold-out by author": (partial(draw_holdout, strata="author"), of_holdout, draw_holdout),
}


@pytest.fixture(scope="module", params=KINDS)
def bundle(tmp_path_factory, request) -> tuple[Path, dict[str, bytes], Path, Callable[..., Path]]:
    """A bundle of an audit that was committed to a private file, that file, and how another is made."""
    folder = tmp_path_factory.mktemp("revealed")
    make, ask, make_another = KINDS[request.param]
    private = make(folder)
    item = gathered(ask(private, commitment_of(private.read_bytes())), folder / "run")
    return folder / "bundle.zip", bundled([item], folder / "bundle.zip"), private, make_another


def test_the_revealed_file_shows_the_choice(bundle):
    path, _, private, _ = bundle
    without = {line.what: line.kind for line in checked(path).lines}
    assert without["choice of the published variants"] == "not checked"
    report = checked(path, canaries=private, secret=SECRET)
    assert not report.failures, "\n".join(map(str, report.lines))
    held = {line.what for line in report.lines if line.kind == "ok"}
    assert {"p", "verdict", "claim", "commitment", "choice", "texts of the private file"} <= held
    assert held & {"statistic and ranks", "statistic and interval"}


def test_another_file_is_not_taken_for_it(bundle, tmp_path):
    path, _, _, make_another = bundle
    other = make_another(tmp_path)
    given = {"canaries": other, "secret": SECRET}
    require_found(path, "the audit was committed to", **given)
    require_found(path, "not those of the private file: the suspect set", **given)
    other.write_text(json.dumps(json.loads(other.read_text()) | {"key": "00" * 32}))
    require_found(path, "not the one that the key|not where the key draws it", **given)


def exchange_units(columns: dict) -> None:
    units, groups = columns["unit"], columns["group"]
    other = next(i for i, unit in enumerate(units) if groups[i] == groups[-1] and unit != units[-1])
    units[-1], units[other] = units[other], units[-1]


def make_up_strata(columns: dict) -> None:
    columns["stratum"] = [int(unit) % 3 for unit in columns["unit"]]


@pytest.mark.parametrize(("change", "what"), [(exchange_units, "unit"), (make_up_strata, "stratum")])
def test_texts_counted_otherwise_than_in_the_file_are_found(bundle, change, what, tmp_path):
    lied = written(rows(SCORES, change)(bundle[1]), tmp_path / "bundle.zip")
    require_found(lied, f"counted with those of another {what}", canaries=bundle[2], secret=SECRET)


@pytest.mark.parametrize(
    ("lie", "sentence"),
    [
        (in_numbers("p_value", 1e-4), "p is stated as 0.0001"),
        (in_numbers("value", 9.9), "(share below|difference) is stated as 9.9"),
        (in_result("verdict", "decision", "evidence_of_non_membership"), "and the numbers say"),
        (in_scores("target", 0, lambda value: value + 1.0), "is stated as"),
    ],
)
def test_a_lie_is_found(bundle, lie, sentence, tmp_path):
    require_found(written(lie(bundle[1]), tmp_path / "bundle.zip"), sentence)


@pytest.mark.parametrize("sizes", [[100], [7, 3, 20], [50] * 12, [2] * 40])
def test_both_ways_to_the_distribution_agree(sizes):
    """Convolution, and inclusion and exclusion in whole numbers."""
    for total in np.linspace(len(sizes), sum(sizes), 9).astype(int).tolist():
        assert _rank_sum_p(total, sizes) == pytest.approx(rank_sum_cdf(total, sizes), rel=1e-12, abs=0)


def test_a_private_file_is_new_and_its_owners_alone(tmp_path):
    path = tmp_path / "secret"
    signing.write_private(path, b"first")
    with pytest.raises(FileExistsError):
        signing.write_private(path, b"second")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"first", 0o600)


def test_a_key_must_be_whole(tmp_path):
    path = plant_canaries(tmp_path)
    content = path.read_text()
    for changed in (json.dumps(json.loads(content) | {"key": "00"}), content.replace('"key"', '"key": "00", "key"', 1)):
        path.write_text(changed)
        with pytest.raises(ValueError, match="nonmember plant"):
            read_private(path)
