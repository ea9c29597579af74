"""Which files hold a source's documents: paths, patterns and folders, their links, shards and splits.

What a folder holds is compared with what its own lists and names say should be there: a missing shard is an error, and
several splits are never read as one.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from nonmember.checks import first_few
from nonmember.corpora.sources.rows import json_row
from nonmember.runtime.naming import path_of

T = TypeVar("T")

SHARD = re.compile(r"(?P<name>.*)-(?P<number>\d{5})-of-(?P<total>\d{5})(-[0-9a-f]{6,})?(?P<suffix>\..*)?")
SPLIT = re.compile(
    r"(?<![a-z])(train|training|validation|valid|val|dev|test|testing|eval|evaluation)(?![a-z])", re.IGNORECASE
)
# What `datasets` leaves beside the files that `save_to_disk` writes.
STATE, SPLITS = "state.json", "dataset_dict.json"
CACHE = re.compile(r"(cache|tmp).*\.arrow")


def files_at(patterns: Iterable[str]) -> list[Path]:
    """The files of paths or patterns, in order of the list, within a pattern of name."""
    paths: list[Path] = []
    for pattern in patterns:
        path = path_of(pattern)
        found = [path] if path.is_file() else sorted(filter(Path.is_file, map(Path, _matches(path))))
        if not found:
            raise ValueError(
                f"Expected a file, or a pattern that matches files, at {pattern}, but {_what_is_at(path)}; "
                f"correct the path (relative ones start at {Path.cwd()})."
            )
        paths += found
    return list(dict.fromkeys(paths))


def _matches(path: Path) -> list[str]:
    """Those of a pattern; none may lead out of the folder that it names."""
    magic = next((index for index, part in enumerate(path.parts) if glob.has_magic(part)), None)
    if magic is None:
        return []
    found = glob.glob(str(path), recursive=True)
    _require_within(Path(*path.parts[:magic]), map(Path, found))
    return found


def _what_is_at(path: Path) -> str:
    if path.is_dir():
        return "a folder is there"
    if path.is_symlink() and not path.exists():
        return "a link that leads nowhere is there"
    return "what is there is no regular file (a pipe, a socket or a device)" if path.exists() else "nothing is there"


def files_in(folder: Path, pattern: str | None = None) -> list[Path]:
    """The files below a folder, in order of their names: those that match, or all that are not hidden.

    Raises ValueError for a link that leads out of the folder or nowhere, and for what is no file.
    """
    if pattern is not None:
        require_below(pattern)
        found = sorted(folder.glob(pattern))
    else:
        found = sorted(path for path in folder.rglob("*") if not _is_hidden(path.relative_to(folder)))
    _require_within(folder, found)
    return [path for path in found if path.is_file()]


def require_below(pattern: str) -> None:
    if not pattern or Path(pattern).is_absolute() or pattern.startswith("~") or ".." in Path(pattern).parts:
        raise ValueError(
            f"A pattern must be relative and lead below its folder; got {pattern!r}. Give the folder as data.path, and "
            'what is wanted of it as data.pattern, such as "**/*.txt".'
        )


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _require_within(folder: Path, paths: Iterable[Path]) -> None:
    """A folder may itself be a link, or lie in the cache of the Hugging Face hub, whose links lead to its blobs."""
    root = folder.resolve()
    allowed = [root, *(above.parent / "blobs" for above in (root, *root.parents) if _is_snapshots(above))]
    refused = {}
    for path in paths:
        try:
            target = path.resolve()
        except (OSError, RuntimeError):  # links that lead to each other
            refused[path] = "leads nowhere"
            continue
        if not any(target.is_relative_to(item) for item in allowed):
            refused[path] = f"leads to {target}"
        elif not (target.is_file() or target.is_dir()):
            refused[path] = "is no regular file" if target.exists() else "leads nowhere"
    if refused:
        first, what = next(iter(refused.items()))
        more = f" (and {len(refused) - 1} others likewise)" if len(refused) > 1 else ""
        raise ValueError(
            f"All that is in the folder {folder} must be files and links within it, but {first.relative_to(folder)} "
            f"{what}{more}. Remove it, choose others with data.pattern, or give the files themselves as data.path."
        )


def _is_snapshots(path: Path) -> bool:
    return path.name == "snapshots" and path.parent.name.startswith("datasets--")


# Shards and splits ---------------------------------------------------------------------------------------------------


def without_caches(files: Sequence[Path]) -> list[Path]:
    """Of folders that `datasets` saved, the files that belong to the data; others as they are.

    Raises ValueError where a file that is listed is not there, or one is there that is not listed.
    """
    left_out: set[Path] = set()
    for state in (path for path in files if path.name == STATE and path.with_name("dataset_info.json") in files):
        names = _read(state, "_data_files", dict)
        listed = {state.parent / str(item.get("filename")) for item in names}
        there = {path for path in files if path.parent == state.parent and path.suffix == ".arrow"}
        caches = {path for path in there - listed if CACHE.fullmatch(path.name)}
        if listed != there - caches:
            missing, more = sorted(listed - there), sorted(there - caches - listed)
            what = f"{first_few(missing)} is not there" if missing else f"{first_few(more)} is not among them"
            raise ValueError(f"{state} lists the files of the data set, but {what}. Fetch or save the data set again.")
        left_out |= caches
    return [path for path in files if path not in left_out]


def require_all_shards(files: Iterable[Path]) -> None:
    """Raises ValueError where files are numbered "00000-of-00003" and one of these is missing."""
    numbers: dict[tuple[str, ...], set[int]] = {}
    for path in files:
        if (item := SHARD.fullmatch(path.name)) is not None:
            key = (str(path.parent), item["name"], item["total"], item["suffix"] or "")
            numbers.setdefault(key, set()).add(int(item["number"]))
    for (folder, name, total, suffix), there in numbers.items():
        if missing := sorted(set(range(int(total))) - there):
            names = [f"{name}-{number:05d}-of-{total}{suffix}" for number in missing]
            raise ValueError(
                f"{folder} has {len(there)} of {int(total)} files of {name}; {first_few(names)} is missing. Fetch it, "
                "or choose the files with data.pattern."
            )


def of_one_split(folder: Path, files: Sequence[Path], known: Sequence[Path], split: str | None) -> list[Path]:
    """The files of the split that was chosen; all where the folder has no splits.

    files: all of the folder.   known: those that may hold documents.
    Raises ValueError where there are several splits and none is chosen, or one that is not there.
    """
    splits = _splits(folder, files, known)
    if split is not None and split not in splits:
        there = f"its splits are {', '.join(splits)}" if splits else "it has no splits"
        raise ValueError(
            f"data.split must be lines, paragraphs, file or a split of {folder}; got {split!r}, and {there}."
        )
    if split is None and len(splits) > 1:
        raise ValueError(
            f"{folder} has several splits ({', '.join(splits)}), which are not read as one. Give data.split="
            f"{next(iter(splits))}, or the files or folder of one as data.path."
        )
    return splits[split] if split is not None else list(known)


def _splits(folder: Path, files: Sequence[Path], known: Sequence[Path]) -> dict[str, list[Path]]:
    """Split -> its files: as `datasets` saved them, or told by the names of all files."""
    saved = {path.parent for path in files if path.name == STATE and path.parent != folder}
    if folder / SPLITS in files:
        names = _read(folder / SPLITS, "splits", str)
        if missing := [name for name in names if folder / name not in saved]:
            raise ValueError(
                f"{folder / SPLITS} lists the splits of the data set, but {first_few(missing)} is not there. Fetch or "
                "save the data set again."
            )
    if saved:
        return {
            item.relative_to(folder).as_posix(): [path for path in known if path.is_relative_to(item)]
            for item in sorted(saved)
        }
    splits: dict[str, list[Path]] = {}
    for path in known:
        named = {item.lower() for item in SPLIT.findall(path.relative_to(folder).as_posix())}
        if len(named) != 1:
            return {}
        splits.setdefault(named.pop(), []).append(path)
    return splits


def _read(path: Path, key: str, kind: type[T]) -> list[T]:
    """The list under a key of a file that `datasets` has written."""
    values = json_row(path.read_bytes(), str(path)).get(key)
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        raise ValueError(f"{path} must be a file of `datasets` with a list {key!r}. Fetch or save the data set again.")
    return values
