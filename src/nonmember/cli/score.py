"""`nonmember score`: membership scores of documents, as a Parquet table."""

from __future__ import annotations

import sys
from pathlib import Path

from omegaconf import DictConfig

from nonmember.config.roots import run_with_hydra
from nonmember.config.runs import builder_of, scoring_of


def main() -> None:
    """Print the path of the table, or of the folder of tables, as the last line."""

    def run(config: DictConfig, folder: Path) -> None:
        sys.stdout.write(f"{score(config, folder)}\n")

    run_with_hydra("score", run)


def score(config: DictConfig, folder: Path) -> Path:
    """Write the table of scores into the folder, or the tables of what is streamed (`write_scores`)."""
    scoring = scoring_of(config)
    from nonmember.scoring.write import write_scores

    return write_scores(scoring, builder_of(config), folder)
