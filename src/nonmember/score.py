"""The Hydra entry of `nonmember score`: the scores alone, for whoever wants to use them elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

from omegaconf import DictConfig, ListConfig

from nonmember.config import plain, require_complete, run_with_hydra
from nonmember.config_safety import instantiate


def main() -> None:
    """Print the path of the table as the last line."""

    def run(config: DictConfig, folder: Path) -> None:
        sys.stdout.write(f"{score(config, folder)}\n")

    run_with_hydra("score", run)


def score(config: DictConfig, folder: Path) -> Path:
    """Write scores.parquet: a row per document with a column per score, token counts and, where a score is undefined,
    the reason; what it was made with is in the file's metadata."""
    require_complete(config)
    from nonmember.artifacts import Builder
    from nonmember.quiet import quieten
    from nonmember.scoring import Scoring, write_scores
    from nonmember.store import Store
    from nonmember.tracking import NoTracker

    quieten()
    has_general = config.general is not None and config.general.get("path") is not None
    model, reference, corpus, compute, asking, dc_pdd, general = (
        instantiate(node)
        for node in (
            *(config.model, config.reference, config.data.corpus, config.trainer, config.asking, config.dc_pdd),
            config.general.corpus if has_general else None,
        )
    )
    scoring = Scoring(
        model, corpus, list(config.k) if isinstance(config.k, ListConfig) else [config.k], config.max_tokens,
        config.most_tokens, dc_pdd, reference=reference, general=general, perturbations=list(config.perturbations),
    )  # fmt: skip
    builder = Builder(Store(Path(config.store)), compute, NoTracker(), asking=asking)
    path = (folder / "scores.parquet").resolve()
    settings = {"cleaning": plain(config.cleaning)} if "cleaning" in config.data else {}
    write_scores(scoring, builder, path, settings)
    return path
