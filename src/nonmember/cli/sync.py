"""`nonmember sync [FOLDER]`: a W&B run for every audit on disk, once, whether or not it was logged live.

Nothing is run and no model opened: numbers come from the result, training curves from the store's models.

A ledger in `<outputs>/wandb/synced.json` says what was sent where: destination -> run id -> hash of what was sent. It
is written after each run, so an interrupted sync goes on where it was, and what has changed since is sent again.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nonmember.artifacts.store import Store, text_hash
from nonmember.records.curves import CURVES
from nonmember.results.mirror import FACTS, Texts, mirror
from nonmember.results.outcomes import outcome_paths, read_outcome, reason_of
from nonmember.results.result import CONFIG, AuditResult, Failure
from nonmember.runtime.files import file_hash, json_object, write_text_atomically
from nonmember.runtime.naming import outputs_folder
from nonmember.runtime.progress import tracked
from nonmember.runtime.terminal import visible
from nonmember.tracking.online import Unreachable
from nonmember.tracking.trackers import RunInfo, Tracker, WandbLogging, destination_of, noted_run_id, run_id_of

LEDGER = "synced.json"
MODES = ("online", "offline")


@dataclass(frozen=True)
class SyncedAudit:
    """A finished or failed audit on disk. config: as it was resolved, empty where it was not kept."""

    path: Path
    outcome: AuditResult | Failure
    config: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def expected_id(self) -> str:
        """The id of its run, where W&B has not given another."""
        about = self.outcome
        key = about.provenance.keys.get("audit", "") if isinstance(about, AuditResult) else ""
        cell = about.question.cell if isinstance(about, AuditResult) else about.cell
        return run_id_of(self.sweep, cell, key)

    @property
    def sweep(self) -> str:
        about = self.outcome
        named = about.question.sweep if isinstance(about, AuditResult) else self.config.get("name")
        return named or self.folder.parent.name

    def info(self) -> RunInfo:
        """What W&B calls it: as the live run did."""
        about = self.outcome
        if isinstance(about, AuditResult):
            asked = about.question
            cell, method, tags = asked.cell, asked.method, [asked.corpus, asked.target]
            noted = noted_run_id(self.folder, self.expected_id)
        else:
            cell, method, tags = about.cell, _method_of(self.config), [(self.config.get("data") or {}).get("label")]
            noted = noted_run_id(self.folder, None)
        return RunInfo(
            name=cell,
            group=self.sweep,
            job_type=method,
            tags=[tag for tag in tags if tag],
            config=self.config,
            folder=self.folder,
            run_id=noted or self.expected_id,
            live=False,
        )

    def send_to(self, tracker: Tracker, given: Texts | None, curves: Mapping[str, Path]) -> None:
        """curves: file of a model's training, by the model's key."""
        if isinstance(self.outcome, AuditResult):
            for role, key in self.outcome.provenance.keys.items():
                if key in curves:
                    tracker.training_again(role, curves[key])
            mirror(tracker, self.outcome, self.folder, None if given is None else texts_of(self, given))
        else:
            tracker.describe(FACTS, {"sweep": self.sweep, "name": self.outcome.cell})
            tracker.summarise({"error": self.outcome.error, "error_kind": self.outcome.kind})


def main() -> None:
    """Entry of `nonmember sync`."""
    outputs = outputs_folder()
    environment_mode = os.environ.get("WANDB_MODE")
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="nonmember sync", description="Copy the audits below a folder to W&B."
    )
    parser.add_argument("folder", type=Path, nargs="?", default=outputs / "audits", help="default: %(default)s")
    parser.add_argument(
        "--project", default=os.environ.get("WANDB_PROJECT") or "nonmember", help="default: %(default)s"
    )
    parser.add_argument("--entity", default=os.environ.get("WANDB_ENTITY"), help="a team; default: your own")
    parser.add_argument(
        "--mode",
        choices=MODES,
        default=environment_mode if environment_mode in MODES else "online",
        help="default: %(default)s; offline runs can be sent later with `wandb sync`",
    )
    parser.add_argument(
        "--store",
        type=Path,
        default=outputs / "store",
        help="training curves of the models in it are sent too; default: %(default)s",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be sent, and send nothing")
    parser.add_argument(
        "--text",
        nargs="*",
        metavar="key=value",
        help="send the documents' texts along with their scores; the words name the documents as for `nonmember "
        "audit`: --text data.path=documents.jsonl",
    )
    given = parser.parse_args()
    paths = outcome_paths(given.folder)
    destination = destination_of(given.entity, given.project, given.mode)
    if server := os.environ.get("WANDB_BASE_URL"):
        destination += f" {server}"
    ledger = Ledger(outputs / "wandb" / LEDGER, destination)
    sync(
        paths,
        ledger,
        outputs / "wandb",
        project=given.project,
        entity=given.entity,
        mode=given.mode,
        dry_run=given.dry_run,
        text=given.text,
        store=given.store,
    )


def sync(
    paths: list[Path],
    ledger: Ledger,
    directory: Path,
    *,
    project: str,
    entity: str | None,
    mode: str,
    dry_run: bool,
    text: Sequence[str] | None,
    store: Path,
) -> None:
    """Send what the ledger does not have, and say how much that was. Raises ValueError where something failed."""
    from filelock import FileLock, Timeout

    given = None if text is None else given_documents(text)
    logging = WandbLogging(project, mode, str(directory), entity=entity, log_text=given is not None)
    curves = curves_in(store)
    sent, there, problems = 0, 0, []
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(directory / f".{LEDGER}.lock", timeout=0):
            for path in tracked(paths, "syncing", "results"):
                try:
                    cell = _load(path)
                    content = file_hash(path) + ("" if given is None else f"+text {text_hash(' '.join(sorted(given)))}")
                    info = cell.info()
                    assert info.run_id is not None
                    if ledger.has(info.run_id, content):
                        there += 1
                        continue
                    if dry_run:
                        sys.stdout.write(visible(f"would send {info.group}/{info.name} as {info.run_id}") + "\n")
                    else:
                        send(cell, info, logging, given, curves)
                        ledger.note(info.run_id, content)
                    sent += 1
                except Unreachable:
                    raise
                except Exception as error:  # whatever somebody wrote there, the others are sent
                    problems.append(f"{path.parent.name}: {reason_of(error)}")
    except Timeout as error:
        raise ValueError("Another sync is running. Wait until it ends, then sync again.") from error
    for problem in problems:
        sys.stderr.write(f"not sent  {visible(problem)}\n")
    sys.stdout.write(f"{'would send' if dry_run else 'sent'} {sent}, already there {there}, failed {len(problems)}\n")
    if problems:
        raise ValueError(f"{len(problems)} of {len(paths)} could not be sent; fix that and sync again to continue.")


def send(cell: SyncedAudit, info: RunInfo, logging: Any, given: Texts | None, curves: Mapping[str, Path]) -> None:
    """One run from start to end; that of a failed audit is marked as failed. given: documents to be sent along."""
    has_curves = logging.has(replace(info, run_id=cell.expected_id))  # of the live run
    tracker = logging.start(info)
    failed = True
    try:
        cell.send_to(tracker, given, {} if has_curves else curves)
        failed = isinstance(cell.outcome, Failure)
    finally:
        tracker.finish(failed=failed)


def curves_in(store: Path) -> dict[str, Path]:
    """Key -> kept curves, of the models in a store."""
    folders = [path.parent for path in Store(store).sidecars("models")]
    return {folder.name.rpartition("-")[2]: folder / CURVES for folder in folders if (folder / CURVES).is_file()}


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


def texts_of(cell: SyncedAudit, given: Texts) -> Texts:
    """Of the given documents those that an audit was about. given: by fingerprint.

    Raises ValueError where its suspect set is not among them.
    """
    assert isinstance(cell.outcome, AuditResult)
    groups = {"suspect" if name == "corpus" else name: key for name, key in cell.outcome.provenance.keys.items()}
    texts = {name: given[key] for name, key in groups.items() if key in given}
    if "suspect" not in texts:
        raise ValueError(
            "--text must name the documents of the audit; got others. Give the words that named them to `nonmember "
            "audit`, as in --text data.path=documents.jsonl, or sync without --text."
        )
    return texts


def given_documents(arguments: Sequence[str]) -> Texts:
    """Fingerprint -> document id -> text, of the documents that the words name as they do for `nonmember audit`.

    The folder of an audit is not asked what its documents are: it may come from somebody else, and its config would
    say what is opened on this machine.
    """
    from omegaconf import OmegaConf

    from nonmember.config.compose import composed
    from nonmember.config.roots import require_complete
    from nonmember.config.safety import instantiate
    from nonmember.sweeps.running import builder_of

    if strange := [word for word in arguments if "=" not in word]:
        raise ValueError(f"--text must be followed by key=value words; got {strange[0]!r}. Put a folder before --text.")
    with composed("audit", arguments) as (config, _):
        data = config.data
        require_complete(OmegaConf.create({"data": OmegaConf.to_container(data, resolve=False)}))
        builder = builder_of(config)
        named = (item for item in (data, data.get("heldout"), data.get("unseen")) if item)
        corpora = [instantiate(item.corpus) for item in named if not OmegaConf.is_missing(item, "path")]
    if any(corpus.is_secret for corpus in corpora):
        raise ValueError("Canaries are secret, and their texts are not sent. Leave --text out.")
    return {
        corpus.fingerprint(builder): {document.doc_id: document.text for document in builder.get(corpus).documents}
        for corpus in corpora
    }


def _load(path: Path) -> SyncedAudit:
    kept = path.parent / CONFIG
    return SyncedAudit(path, read_outcome(path), _read(kept) if kept.is_file() else {})


def _read(path: Path) -> dict[str, Any]:
    try:
        return json_object(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} cannot be read ({error}). Remove it, or run that audit again.") from error


def _method_of(config: Mapping[str, Any]) -> str:
    """The method's name as in results; of one that cannot be told, just `audit`."""
    method = config.get("method")
    module, _, name = str(method.get("_target_", "")).rpartition(".") if isinstance(method, Mapping) else ("", "", "")
    if not module.startswith("nonmember.methods"):  # the folder may be somebody else's, and others act when imported
        return "audit"
    try:
        return str(getattr(importlib.import_module(module), name).name)
    except (ImportError, AttributeError):
        return "audit"
