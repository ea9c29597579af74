"""`nonmember sync [FOLDER]`: W&B gets a copy of every audit on disk, each once, with or without a live run before.

A ledger in `<outputs>/wandb/synced.json` says what was sent where: destination -> run id -> hash of what was sent. It
is written after each run, so an interrupted sync goes on where it was, and what has changed since is sent again.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonmember.files import file_hash, write_text_atomically
from nonmember.outcomes import outcome_paths, read_outcome
from nonmember.records import CONFIG, AuditResult, Failure

if TYPE_CHECKING:
    from nonmember.mirror import Texts
    from nonmember.tracking import RunInfo, Tracker

LEDGER = "synced.json"
MODES = ("online", "offline")


@dataclass(frozen=True)
class Cell:
    """A finished or failed audit on disk. config: as it was resolved, empty where it was not kept."""

    path: Path
    outcome: AuditResult | Failure
    config: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        return self.path.parent

    def info(self) -> RunInfo:
        """What W&B calls it: as the live run did."""
        from nonmember.tracking import RunInfo, noted_run_id, run_id_of

        about = self.outcome
        if isinstance(about, AuditResult):
            sweep, cell, method = about.sweep or self.folder.parent.name, about.cell, about.method
            tags = [about.corpus, about.target]
            expected = run_id_of(sweep, cell, about.keys.get("audit", ""))
            run_id = noted_run_id(self.folder, expected) or expected
        else:
            sweep, cell = self.config.get("name") or self.folder.parent.name, about.cell
            method, tags = _method_of(self.config), [(self.config.get("data") or {}).get("label")]
            run_id = noted_run_id(self.folder, None) or run_id_of(sweep, cell, "")
        return RunInfo(
            name=cell, group=sweep, job_type=method, tags=[tag for tag in tags if tag], config=self.config,
            folder=self.folder, run_id=run_id, live=False,
        )  # fmt: skip

    def tell(self, tracker: Tracker, *, text: bool) -> None:
        from nonmember.mirror import FACTS, mirror

        if isinstance(self.outcome, AuditResult):
            mirror(tracker, self.outcome, self.folder, texts_of(self) if text else None)
        else:
            tracker.describe(FACTS, {"sweep": self.info().group, "name": self.outcome.cell})
            tracker.summarise({"error": self.outcome.error, "error_kind": self.outcome.kind})


def main() -> None:
    """Entry of `nonmember sync`."""
    outputs = Path(os.environ.get("NONMEMBER_OUTPUTS") or "outputs")
    environment_mode = os.environ.get("WANDB_MODE")
    parser = argparse.ArgumentParser(prog="nonmember sync", description="Copy the audits below a folder to W&B.")
    parser.add_argument("folder", type=Path, nargs="?", default=outputs / "audits", help="default: %(default)s")
    parser.add_argument(
        "--project", default=os.environ.get("WANDB_PROJECT") or "nonmember", help="default: %(default)s"
    )
    parser.add_argument("--entity", default=os.environ.get("WANDB_ENTITY"), help="a team; default: one's own")
    parser.add_argument(
        "--mode", choices=MODES, default=environment_mode if environment_mode in MODES else "online",
        help="default: %(default)s; offline runs can be sent later with `wandb sync`",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="say what would be sent, and send nothing")
    parser.add_argument("--text", action="store_true", help="send the documents' texts along with their scores")
    given = parser.parse_args()
    paths = outcome_paths(given.folder)
    destination = f"{given.entity or 'default'}/{given.project} {given.mode}"
    if server := os.environ.get("WANDB_BASE_URL"):
        destination += f" {server}"
    ledger = Ledger(outputs / "wandb" / LEDGER, destination)
    sync(
        paths, ledger, outputs / "wandb", project=given.project, entity=given.entity, mode=given.mode,
        dry_run=given.dry_run, text=given.text,
    )  # fmt: skip


def sync(
    paths: list[Path], ledger: Ledger, directory: Path, *, project: str, entity: str | None, mode: str,
    dry_run: bool, text: bool,
) -> None:  # fmt: skip
    """Send what the ledger does not have, and say how much that was. Raises ValueError where something failed."""
    from filelock import FileLock, Timeout

    from nonmember.online import Unreachable
    from nonmember.tracking import WandbLogging

    logging = WandbLogging(project, mode, str(directory), entity=entity, log_text=text)
    sent, there, problems = 0, 0, []
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(directory / f".{LEDGER}.lock", timeout=0):
            for path in _with_progress(paths):
                try:
                    content = file_hash(path) + ("+text" if text else "")
                    cell = _load(path)
                    info = cell.info()
                    assert info.run_id is not None
                    if ledger.has(info.run_id, content):
                        there += 1
                        continue
                    if dry_run:
                        sys.stdout.write(f"would send {info.group}/{info.name} as {info.run_id}\n")
                    else:
                        send(cell, info, logging, text=text)
                        ledger.note(info.run_id, content)
                    sent += 1
                except Unreachable:
                    raise
                except (ValueError, OSError) as error:
                    problems.append(f"{path.parent.name}: {error}")
    except Timeout as error:
        raise ValueError("Another sync is at work. Wait for its end, and sync again.") from error
    for problem in problems:
        sys.stderr.write(f"not sent  {problem}\n")
    sys.stdout.write(f"{'would send' if dry_run else 'sent'} {sent}, already there {there}, failed {len(problems)}\n")
    if problems:
        raise ValueError(f"{len(problems)} of {len(paths)} could not be sent; put that right and sync again to go on.")


def send(cell: Cell, info: RunInfo, logging: Any, *, text: bool) -> None:
    """One run from start to end; that of a failed audit is marked as failed."""
    tracker = logging.start(info)
    failed = True
    try:
        cell.tell(tracker, text=text)
        failed = isinstance(cell.outcome, Failure)
    finally:
        tracker.finish(failed=failed)


class Ledger:
    """What has been sent to one destination; the file holds those of all destinations."""

    def __init__(self, path: Path, destination: str):
        self._path, self._destination = path, destination
        try:
            self._all = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
            self._sent: dict[str, str] = dict(self._all.get(destination, {}))
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path} cannot be read ({error}). Remove it; everything will be sent once more."
            ) from error

    def has(self, run_id: str, content: str) -> bool:
        return self._sent.get(run_id) == content

    def note(self, run_id: str, content: str) -> None:
        self._sent[run_id] = content
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(self._path, json.dumps(self._all | {self._destination: self._sent}, indent=1) + "\n")


def texts_of(cell: Cell) -> Texts:
    """The documents an audit was about, made again from its config.

    Raises ValueError where there is no config, or the documents are no longer those.
    """
    if not cell.config:
        raise ValueError(
            f"There is no {CONFIG} in {cell.folder}, which says what the documents are. Sync without --text."
        )
    from omegaconf import OmegaConf

    from nonmember.audit import builder_of
    from nonmember.config import register
    from nonmember.question import build_audit

    assert isinstance(cell.outcome, AuditResult)
    register()
    config = OmegaConf.create(dict(cell.config))
    audit, builder = build_audit(config), builder_of(config)
    texts = {}
    for name, group in audit.groups.items():
        key = "corpus" if name == "suspect" else name
        if group.corpus.fingerprint(builder) != cell.outcome.keys.get(key):
            raise ValueError("The documents are not those of the audit any more. Run it again, or sync without --text.")
        texts[name] = {document.doc_id: document.text for document in builder.get(group.corpus).documents}
    return texts


def _load(path: Path) -> Cell:
    kept = path.parent / CONFIG
    return Cell(path, read_outcome(path), _read(kept) if kept.is_file() else {})


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} cannot be read ({error}). Remove it, or run that audit again.") from error


def _method_of(config: Mapping[str, Any]) -> str:
    """The method's name as in results; of one that cannot be told, just `audit`."""
    module, _, name = str((config.get("method") or {}).get("_target_", "")).rpartition(".")
    if not module.startswith("nonmember."):
        return "audit"
    try:
        return str(getattr(importlib.import_module(module), name).name)
    except (ImportError, AttributeError):
        return "audit"


def _with_progress(paths: list[Path]) -> Iterator[Path]:
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    yield from track(paths, "syncing", console=console, disable=not console.is_terminal, transient=True)
