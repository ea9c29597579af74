"""The Hydra entry of `nonmember audit`: composes and builds, then hands over to the pipeline."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from nonmember.config import config_directory, register
from nonmember.processes import process_rank

if TYPE_CHECKING:
    from nonmember.pipeline import Audit
    from nonmember.records import AuditResult

log = logging.getLogger(__name__)

ERROR = "error.json"


def main() -> None:
    """Run one audit or, with -m, a grid of them; then the table of all cells, failed ones included."""
    register()
    cells: list[AuditResult | str] = []

    @hydra.main(config_path=str(config_directory()), config_name="audit", version_base=None)
    def run(config: DictConfig) -> None:
        folder = Path(HydraConfig.get().runtime.output_dir)
        try:
            cells.append(run_cell(config, folder))
        except Exception as error:
            cells.append(f"{folder.name}: {error}")
            record_failure(folder, error)
            raise

    try:
        run()
    finally:
        if cells and process_rank() == 0:
            from nonmember.table import show

            show(cells)


def run_cell(config: DictConfig, folder: Path) -> AuditResult:
    """One audit: skipped where its result is there already."""
    from nonmember.pipeline import finished, run_audit
    from nonmember.quiet import quieten
    from nonmember.store import Store
    from nonmember.tracking import NoLogging, NoTracker, RunInfo
    from nonmember.workshop import Workshop

    quieten()
    audit = build_audit(config)
    compute = hydra.utils.instantiate(config.trainer, _convert_="all")
    workshop = Workshop(Store(Path(config.store)), compute, NoTracker())
    title = f"{audit.method.name}: {config.data.label} under {config.target.get('label') or config.target.path}"
    started = time.monotonic()
    if (result := finished(audit, workshop, folder)) is not None:
        log.info("%s: found.", title)
        return result
    log.info("%s", title)
    info = RunInfo(
        name=folder.name,
        group=config.name,
        job_type=audit.method.name,
        tags=[config.data.label, str(config.target.get("label") or config.target.path)],
        config=plain(config),
        folder=folder,
    )
    logger = hydra.utils.instantiate(config.logger) if process_rank() == 0 else NoLogging()
    with logger.start(info) as tracker:
        workshop.tracker = tracker
        result = run_audit(audit, workshop, tracker, folder)
    (folder / ERROR).unlink(missing_ok=True)
    log.info("%s: %s in %.0f s", title, result.verdict, time.monotonic() - started)
    return result


def build_audit(config: DictConfig) -> Audit:
    """The question as specs. Nothing is read or made yet."""
    from nonmember.pipeline import Audit

    def build(node: Any) -> Any:
        return hydra.utils.instantiate(node, _convert_="all")

    return Audit(
        target=build(config.target),
        reference=build(config.reference),
        suspect=build(config.data.corpus),
        method=build(config.method),
        seed=config.seed,
        corpus_label=config.data.label,
        truth=config.truth,
    )


def plain(config: DictConfig) -> dict[str, Any]:
    """The resolved config as plain containers."""
    container = OmegaConf.to_container(config, resolve=True)
    assert isinstance(container, dict)
    return {str(name): value for name, value in container.items()}


def record_failure(folder: Path, error: Exception) -> None:
    """Leave the reason beside where the result would be; a full disk must not hide it."""
    from nonmember.store import write_text_atomically

    try:
        folder.mkdir(parents=True, exist_ok=True)
        reason = {"error": str(error), "kind": type(error).__name__}
        write_text_atomically(folder / ERROR, json.dumps(reason, indent=1) + "\n")
    except OSError as second:
        log.warning("The error could not be recorded in %s: %s", folder, second)
