"""Draws docs/demo.svg from the tables in docs/first_audit.md: readings by the dose meter and Delta by PRISM, by set.

.venv/bin/python docs/demo_figure.py
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

HERE = Path(__file__).parent
ROW = re.compile(
    r"│ (?P<name>\w+-[ab]) under \S+\+(?P<read>\d+)x +│.*│ (?P<value>[+-]?[\d.]+) \[(?P<low>[+-]?[\d.]+), "
    r"(?P<high>[+-]?[\d.]+|-)\] +│ +[\d.]+ │ (?P<verdict>[\w ]+?) +│ (?P<truth>\w+)"
)
COLOURS = {"non_member": "#0072b2", "member": "#d55e00"}


def rows() -> list[dict[str, str]]:
    """Of both tables: the dose meter's first, then PRISM's."""
    text = (HERE / "first_audit.md").read_text(encoding="utf-8").partition("## With a real model")[0]
    return [match.groupdict() for line in text.splitlines() if (match := ROW.match(line))]


def paint(panel: Axes, found: list[dict[str, str]], *, diamonds: bool) -> None:
    for place, row in enumerate(found):
        colour = COLOURS[row["truth"]]
        inside = colour if row["verdict"] == "not used" else "white"
        panel.plot([float(row["low"]), float(row["high"])], [place, place], color=colour, linewidth=1.6)
        panel.plot(float(row["value"]), place, "o", color=colour, markerfacecolor=inside, markersize=7)
        if diamonds:
            panel.plot(float(row["read"]), place - 0.28, "d", color="0.35", markersize=5)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(axis="y", length=0)


def draw(path: Path) -> None:
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "demo", "font.family": "sans-serif", "font.size": 10})
    found = rows()
    half = len(found) // 2
    figure, (dose, prism) = plt.subplots(1, 2, figsize=(9.2, 2.9), sharey=True, layout="constrained")
    paint(dose, found[:half], diamonds=True)
    paint(prism, found[half:], diamonds=False)
    dose.set_title("dose meter", fontsize=10)
    dose.set_xlabel("readings, 95% interval")
    dose.axvline(1, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
    prism.set_title("PRISM", fontsize=10)
    prism.set_xlabel("Delta, 95% interval")
    prism.axvline(0, color="0.6", linewidth=0.8, zorder=0)
    times = {"0": "not read", "1": "read once", "2": "read twice"}
    names = [f"{row['name']}, {times.get(row['read'], 'read ' + row['read'] + ' times')}" for row in found[:half]]
    dose.set_yticks(range(half), names)
    dose.invert_yaxis()
    figure.savefig(path, metadata={"Date": None, "Creator": None}, facecolor="white")


if __name__ == "__main__":
    draw(HERE / "demo.svg")
