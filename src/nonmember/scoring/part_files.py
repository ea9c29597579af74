"""The folder of a streamed corpus's scores: what lies where, what is complete, what was changed since.

<folder>/question.json                what all parts answer
<folder>/scores/part-00000.parquet    a row per document of one part
<folder>/manifests/part-00000.json    hashes of that table and of its documents, counts; with it the part is complete
<folder>/manifest.json                all of it; with it the whole is complete
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonmember.artifacts.store import key_hash
from nonmember.runtime.files import file_hash, remove_temporary, write_text_atomically

if TYPE_CHECKING:
    import pyarrow.dataset

log = logging.getLogger(__name__)

QUESTION, MANIFEST = "question.json", "manifest.json"
TABLES, MANIFESTS, SCRATCH = "scores", "manifests", ".part-"
NAMED = 5  # settings that a line lists


@dataclass(frozen=True)
class PartFiles:
    folder: Path

    def table(self, name: str) -> Path:
        return self.folder / TABLES / f"{name}.parquet"

    def manifest(self, name: str) -> Path:
        return self.folder / MANIFESTS / f"{name}.json"

    def begin(self, question: Mapping[str, Any]) -> None:
        """Clear away what a killed run left. Raises ValueError where the folder has parts that answer something else.
        Call it only while holding the folder's lock."""
        there = read_json(self.folder / QUESTION)
        is_same = there is not None and key_hash(there) == key_hash(question)
        if not is_same and any((self.folder / MANIFESTS).glob("part-*.json")):
            there = there or {}
            differ = dict.fromkeys(name for name in (*question, *there) if there.get(name) != question.get(name))
            changed = " (the documents have changed)" if "corpus" in differ else ""
            raise ValueError(
                f"{self.folder} must be empty, or hold parts of these scores; it holds parts of others: "
                f"{', '.join(list(differ)[:NAMED])} differ{changed}. Choose another folder with hydra.run.dir=FOLDER, "
                "or remove that one."
            )
        for name in (TABLES, MANIFESTS):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
            remove_temporary(self.folder / name)
        for left in self.folder.glob(f"{SCRATCH}*"):
            shutil.rmtree(left)
        if not is_same:
            write_json(self.folder / QUESTION, question)

    def complete(self, name: str) -> dict[str, Any] | None:
        """The manifest of a part whose table is what it was when it was written; otherwise nothing is left of it."""
        manifest, table = read_json(self.manifest(name)), self.table(name)
        if manifest is not None and table.is_file() and file_hash(table) == manifest.get("sha256"):
            return manifest
        if manifest is not None:
            log.warning("%s was changed or lost since it was written; it is made again.", table)
        self.manifest(name).unlink(missing_ok=True)
        table.unlink(missing_ok=True)
        return None


def open_scores(folder: Path, *, verify: bool) -> pyarrow.dataset.Dataset:
    """The tables of a folder that `nonmember score` has completed, as a data set that is read when it is used.

    verify: whether the tables are compared with the hashes in the manifest first.
    """
    files = PartFiles(folder.parent if folder.name == TABLES else folder)
    manifest = read_json(files.folder / MANIFEST)
    if manifest is None:
        made = len(list((files.folder / MANIFESTS).glob("part-*.json")))
        what = f"{made} parts are there, but not all" if made else "there are none"
        raise ValueError(
            f"{files.folder} must hold the scores of streamed documents with their {MANIFEST}; {what}. Start the same "
            "nonmember score again to continue."
        )
    paths = []
    for part in manifest["parts"]:
        path = files.folder / part["file"]
        if not path.is_file() or (verify and file_hash(path) != part["sha256"]):
            state = "was changed after it was written" if path.is_file() else "is missing"
            raise ValueError(f"{path} {state}. Start the same nonmember score again; it makes that part again.")
        paths.append(str(path))
    import pyarrow.dataset  # which imports pandas

    return pyarrow.dataset.dataset(paths, format="parquet")


def read_json(path: Path) -> dict[str, Any] | None:
    """None where there is none, or something else."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_text_atomically(path, json.dumps(value, indent=1) + "\n")
