"""Draws docs/demo.svg from the tables in docs/first_audit.md: readings by the dose meter and Delta by PRISM, by set.

.venv/bin/python docs/demo_figure.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

HERE = Path(__file__).parent
NUMBER = r"[+-]?[\d.]+"
ROW = re.compile(
    rf"\| (?P<name>\w+ [AB]), (?P<times>[\w ]+) \| (?P<dose>{NUMBER} \[{NUMBER}, {NUMBER}\], {NUMBER}: [\w ]+?) \|.*: "
    rf"(?P<prism>{NUMBER} \[{NUMBER}, {NUMBER}\], {NUMBER}: [\w ]+?) \|"
)
CELL = re.compile(rf"({NUMBER}) \[({NUMBER}), ({NUMBER})\], {NUMBER}: ([\w ]+)")
TIMES = {"never read": 0, "never": 0, "once": 1, "twice": 2, "four times": 4}
UNREAD, READ = "#0072b2", "#d55e00"


def rows(method: str) -> list[dict[str, Any]]:
    """Of the table of sets: what the method found of each."""
    text = (HERE / "first_audit.md").read_text(encoding="utf-8").partition("## With a real model")[0]
    found = []
    for match in filter(None, map(ROW.match, text.splitlines())):
        value, low, high, answer = CELL.fullmatch(match[method]).groups()
        numbers = {"value": float(value), "low": float(low), "high": float(high), "answer": answer}
        found.append({"name": match["name"], "read": TIMES[match["times"]], **numbers})
    return found


def paint(panel: Axes, found: list[dict[str, Any]], *, diamonds: bool) -> None:
    for place, row in enumerate(found):
        colour = READ if row["read"] else UNREAD
        inside = colour if row["answer"] == "not used" else "white"
        panel.plot([row["low"], row["high"]], [place, place], color=colour, linewidth=1.6)
        panel.plot(row["value"], place, "o", color=colour, markerfacecolor=inside, markersize=7)
        if diamonds:
            panel.plot(row["read"], place - 0.28, "d", color="0.35", markersize=5)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(axis="y", length=0)


def draw(path: Path) -> None:
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "demo", "font.family": "sans-serif", "font.size": 10})
    found = rows("dose")
    figure, (dose, prism) = plt.subplots(1, 2, figsize=(9.2, 2.9), sharey=True, layout="constrained")
    paint(dose, found, diamonds=True)
    paint(prism, rows("prism"), diamonds=False)
    dose.set_title("dose meter", fontsize=10)
    dose.set_xlabel("readings, 95% interval")
    dose.axvline(1, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
    prism.set_title("PRISM", fontsize=10)
    prism.set_xlabel("Delta, 95% interval")
    prism.axvline(0, color="0.6", linewidth=0.8, zorder=0)
    times = {0: "not read", 1: "read once", 2: "read twice"}
    names = [f"{row['name']}, " + times.get(row["read"], f"read {row['read']} times") for row in found]
    dose.set_yticks(range(len(found)), names)
    dose.invert_yaxis()
    figure.savefig(path, metadata={"Date": None, "Creator": None}, facecolor="white")


if __name__ == "__main__":
    draw(HERE / "demo.svg")
