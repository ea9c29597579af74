"""So that it stays small: a budget of lines and files a folder, and of words of the documents.

A budget is what was reached. Whoever raises a number says in the same commit what the lines give a user.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "nonmember"
# Folder of the package -> most lines, most files.
FOLDERS: dict[str, tuple[int, int]] = {
    "advice": (950, 5),
    "api": (950, 8),
    "artifacts": (853, 6),
    "audits": (1_621, 13),
    "cli": (1_820, 18),
    "config": (2_072, 14),
    "corpora": (4_160, 22),
    "endpoints": (2_120, 10),
    "evidence": (1_340, 11),
    "methods": (7_550, 41),
    "models": (3_354, 21),
    "observations": (2_142, 13),
    "records": (980, 11),
    "reports": (4_010, 33),
    "results": (1_400, 9),
    "runtime": (1_188, 13),
    "scores": (1_470, 8),
    "scoring": (1_420, 10),
    "stats": (4_180, 18),
    "tracking": (500, 3),
    "training": (2_112, 12),
}
LINES = {
    "src": 52_774,
    "src/nonmember": 46_492,
    "src/nonmember_papers": 3_100,
    "src/nonmember_verify": 3_182,
    "tests": 41_998,
}
MOST_FILES, MOST_FOLDERS = 301, 21
YAML_LINES = 6_480  # of conf and sweeps
WORDS, WORDS_OF_A_PAGE = 49_856, 1_500  # of documents written by hand; the last 350 say why a benchmark is missed


def lines_of(folder: Path, pattern: str = "*.py") -> list[int]:
    return [len(path.read_text(encoding="utf-8").splitlines()) for path in sorted(folder.rglob(pattern))]


def pages() -> list[Path]:
    return [path for path in sorted((ROOT / "docs").rglob("*.md")) if "results" not in path.relative_to(ROOT).parts]


@pytest.mark.parametrize("folder", LINES)
def test_the_whole_keeps_its_budget(folder: str):
    assert sum(lines_of(ROOT / folder)) <= LINES[folder]


def test_each_folder_of_the_package_keeps_its_budget():
    found = {
        path.name: (sum(lines_of(path)), len(lines_of(path)))
        for path in PACKAGE.iterdir()
        if path.is_dir() and any(path.rglob("*.py"))
    }
    assert found.keys() == FOLDERS.keys(), "a folder came or went: tests/test_layers.py and docs/architecture.md too"
    grown = {name: size for name, size in found.items() if size[0] > FOLDERS[name][0] or size[1] > FOLDERS[name][1]}
    assert grown == {}
    assert len(found) <= MOST_FOLDERS
    assert len(lines_of(PACKAGE)) <= MOST_FILES


def test_configs_keep_their_budget():
    assert sum(lines_of(ROOT / "conf", "*.yaml") + lines_of(ROOT / "sweeps", "*.yaml")) <= YAML_LINES


def test_documents_keep_their_budget():
    words = {path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").split()) for path in pages()}
    assert {page: number for page, number in words.items() if number > WORDS_OF_A_PAGE} == {}
    assert sum(words.values()) <= WORDS
