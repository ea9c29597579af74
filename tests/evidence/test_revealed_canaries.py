"""Canaries before those who were not there: the revealed private file against a bundle, and lies about either."""

from __future__ import annotations

import dataclasses
import json
import stat
from pathlib import Path

import numpy as np
import pytest
from doctored import RESULT, SCORES, edited, put, require_found, rows, written
from made_up_audits import SECRET, bundled, checked, gathered
from made_up_questions import READ, canaries

from nonmember.corpora import Canaries
from nonmember.evidence import canaries as planting
from nonmember.evidence import signing
from nonmember.records import Corpus, Document
from nonmember.stats.canaries import rank_sum_cdf
from nonmember_verify.canaries import chosen, commitment_of, read_private
from nonmember_verify.methods.canary import _rank_sum_p

WORDS = [f"{first}{second}{third}" for first in "bdfgk" for second in "aeiou" for third in "lmnrst"]
DOCUMENTS = Corpus((Document("a", " ".join(WORDS)), Document("b", "Another.")))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> tuple[Path, dict[str, bytes]]:
    """The folder of a private file, and the bundle of an audit that was committed to it."""
    folder = tmp_path_factory.mktemp("canaries")
    path = _planted(folder, bytes(32))
    parts = {part: Canaries(str(path), part) for part in ("published", "private")}
    audit = dataclasses.replace(
        canaries(commitment=commitment_of(path.read_bytes())),
        target=READ,
        suspect=parts["published"],
        heldout=parts["private"],
    )
    item = gathered(audit, folder / "run")
    return folder, bundled([item], folder / "bundle.zip")


def _planted(folder: Path, key: bytes) -> Path:
    variants = planting.random_variants(DOCUMENTS, key, canaries=4, variants=8, length=15)
    planting.write(folder, *planting.plant(DOCUMENTS, variants, key, kind="random", copies=1))
    return folder / planting.PRIVATE


def test_the_revealed_file_shows_the_choice(bundle):
    folder, _ = bundle
    without = {line.what: line.kind for line in checked(folder / "bundle.zip").lines}
    assert without["choice of the published variants"] == "not checked"
    report = checked(folder / "bundle.zip", canaries=folder / planting.PRIVATE, secret=SECRET)
    assert not report.failures, "\n".join(map(str, report.lines))
    held = {line.what for line in report.lines if line.kind == "ok"}
    assert {"statistic and ranks", "p", "verdict", "claim", "commitment", "choice", "texts of the private file"} <= held


def test_another_file_is_not_taken_for_it(bundle, tmp_path):
    folder, _ = bundle
    other = _planted(tmp_path, bytes(range(32)))
    given = {"canaries": other, "secret": SECRET}
    require_found(folder / "bundle.zip", "the audit was committed to", **given)
    require_found(folder / "bundle.zip", "not those of the private file: the suspect set", **given)
    content = json.loads((folder / planting.PRIVATE).read_text())
    first = content["canaries"][0]
    first["published"] = (chosen(bytes(32), first["id"], 8) + 1) % 8
    other.write_text(json.dumps(content))
    require_found(folder / "bundle.zip", "not the one that the key", **given)


def test_variants_counted_with_those_of_another_canary_are_found(bundle, tmp_path):
    folder, files = bundle

    def change(columns: dict) -> None:
        units, groups = columns["unit"], columns["group"]
        first = groups.index("private")
        other = next(index for index in range(first, len(units)) if units[index] != units[first])
        units[first], units[other] = units[other], units[first]

    path = written(rows(SCORES, change)(files), tmp_path / "bundle.zip")
    require_found(path, "counted with those of another unit", canaries=folder / planting.PRIVATE, secret=SECRET)


@pytest.mark.parametrize(
    ("lie", "sentence"),
    [
        (put("statistics", "p_value", 1e-4), "p is stated as 0.0001"),
        (put("statistics", "value", 0.99), "share below is stated as 0.99"),
        (put("statistics", "details", "ranks", 0, 9), "ranks is stated as"),
        (put("verdict", "decision", "evidence_of_non_membership"), "and the numbers say"),
    ],
)
def test_a_lie_is_found(bundle, lie, sentence, tmp_path):
    require_found(written(edited(RESULT, lie)(bundle[1]), tmp_path / "bundle.zip"), sentence)


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
    path = _planted(tmp_path, bytes(32))
    content = json.loads(path.read_text())
    for changed in (content | {"key": "00"}, None):
        path.write_text(
            json.dumps(changed) if changed else json.dumps(content).replace('"key"', '"key": "00", "key"', 1)
        )
        with pytest.raises(ValueError, match="nonmember plant"):
            read_private(path)
