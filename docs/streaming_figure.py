"""Draws docs/streaming.svg, memory while text of any length is streamed, from what benchmarks/streaming.py wrote.

.venv/bin/python benchmarks/streaming.py FOLDER && .venv/bin/python docs/streaming_figure.py FOLDER
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
LIMIT = 1536
KILLED, NOT_KILLED = "train, killed twice", "train, not killed"
COLOURS = {"prepare": "#999999", "count": "#0072b2", KILLED: "#d55e00", NOT_KILLED: "#009e73"}


def curves(folder: Path) -> Iterator[tuple[str, list[tuple[float, float]], bool]]:
    """Name, memory over time, and whether the stage was killed at its end."""
    summary: dict[str, Any] = json.loads((folder / "memory.json").read_text(encoding="utf-8"))
    training = KILLED
    for stage in summary["stages"]:
        yield training if stage["stage"] == "train" else stage["stage"], stage["curve"], stage["ended"] != 0
        if "weights" in stage:  # trained to the end; the next is the other one
            training = NOT_KILLED


def draw(folder: Path) -> None:
    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "streaming", "font.size": 9, "font.family": "sans-serif"}
    figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
    begin, named = 0.0, set()
    for name, curve, was_killed in curves(folder):
        thinned = curve[:: max(1, len(curve) // 150)]
        minutes, mib = [(begin + at) / 60 for at, _ in thinned], [mib for _, mib in thinned]
        axes.plot(minutes, mib, color=COLOURS[name], label=None if name in named else name)
        axes.axvline(begin / 60, color="#dddddd", lw=0.6, zorder=0)
        named.add(name)
        begin += curve[-1][0]
        if was_killed:
            axes.plot(begin / 60, curve[-1][1], "x", color="black", label=None if "killed" in named else "SIGKILL")
            named.add("killed")
    axes.axhline(LIMIT, color="black", lw=0.8, ls="--")
    axes.set(xlabel="minutes", ylabel="MiB, all processes", ylim=(0, LIMIT * 1.08), xlim=(0, begin / 60))
    axes.legend(ncols=5, frameon=False, loc="upper left", bbox_to_anchor=(0, 0.93))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "streaming.svg", metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
