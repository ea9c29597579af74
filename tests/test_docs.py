"""README and docs: links lead somewhere, commands exist, cited pages exist. `make docs` builds the site itself."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from marks import thinned
from nonmember.cli.main import COMMANDS
from nonmember.config.choices import options
from nonmember.config.compose import composed
from test_layers import LAYERS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = [README, CONTRIBUTING, *sorted(page for page in (ROOT / "docs").rglob("*.md") if "results" not in page.parts)]
METHODS = [
    page
    for page in sorted((ROOT / "docs" / "methods").glob("*.md"))
    if page.stem not in ("index", "conventions", "pitfalls", "planning", "checks")  # of all methods
]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CITATION = re.compile(r"\b(docs/(?:[\w-]+/)*[\w-]+\.md)(?:,? item (\d+))?")
CITING = ("src", "conf", "sweeps", "benchmarks", "tests")
SECTIONS = ["Question", "Formula", "Source", "Settings", "Where we differ", "Measured power", "Cost", "Example"]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


def headings(page: Path) -> list[str]:
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.findall(r"^#+ (.+)$", prose, flags=re.M)


def anchor(heading: str) -> str:
    """As GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def commands(page: Path) -> Iterator[str]:
    """The code of a page: blocks and what stands between backticks."""
    text = page.read_text(encoding="utf-8")
    yield from re.findall(r"^```bash\n(.*?)^```", text, flags=re.M | re.S)
    yield from re.findall(r"`([^`\n]+)`", text)


def test_the_readme_is_short():
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    limits = re.findall(r"^\d\. (.*)$", text.partition("## Known limits")[2].partition("\n## ")[0], flags=re.M)
    assert len(limits) == 5
    assert all(len(LINK.sub("", limit).split()) <= 25 and LINK.search(limit) for limit in limits)


def test_kept_results_are_small():
    files = [path for path in (ROOT / "docs" / "results").rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".md", ".svg", ".csv", ".json"}
    assert sum(path.stat().st_size for path in files) <= 5_000_000


def test_faults_put_by_hand_still_fit_the_program():
    """For benchmarks/faults.py: what each replaces stands there once, and the tests that it names exist."""
    faults = tomllib.loads((ROOT / "benchmarks" / "faults.toml").read_text(encoding="utf-8"))
    every = [fault for group in faults.values() for fault in group]
    found = {item["name"]: (ROOT / "src" / "nonmember" / item["file"]).read_text().count(item["old"]) for item in every}
    assert {name: number for name, number in found.items() if number != 1} == {}
    assert not [test for item in every for test in item["tests"] if not (ROOT / test.partition("::")[0]).exists()]


def test_labels_of_kept_pictures_can_be_read():
    """Formulas of ticks, which are never set as formulas."""
    assert [
        path.name for path in (ROOT / "docs").rglob("*.svg") if "mathdefault" in path.read_text(encoding="utf-8")
    ] == []


@each_page
def test_links_lead_somewhere(page):
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith(("http://", "https://")):
            continue
        path, _, part = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert ROOT in target.parents, f"{link} leads out of the repository"
        if part:
            assert part in {anchor(heading) for heading in headings(target)}, link


@each_page
def test_commands_exist(page):
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))
    for command in commands(page):
        assert set(re.findall(r"(?:^|[\s(])(?<!canary )make ([a-z][a-z-]*)", command)) <= targets, command
        assert set(re.findall(r"(?:^|[\s/])nonmember ([a-z][a-z-]*)(?=[\s.]|$)", command)) <= set(COMMANDS), command


@each_page
def test_sweeps_and_configs_exist(page):
    for command in commands(page):
        for name in re.findall(r"(?:SWEEP=|--config-name[ =])([a-z0-9_]+)(?![\w{])", command):
            assert (ROOT / "sweeps" / f"{name}.yaml").is_file(), command
        for group, name in re.findall(
            r"(?<![\w.])(method|world|trainer|launcher|logger|experiment|report|gates|cleaning|ladder)=([a-z][a-z0-9_]*)\b",
            command,
        ):
            assert name in options(group) or page.name == "extending.md", command


