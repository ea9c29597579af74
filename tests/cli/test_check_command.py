"""`nonmember check` as it is run, and the page that keeps what it says of all cells of the hub."""

from __future__ import annotations

import csv
import functools
import math
import re
import socket
from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from marks import slow
from nonmember.cli import check
from nonmember.config import grid
from nonmember.config.choices import published_sweeps
from nonmember.config.grid import cells_of, sweeps_for
from nonmember.config.roots import register
from nonmember.feasibility.memory import Machine

PAGE = Path(__file__).parents[2] / "docs" / "hub_cells.md"
SWEEPS = PAGE.parents[1] / "sweeps"


@pytest.mark.slow
def test_it_prints_a_table_and_what_is_asked_for(nonmember, tmp_path, monkeypatch):
    def with_one_of_files(*given):
        cells = list(checked(*given))
        return [*cells, replace(cells[0], sweep="local", checked=replace(cells[0].checked, hub=()))]

    asked, checked = [], check.checked
    monkeypatch.setattr(grid, "sweeps_for", lambda world: asked.append(world) or ["decop_sizes"])
    monkeypatch.setattr(check, "checked", with_one_of_files)
    files = {kind: tmp_path / f"cells.{kind}" for kind in ("csv", "markdown")}
    done = nonmember(
        "check", "all", "--gib", 80, "--hub", *(word for kind, path in files.items() for word in (f"--{kind}", path))
    )
    assert done.status == 0, done.err
    assert asked == ["pythia"], "the world whose models are on the hub, where none is named"
    lines = [line for line in files["markdown"].read_text().splitlines() if line.startswith("| decop_sizes |")]
    assert len(lines) == 3
    assert "needs 2 GPUs" in done.out
    assert "accept the terms of meta-llama/Llama-2-7b-chat-hf on the hub" in done.out
    with (tmp_path / "cells.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["cell"] for row in rows] == [f"model@target=llama_2_{size}_chat" for size in ("7b", "13b", "70b")]
    assert [row["num_gpus"] for row in rows] == ["1", "1", "2"]
    sizes = [float(row["gib_each"]) for row in rows]
    assert sizes[0] < sizes[1] < 64 < sizes[2] < 80


@pytest.mark.slow
def test_all_leaves_out_sweeps_whose_axes_the_world_lacks(nonmember, monkeypatch):
    monkeypatch.setattr(grid, "sweeps_for", lambda world: ["k", "table12"])
    done = nonmember("check", "all", "world=hubble", "--gib", 80)
    assert done.status == 0, done.err
    assert "Left out, as world=hubble lacks axes or options of theirs: k.\n" in done.out
    alone = nonmember("check", "k", "world=hubble", "--gib", 80)
    assert alone.status == 1
    assert "needs world.axes.targets, which the chosen world does not have: add world=gemma or world=" in alone.err
    assert "world=hubble" not in alone.err


@pytest.mark.slow
def test_the_answer_is_for_this_machine(nonmember, monkeypatch):
    here = Machine(gib=7, tflops=0.05, utilisation=0.5, device="CPU")
    monkeypatch.setattr(Machine, "here", classmethod(lambda _: here))
    done = nonmember("check", "decop_sizes", "world=pythia")
    assert "hours on one CPU of 0.05 TFLOP/s at 50%, with 7 GiB of memory" in done.out, done.err
    assert "GiB of memory are needed, and this machine has 7; describe a GPU with --gib and --tflops" in done.out
    described = nonmember("check", "decop_sizes", "world=pythia", "--gib", 80, "--tflops", 300)
    assert "hours on one GPU of 300 TFLOP/s at 30%, with 80 GiB of memory" in described.out


def test_slips_are_said_in_a_sentence(nonmember):
    done = nonmember("check", "tabel2")
    assert (done.status, done.out) == (1, "")
    assert "There is no sweep tabel2" in done.err
    assert "There is no option --gb; see nonmember check --help." in nonmember("check", "table2", "--gb", 40).err
    for option, value, sentence in (
        *(("--tflops", 0, "--tflops must be a number above 0; got 0.0."), ("--utilisation", 2, "(0, 1]; got 2.0")),
        *(("--on", "2026-99-99", "a day, as in 2026-01-31"), ("--csv", "gone/x.csv", "no place for a file gone/x.csv")),
    ):
        assert sentence in nonmember("check", "table2", option, value).err


@pytest.mark.slow
def test_cells_are_those_of_a_multirun():
    """In another order: those that choose the same groups one after the other, their values as on the command line."""
    register()
    cells = [
        (cell.number, cell.overrides, cell.config.data.domain, cell.config.target.path)
        for cell in cells_of("fsd_target_size", ["world=pythia"])
    ]
    assert sorted(number for number, *_ in cells) == list(range(6))
    for number, words, domain, path in cells:
        assert words == (f"data.domain={domain}", f"model@target=llama_{path.rpartition('-')[2]}")
        assert number == ["wikimia", "arxivtection"].index(domain) * 3 + ["7b", "13b", "30b"].index(
            path[-3:].strip("-")
        )


def test_sweeps_of_a_world():
    assert {"table2", "kds_main", "decop_books", "fsd_books"} <= set(sweeps_for("pythia")) <= published_sweeps()
    assert not {"demo", "known_truth", "calibration_more", "dose_rivals", "pile"} & set(sweeps_for("pythia"))


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("sweep", ["decop_sizes", slow("fsd_books"), slow("table3")])
def test_the_page_is_what_the_command_says_today(page, sweep):
    """Of some sweeps; all of them take minutes. Made again by the command in its first line."""
    from nonmember.cli.check import checked
    from nonmember.feasibility.table import rows_of

    register()
    on = re.search(r"on (\d{4}-\d\d-\d\d) with", page)
    assert on is not None
    cells = list(checked([sweep], ["world=pythia"], Machine(), date.fromisoformat(on[1])))
    lines = [f"| {' | '.join(row.texts(Machine()))} |" for row in rows_of(cells)]
    assert lines == [line for line in page.splitlines() if line.startswith(f"| {sweep} |")]


def rows_of_page(page: str) -> list[tuple[str, int, str]]:
    """Sweep, number of cells and hours of each row."""
    lines = [line for line in page.splitlines() if re.match(r"^\| \w+ \| [\d,]+ \|", line)]
    rows = [[text.strip() for text in line.split("|")[1:-1]] for line in lines]
    return [(row[0], int(row[1].replace(",", "")), row[-1]) for row in rows]


@functools.cache
def loaded(path: Path) -> dict[str, Any]:
    return yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)


