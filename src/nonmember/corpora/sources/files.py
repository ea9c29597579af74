"""Which files hold a source's documents: paths, patterns and folders, their forms, links, shards and splits.

What a folder holds is compared with what its names say should be there, as less would be read in silence: a missing
shard, a link that leads nowhere and a folder that cannot be opened are errors. Several splits are never read as one.
"""

from __future__ import annotations

import glob
import logging
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from nonmember.checks import first_few, require_choice
from nonmember.corpora.sources.rows import BY_SUFFIX, Form, Split, form_of, plain_suffix, stem_of
from nonmember.runtime.naming import path_of

log = logging.getLogger(__name__)

SHARD = re.compile(r"(?P<name>.*)-(?P<number>\d{5})-of-(?P<total>\d{5})(-[0-9a-f]{6,})?(?P<suffix>\..*)?")
SPLIT = re.compile(
    r"(?<![a-z])(train|training|validation|valid|val|dev|test|testing|eval|evaluation)(?![a-z])", re.IGNORECASE
)
# What stands beside the files of a data set and holds no documents.
NOT_DOCUMENTS = re.compile(
    r"(readme|license|licence|notice|changelog)(\..*)?|(dataset_infos?|dataset_dict|state)\.json|cache-.*\.arrow", re.I
)


class File(NamedTuple):
    """A file with documents."""

    name: str  # what ids without an id column begin with
    path: Path
    form: Form
    split: Split | None  # what a document of it is, where it is text


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
    if not files:
        raise ValueError(f"No file below {folder} matches {pattern or '**/*'!r}. Correct data.pattern or data.path.")
    if pattern is not None:
        return files if split is None else _of_one_split(folder, files, split)
    named = [path for path in files if not NOT_DOCUMENTS.fullmatch(path.name)] or files
    known = [path for path in named if plain_suffix(path) in BY_SUFFIX] or named
    files = _of_one_split(folder, known, split)
    _require_all_shards(files)
    if others := [path.name for path in named if path not in known]:
        log.warning(
            "%s: %d files are passed over for their names (%s). data.pattern chooses files by name.",
            folder,
            len(others),
            first_few(others),
        )
    return files


# Paths, patterns and links -------------------------------------------------------------------------------------------


def files_at(patterns: Iterable[str]) -> list[Path]:
    """The files of paths or patterns, in order of the list, within a pattern of name."""
    paths: list[Path] = []
    for pattern in patterns:
        path = path_of(pattern)
        matching = [path] if path.is_file() else sorted(map(Path, glob.glob(str(path), recursive=True)))
        found = [item for item in matching if _is_file(item)]
        if not found:
            raise ValueError(
                f"Expected a file, or a pattern that matches files, at {pattern}, but "
                f"{'a folder' if path.is_dir() else 'nothing'} is there; correct the path (relative ones start at "
                f"{Path.cwd()}). A data set on the Hugging Face hub: data=hub data.path=NAME data.revision=COMMIT."
            )
        paths += found
    return list(dict.fromkeys(paths))


def files_in(folder: Path, pattern: str | None = None) -> list[Path]:
    """The files below a folder, in order of their names: those that match, or all that are not hidden."""
    files = []
    for path in sorted(folder.glob(pattern or "**/*")):
        if pattern is None and any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        if _is_file(path):
            files.append(path)
        elif path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
            raise ValueError(f"The folder {path} cannot be opened; allow it, or leave it out by data.pattern.")
    return files


def _is_file(path: Path) -> bool:
    """Raises ValueError for a link to what is not there, as of a file that was not fetched: it would be left out."""
    if not path.is_file() and path.is_symlink() and not os.path.exists(path):
        raise ValueError(f"{path} leads nowhere: what it links to was not fetched, or was moved. Fetch or remove it.")
    return path.is_file()


# Shards and splits ---------------------------------------------------------------------------------------------------


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


def _of_one_split(folder: Path, files: Sequence[Path], split: str | None) -> list[Path]:
    """Those of the split that was chosen; all where their names tell of no splits.

    Raises ValueError where there are several splits and none is chosen, or one that is not there.
    """
    splits: dict[str, list[Path]] = {}
    for path in files:
        named = {item.lower() for item in SPLIT.findall(path.relative_to(folder).as_posix())}
        splits.setdefault(named.pop() if len(named) == 1 else "", []).append(path)
    if "" in splits:
        splits = {}
    there = f"its splits are {', '.join(splits)}" if splits else "it has no splits"
    if split is not None and split not in splits:
        raise ValueError(
            f"data.split must be lines, paragraphs, file or a split of {folder}; got {split!r}, and {there}."
        )
    if split is None and len(splits) > 1:
        raise ValueError(f"{folder} has several splits, which are not read as one: {there}. Give data.split=SPLIT.")
    return splits[split] if split is not None else list(files)