def test_cited_pages_exist():
    """Code names a page of the documentation by its path, and an item of a numbered list by its number."""
    files = [path for folder in CITING for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".yaml", ".md")]
    cited = [(path, match) for path in files for match in CITATION.finditer(path.read_text(encoding="utf-8"))]
    assert cited
    for path, match in cited:
        page = ROOT / match[1]
        assert page.is_file(), f"{name_of(path)}: {match[0]}"
        if match[2]:
            items = re.findall(r"^\d+\. ", page.read_text(encoding="utf-8"), flags=re.M)
            assert int(match[2]) <= len(items), f"{name_of(path)}: {match[0]}"


@pytest.mark.parametrize("page", METHODS, ids=name_of)
def test_the_page_of_a_method_has_the_sections_of_its_neighbours(page):
    assert re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), flags=re.M) == SECTIONS


@pytest.mark.parametrize("page", thinned(METHODS), ids=name_of)
def test_the_example_of_a_method_composes(page, nonmember, monkeypatch):
    monkeypatch.setenv("NONMEMBER_DECOP_DIR", "answers")
    example = page.read_text(encoding="utf-8").rpartition("## Example")[2]
    [block] = re.findall(r"^```bash\n(.*?)^```", example, flags=re.M | re.S)
    words = shlex.split(block.replace("\\\n", " "), comments=True)
    said = nonmember(*words[words.index("nonmember") + 1 :], "--cfg", "job")
    assert said.status == 0, said.err


def test_every_method_has_a_page():
    index = (ROOT / "docs" / "methods" / "index.md").read_text(encoding="utf-8")
    endings = "all|alone|costly|top|out|open|loss|compat|baselines|recorded_scores|contaminated|groups"
    variants = re.compile(rf"_({endings})$")
    for path in (ROOT / "conf" / "method").glob("*.yaml"):
        assert f"`{variants.sub('', path.stem)}`" in index, path.stem


def test_every_page_is_in_the_sidebar_and_no_two_entries_have_one_name():
    """Names of pages are their titles where a table of contents gives none."""
    names: dict[str, str] = {}
    listed = {ROOT / "docs" / "index.md"}
    for page in (ROOT / "docs").rglob("*.md"):
        for tree in re.findall(r"^```{toctree}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S):
            for entry in (line for line in tree.splitlines() if line and not line.startswith(":")):
                named = re.fullmatch(r"(.+) <(.+)>", entry)
                path = named[2] if named else entry
                target = (page.parent / f"{path}.md").resolve()
                listed.add(target)
                source = CONTRIBUTING if target.stem == "contributing" else target
                name = named[1] if named else headings(source)[0]
                assert names.setdefault(name, path) == path, f"{name}: {names[name]} and {path}"
    assert set((ROOT / "docs").rglob("*.md")) <= listed


def test_the_architecture_page_shows_the_layers():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = re.search(r"^## Layers.*?^```text\n(.*?)^```", text, flags=re.M | re.S)
    assert picture is not None
    assert re.findall(r"^(\w+) ", picture[1], flags=re.M) == list(reversed(LAYERS))
    assert len(text.split()) <= 1500


def test_the_hooks_are_the_checks():
    """Of `make check`, by the project's own tools."""
    recipe = re.search(r"^check:.*\n\t(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M)
    assert recipe is not None
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]]
    assert hooks == recipe[1].replace("$(BIN)", ".venv/bin").split(" && ")


def test_the_reference_has_every_module_of_statistics():
    page = (ROOT / "docs" / "api" / "stats.md").read_text(encoding="utf-8")
    modules = (ROOT / "src" / "nonmember" / "stats").glob("[!_]*.py")
    assert set(re.findall(r"automodule:: (\S+)", page)) == {f"nonmember.stats.{path.stem}" for path in modules}


def test_defaults_and_levels_in_documents_are_those_of_conf():
    """What pages once had wrong: the score of the difference in differences, and the level of LLM-DI."""

    def method_of(name: str) -> Any:
        with composed("audit", [f"method={name}", "world=micro"]) as (config, _):
            return OmegaConf.to_container(config.method, resolve=True)

    pages = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "methods").glob("*.md")}
    assert method_of("difference_in_differences")["score"]["_target_"] == "nonmember.scores.Wbc"
    assert "default [WBC]" in pages["difference_in_differences.md"]
    level = f"{method_of('llm_di')['alpha']:g}".lstrip("0")
    assert f"`alpha: {level}`" in pages["llm_di.md"]
    assert method_of("prism")["alpha"] == method_of("dose")["alpha"] == method_of("canary")["alpha"] == 0.05
