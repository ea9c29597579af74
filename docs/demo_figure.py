"""Draws docs/demo.svg from the table in docs/first_audit.md: Delta with its interval by set, target and reading.

.venv/bin/python docs/demo_figure.py
"""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

HERE = Path(__file__).parent
ROW = re.compile(
    r"│ (?P<domain>\w+)-(?P<half>[ab]) under (?P<target>\S+) +│.*│ (?P<delta>[+-][\d.]+) \[(?P<low>[+-][\d.]+), "
    r"(?P<high>[+-][\d.]+)\] │ [\d.]+ │ (?P<verdict>\w+) +│ (?P<truth>\w+)"
)
# (half, target) of the table -> what the target has read, from the top down.
READ = {
    ("a", "target"): "nothing of the set",
    ("a", "target+general"): "nothing, continued on other text",
    ("b", "target+12xA"): "the other half, 12 times",
    ("a", "target+2xA"): "the set, 2 times",
    ("a", "target+12xA"): "the set, 12 times",
}
COLOURS = {"non_member": "#0072b2", "member": "#d55e00"}


def rows() -> list[dict[str, str]]:
    lines = (HERE / "first_audit.md").read_text(encoding="utf-8").splitlines()
    return [match.groupdict() for line in lines if (match := ROW.match(line))]


def draw(path: Path) -> None:
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "demo", "font.family": "sans-serif", "font.size": 10})
    found = rows()
    domains = list(dict.fromkeys(row["domain"] for row in found))
    figure, panels = plt.subplots(1, len(domains), figsize=(9.2, 2.9), sharex=True, sharey=True, layout="constrained")
    for panel, domain in zip(panels, domains, strict=True):
        for row in (row for row in found if row["domain"] == domain):
            place = list(READ).index((row["half"], row["target"]))
            colour = COLOURS[row["truth"]]
            inside = colour if row["verdict"] == "evidence_of_non_membership" else "white"
            panel.plot([float(row["low"]), float(row["high"])], [place, place], color=colour, linewidth=1.6)
            panel.plot(float(row["delta"]), place, "o", color=colour, markerfacecolor=inside, markersize=7)
        panel.axvline(0, color="0.6", linewidth=0.8, zorder=0)
        panel.set_title(domain, fontsize=10)
        panel.set_xlabel("Delta, 95% interval")
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params(axis="y", length=0)
    panels[0].set_yticks(range(len(READ)), list(READ.values()))
    panels[0].invert_yaxis()
    figure.savefig(path, metadata={"Date": None, "Creator": None}, facecolor="white")


if __name__ == "__main__":
    draw(HERE / "demo.svg")
