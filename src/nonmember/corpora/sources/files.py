"""Which files hold a source's documents: paths, patterns and folders, their forms, links, shards and splits.

What a folder holds is compared with what its own lists and names say should be there: a missing shard is an error, and
several splits are never read as one.
"""

from __future__ import annotations

import functools
import glob
import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar, get_args

from nonmember.checks import first_few, require_choice
from nonmember.corpora.sources.formats import BY_SUFFIX, Form, Split, form_of, plain_suffix, stem_of
from nonmember.corpora.sources.rows import json_value
from nonmember.runtime.naming import path_of

log = logging.getLogger(__name__)

T = TypeVar("T")

SHARD = re.compile(r"(?P<name>.*)-(?P<number>\d{5})-of-(?P<total>\d{5})(-[0-9a-f]{6,})?(?P<suffix>\..*)?")
SPLIT = re.compile(
    r"(?<![a-z])(train|training|validation|valid|val|dev|test|testing|eval|evaluation)(?![a-z])", re.IGNORECASE
)
# What `datasets` leaves beside the files that `save_to_disk` writes.
STATE, SPLITS = "state.json", "dataset_dict.json"
CACHE = re.compile(r"(cache|tmp).*\.arrow")
# What stands beside the files of a data set and holds no documents.
NOT_DOCUMENTS = re.compile(
    r"(readme|license|licence|notice|changelog)(\..*)?|(dataset_infos?|dataset_dict|state)\.json", re.I
)


class File(NamedTuple):
    """A file with documents.

    Attributes:
        name: What ids without an id column begin with.
        path: Where it lies.
        form: What it is.
        split: What a document of it is, where it is text.
    """

    name: str
    path: Path
    form: Form
    split: Split | None


def documents_at(paths: Sequence[str], split: str | None, pattern: str | None) -> list[File]:
    """The files with documents at paths or patterns, or in one folder; see `Documents` for `split` and `pattern`.

    Raises ValueError where they are of several forms, or splits, and where one is missing.
    """
    folder = path_of(paths[0])
    of_text: Split | None = next((item for item in get_args(Split) if item == split), None)
    is_folder = len(paths) == 1 and folder.is_dir()
    if is_folder:
        found = _of_folder(folder, pattern, None if of_text else split)
        names = {path: path.relative_to(folder).as_posix() for path in found}
    else:
        require_choice(split or "lines", get_args(Split), "data.split", hint="Only folders have other splits.")
        if pattern is not None:
            raise ValueError(
                f"data.pattern chooses files of one folder; got {pattern!r} with {', '.join(paths)}. Name the folder "
                "as data.path, or write the pattern into it."
            )
        found = files_at(paths)
        alike = len({stem_of(path.name) for path in found}) < len(found)
        names = {path: str(path) if alike else path.name for path in found}
    files = []
    for path in found:
        form = form_of(path)
        usual: Split | None = "file" if is_folder or len(found) > 1 else None
        of_file = (of_text or usual) if form == "text" else None
        files.append(File(names[path] if of_file == "file" else stem_of(names[path]), path, form, of_file))
    if len({file.form.partition(" ")[0] for file in files}) > 1:
        raise ValueError(
            f"{', '.join(paths)} has files of several forms ({forms(files)}); the documents' format is ambiguous. Give "
            f"data.pattern='**/*{plain_suffix(files[0].path)}'."
        )
    return files


def forms(files: Sequence[File]) -> str:
    counts = Counter(file.form for file in files)
    return ", ".join(f"{number} files of {form}" if number > 1 else form for form, number in counts.items())


def _of_folder(folder: Path, pattern: str | None, split: str | None) -> list[Path]:
    """Those of the pattern, of the split if one is chosen; else those of a known form, or else all, of one split. In
    order of their names."""
    files = files_in(folder, pattern)
    if pattern is not None:
        if not files:
            raise ValueError(f"No file below {folder} matches {pattern!r}. Correct data.pattern or data.path.")
        return files if split is None else _of_one_split(folder, files_in(folder), files, split)
    if not files:
        raise ValueError(f"The folder {folder} has no files. Name another.")
    documents = _without_caches(files)
    named = [path for path in documents if not NOT_DOCUMENTS.fullmatch(path.name)]
    known = [path for path in named if plain_suffix(path) in BY_SUFFIX]
    if known and (others := Counter(path.suffix for path in named if plain_suffix(path) not in BY_SUFFIX)):
        _say_passed_over(folder, tuple(others.most_common()))
    chosen = _of_one_split(folder, files, known or documents, split)
    _require_all_shards(chosen)
    return chosen


@functools.cache
def _say_passed_over(folder: Path, suffixes: tuple[tuple[str, int], ...]) -> None:
    """Once a process: a folder is listed several times."""
    log.warning(
        "%s: %s files are passed over, as their names say nothing of what they hold (%s). Give data.pattern='**/*%s' "
        "to have such ones read.",
        folder,
        f"{sum(number for _, number in suffixes):,}",
        first_few(f"{number:,} {suffix or 'without a suffix'}" for suffix, number in suffixes),
        suffixes[0][0],
    )


# Paths, patterns and links -------------------------------------------------------------------------------------------


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
    return "what is there is not a regular file (a pipe, a socket or a device)" if path.exists() else "nothing is there"


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


def require_below(pattern: object, name: str = "A pattern") -> None:
    path = Path(pattern) if isinstance(pattern, str) else Path()
    if not path.parts or path.is_absolute() or path.parts[0].startswith("~") or ".." in path.parts:
        raise ValueError(
            f"{name} must be relative and lead below its folder; got {pattern!r}. Give the folder as data.path, and "
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
            refused[path] = "is not a regular file" if target.exists() else "leads nowhere"
        elif target.is_dir() and not os.access(target, os.R_OK | os.X_OK):  # whose files would be missed in silence
            refused[path] = "cannot be opened"
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


def _without_caches(files: Sequence[Path]) -> list[Path]:
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


def _require_all_shards(files: Iterable[Path]) -> None:
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


def _of_one_split(folder: Path, files: Sequence[Path], known: Sequence[Path], split: str | None) -> list[Path]:
    """Of the files of a folder those that may hold documents (`known`) and are of the split that was chosen; all of
    these where it has no splits.

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
    content = json_value(path.read_bytes(), str(path))
    values = content.get(key) if isinstance(content, dict) else None
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        raise ValueError(f"{path} must be a file of `datasets` with a list {key!r}. Fetch or save the data set again.")
    return values
