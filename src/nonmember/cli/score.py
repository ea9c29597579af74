"""`nonmember score`: membership scores of documents, as a Parquet table."""

from __future__ import annotations

import sys
from pathlib import Path

from omegaconf import DictConfig, ListConfig, OmegaConf

from nonmember.config.roots import plain, require_complete, run_with_hydra


def main() -> None:
    """Print the path of the table as the last line."""

    def run(config: DictConfig, folder: Path) -> None:
        sys.stdout.write(f"{score(config, folder)}\n")

    run_with_hydra("score", run)


def score(config: DictConfig, folder: Path) -> Path:
    """Write scores.parquet: a row per document with a column per score, token counts and, where a score is undefined,
    the reason; what it was made with is in the file's metadata."""
    for name in ("reference", "general"):  # there or not
        if config[name] is not None and (OmegaConf.is_missing(config[name], "path") or config[name].path is None):
            config[name] = None
    require_complete(config)
    from nonmember.audits.scoring import Scoring, write_scores
    from nonmember.config.build import build, corpus_of
    from nonmember.config.inputs import check_places, check_settings

    check_settings(config)
    model, reference, corpus, dc_pdd = map(build, (config.model, config.reference, config.data.corpus, config.dc_pdd))
    general = build(corpus_of(config.general))
    ks = list(config.k) if isinstance(config.k, ListConfig) else [config.k]
    scoring = Scoring(
        model, corpus, ks, config.max_tokens, config.most_tokens, dc_pdd,
        reference=reference, general=general, perturbations=list(config.perturbations),
    )  # fmt: skip
    check_places(model, reference, corpus, general)
    from nonmember.artifacts import Builder
    from nonmember.artifacts.store import Store
    from nonmember.runtime.quiet import quieten
    from nonmember.tracking.trackers import NoTracker

    quieten()
    compute, asking = build(config.trainer), build(config.asking)
    builder = Builder(Store(Path(config.store)), compute, NoTracker(), asking=asking)
    path = (folder / "scores.parquet").resolve()
    settings = {"cleaning": plain(config.cleaning)} if "cleaning" in config.data else {}
    write_scores(scoring, builder, path, settings)
    return path