def num_cells(sweep: str) -> int:
    """Of its grid in the world of the hub, as the files have it."""

    def grid(name: str) -> dict[str, Any]:
        own = loaded(SWEEPS / f"{name}.yaml")
        bases = [base for base in own["defaults"] if isinstance(base, str) and (SWEEPS / f"{base}.yaml").is_file()]
        return {key: value for part in (*map(grid, bases), own.get("grid", {})) for key, value in part.items()}

    axes = loaded(SWEEPS.parent / "conf" / "world" / "pythia.yaml")["axes"]
    values = OmegaConf.create({"world": {"axes": axes}, "grid": grid(sweep)}).grid.values()
    return math.prod(len(str(value).split(",")) for value in values)


def test_the_page_has_no_cells_that_are_gone(page):
    """Two of decop_calibrated stood there long after the service had shut down and the sweep lost them."""
    listed = Counter[str]()
    for sweep, number, _ in rows_of_page(page):
        listed[sweep] += number
    assert {sweep: number for sweep, number in listed.items() if number != num_cells(sweep)} == {}


def test_no_sweep_costs_more_than_all_others_together(page):
    """As kds_benchmarks did, 14,500 hours, with a test of 250 orders in all of its 945 cells."""
    hours = Counter[str]()
    for sweep, _, text in rows_of_page(page):
        if text not in ("", "?", "<0.1") and not text.startswith("needs "):
            hours[sweep] += float(text.replace(",", ""))
    (dearest, most), *_ = hours.most_common(1)
    assert most < sum(hours.values()) - most, dearest


@pytest.mark.slow
def test_looking_at_a_prompted_cell_goes_to_no_network(monkeypatch):
    def refuse(*_: object) -> None:
        pytest.fail("a cell was composed with the help of the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    register()
    on = date(2026, 11, 26)
    (cell,) = check.checked(["decop_calibrated"], ["world=pythia"], Machine(), on)
    assert cell.checked.jobs


def test_the_page_has_every_sweep_of_the_hub_or_says_which_it_lacks(page):
    assert not re.search(r"(?<![\w.:/])/\w+/\w", page), "a folder of the machine that made it"
    named = set(re.findall(r"^\| (\w+) \| [\d,]+ \|", page, re.MULTILINE))
    lacking = re.search(r"^Not looked at on that day: (.+)\.$", page, re.MULTILINE)
    named |= set(lacking[1].split(", ")) if lacking else set()
    assert named | {"decop_replay", "decop_replay_scores", "decop_replay_calibrated"} == set(sweeps_for("pythia"))
