"""The Hydra entry of `nonmember score`: the scores alone, for whoever wants to use them elsewhere."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from nonmember.config import require_complete, run_with_hydra

log = logging.getLogger(__name__)


def main() -> None:
    """Print the path of the table as the last line."""

    def run(config: DictConfig, folder: Path) -> None:
        sys.stdout.write(f"{score(config, folder)}\n")

    run_with_hydra("score", run)


def score(config: DictConfig, folder: Path) -> Path:
    """Write scores.parquet: doc_id, loss, zlib, lowercase, min_k, min_k_plus_plus (not for an endpoint); with a
    reference, also ref_diff and ref_ratio. NaN where a score is undefined; how many, and why, is logged."""
    if OmegaConf.is_missing(config.reference or {}, "path"):
        config.reference = None
    require_complete(config)
    from nonmember import scores as family
    from nonmember.checks import check_places, check_settings
    from nonmember.corpora.specs import require_count
    from nonmember.question import build

    check_settings(config)
    model, reference, corpus = (build(node) for node in (config.model, config.reference, config.data.corpus))
    check_places(model, reference, corpus)
    require_count(config.max_tokens, 2, "max_tokens")
    wanted: dict[str, family.Score] = {
        "loss": family.Loss(),
        "zlib": family.Zlib(),
        "lowercase": family.Lowercase(),
        "min_k": family.MinK(config.k),
        "min_k_plus_plus": family.MinKPlusPlus(config.k),
    }
    from nonmember.artifacts import Builder
    from nonmember.asking.models import Endpoint
    from nonmember.audits.record import table_of_scores, write_table
    from nonmember.observations import Scored
    from nonmember.quiet import quieten
    from nonmember.store import Store
    from nonmember.tracking import NoTracker

    quieten()
    compute, asking = build(config.trainer), build(config.asking)
    builder = Builder(Store(Path(config.store)), compute, NoTracker(), asking=asking)
    if reference is not None:
        wanted |= {"ref_diff": family.ReferenceDifference(), "ref_ratio": family.ReferenceRatio()}
    if isinstance(model, Endpoint):  # which does not tell whole distributions
        wanted = {name: one for name, one in wanted.items() if not one.needs_distribution}
    scored = [
        score(Scored("model", model, corpus, score, config.max_tokens, reference).inputs(builder))
        for score in wanted.values()
    ]
    columns, reasons = table_of_scores(list(wanted), scored)
    for name, why in reasons.items():
        if why:
            log.warning("%s is undefined for %d documents: %s.", name, len(why), ", ".join(sorted(set(why.values()))))
    folder.mkdir(parents=True, exist_ok=True)
    path = (folder / "scores.parquet").resolve()
    write_table(columns, path)
    return path
