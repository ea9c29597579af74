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
    "advice": (930, 5),
    "api": (940, 8),
    "artifacts": (840, 7),
    "audits": (1_590, 13),
    "cli": (1_810, 18),
    "config": (2_120, 14),
    "corpora": (4_250, 22),
    "endpoints": (2_170, 10),
    "evidence": (1_330, 11),
    "methods": (7_270, 39),
    "models": (3_410, 21),
    "observations": (2_220, 13),
    "records": (980, 11),
    "reports": (4_140, 35),
    "results": (1_360, 9),
    "runtime": (1_170, 12),
    "scores": (1_410, 8),
    "scoring": (1_410, 10),
    "stats": (4_120, 18),
    "tracking": (540, 3),
    "training": (2_200, 12),
}
LINES = {
    "src": 52_705,
    "src/nonmember": 46_500,
    "src/nonmember_papers": 3_005,
    "src/nonmember_verify": 3_200,
    "tests": 41_458,
}
MOST_FILES, MOST_FOLDERS = 301, 21
YAML_LINES = 6_460  # of conf and sweeps
WORDS, WORDS_OF_A_PAGE = 49_600, 1_500  # of documents written by hand


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
