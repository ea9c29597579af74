"""Draws docs/scoring.svg, memory while a million documents are scored, and docs/scoring.csv, from what
benchmarks/scoring.py wrote.

.venv/bin/python benchmarks/scoring.py FOLDER && .venv/bin/python docs/scoring_figure.py FOLDER
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
NAMES = {"score": "killed in the middle", "again": "the same command again"}
COLOURS = {"score": "#0072b2", "again": "#d55e00"}
POINTS = 60  # of a stage in the CSV file
LIMIT = 1024


def draw(folder: Path) -> None:
    summary: dict[str, Any] = json.loads((folder / "scoring.json").read_text(encoding="utf-8"))["whole"]
    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "scoring", "font.size": 9, "font.family": "sans-serif"}
    figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
    beside = axes.twinx()
    begin, rows = 0.0, []
    for stage in summary["stages"]:
        if stage["stage"] not in NAMES:
            continue
        curve = stage["curve"][:: max(1, len(stage["curve"]) // POINTS)]
        minutes = [(begin + at) / 60 for at, _, _ in curve]
        axes.plot(minutes, [mib for _, mib, _ in curve], color=COLOURS[stage["stage"]], label=NAMES[stage["stage"]])
        beside.step(minutes, [number for _, _, number in curve], where="post", color="#999999", lw=0.8)
        rows += [
            (stage["stage"], round(minute, 2), round(mib), number)
            for minute, (_, mib, number) in zip(minutes, curve, strict=True)
        ]
        begin += stage["curve"][-1][0]
    axes.set(xlabel="minutes", ylabel="MiB, all processes", ylim=(0, LIMIT), xlim=(0, begin / 60))
    beside.set(ylabel="parts complete", ylim=(0, summary["num_parts"] * 1.05))
    beside.yaxis.get_major_locator().set_params(integer=True)
    beside.yaxis.label.set_color("#777777")
    axes.legend(frameon=False, loc="lower right")
    for one in (axes, beside):
        one.spines["top"].set_visible(False)
    figure.savefig(HERE / "scoring.svg", metadata={"Date": None})
    with (HERE / "scoring.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("stage", "minute", "mib", "parts"), *rows])


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
