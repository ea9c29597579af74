"""`nonmember store list|verify|remove`: maintenance of the artifact store."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from nonmember.artifacts import keeping
from nonmember.artifacts.keeping import Kept
from nonmember.checks import require_number
from nonmember.cli import parser_of
from nonmember.runtime.files import files_below, json_object
from nonmember.runtime.naming import outputs_folder
from nonmember.runtime.progress import in_short, tracked
from nonmember.runtime.terminal import visible

RESULT = "result.json"
DAY = 86400.0
NAMED = 3  # results in a line
KEEP_DAYS = 1.0


def main() -> None:
    outputs = outputs_folder()
    parser = parser_of("store", "Manage the artifact store.")
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    def action(name: str, run: object, what: str, *, results: bool = False) -> argparse.ArgumentParser:
        item = actions.add_parser(name, help=what, description=what, allow_abbrev=False)
        item.add_argument("--store", type=Path, default=outputs / "store", help="default: %(default)s")
        if results:
            item.add_argument(
                "--results",
                type=Path,
                nargs="+",
                default=[outputs / "audits"],
                metavar="FOLDER",
                help=f"folders of results that depend on it; default: {outputs / 'audits'}",
            )
        item.set_defaults(run=run)
        return item

    action("list", list_entries, "every entry: kind, size, age, label, and which results need it", results=True)
    action("verify", verify, "check every file against its hash; nothing is changed")
    item = action("remove", remove, "remove entries that no result needs; without --yes only list them", results=True)
    item.add_argument("--yes", action="store_true", help="remove the listed entries")
    item.add_argument(
        "--keep-days", type=float, default=KEEP_DAYS, help="keep entries younger than this; their result may be pending"
    )
    item.add_argument("--unfinished", action="store_true", help="also remove resume points of killed trainings")
    given = parser.parse_args()
    given.run(given)


def list_entries(given: argparse.Namespace) -> None:
    kept = keeping.entries(given.store)
    results, problems = keys_of_results(given.results)
    users = keeping.users_of(kept, results)
    for item in kept:
        size, name = _size(item.size), f"{item.label}-{item.hash}"
        _say(f"{item.kind:12} {size:>9} {_age(item):>7}  {name}  {_users(users[item.path])}")
    for path in keeping.answers(given.store):
        _say(f"{keeping.ANSWERS:12} {_size(keeping.size_of(path)):>9}          {path.name}  (answers; never removed)")
    for path in keeping.unfinished(given.store):
        _say(f"{'unfinished':12} {_size(keeping.size_of(path)):>9}          {path.parent.name}/{path.name}")
    unused = [item for item in kept if not users[item.path]]
    _say(
        f"Entries: {len(kept)}, {_size(sum(item.size for item in kept))}; needed by no result: {len(unused)}, "
        f"{_size(sum(item.size for item in unused))}. Results: {len(results)}."
    )
    for problem in problems:
        _say(problem)


def verify(given: argparse.Namespace) -> None:
    kept = keeping.entries(given.store)
    wrong = [why for item in tracked(kept, "verifying", "entries") if (why := keeping.damage(item)) is not None]
    for why in wrong:
        _say(why)
    _say(f"{len(kept) - len(wrong)} of {len(kept)} entries are intact.")
    if wrong:
        raise ValueError(f"{len(wrong)} entries are damaged. Remove their folders; what needs them makes them again.")


def remove(given: argparse.Namespace) -> None:
    require_number(given.keep_days, "[0, inf)", "--keep-days")
    kept = keeping.entries(given.store)
    if missing := [folder for folder in given.results if not folder.is_dir()]:
        raise ValueError(f"There is no folder {missing[0]}, so nothing is removed. Correct --results.")
    results, problems = keys_of_results(given.results)
    if problems:
        raise ValueError(f"A result cannot be read, so what it needs is unknown; nothing is removed. {problems[0]}")
    if not results:
        listed = ", ".join(map(str, given.results))
        raise ValueError(f"There are no results below {listed}, so all would be removed. Name a folder: --results.")
    users, now = keeping.users_of(kept, results), time.time()
    unused = [item for item in kept if not users[item.path]]
    young = [item for item in unused if now - item.made_at <= given.keep_days * DAY]
    unneeded = [(item.path, item.size) for item in unused if item not in young]
    if given.unfinished:
        paths = [path for path in keeping.unfinished(given.store) if now - path.stat().st_mtime > given.keep_days * DAY]
        unneeded += [(path, keeping.size_of(path)) for path in paths]
    for path, size in unneeded:
        _say(f"{_size(size):>9}  {path.parent.name}/{path.name}")
    total = f"{len(unneeded)} entries, {_size(sum(size for _, size in unneeded))}"
    stay = (
        f" {len(young)} more, {_size(sum(item.size for item in young))}, that no result needs are younger than "
        f"{given.keep_days:g} days and stay (--keep-days)."
        if young
        else ""
    )
    if not given.yes:
        _say(f"{total}, would be removed: none of {len(results)} results needs them. Add --yes to do it.{stay}")
        return
    for path, _ in tracked(unneeded, "removing", "entries"):
        keeping.remove(path)
    keeping.remove_leftovers(given.store)
    _say(f"{total}, were removed.{stay}")


def keys_of_results(folders: list[Path]) -> tuple[dict[str, Mapping[str, str]], list[str]]:
    """Path of a result -> the hashes that it names, by role; and what is wrong with those that cannot be read, as those
    behind a link. Results of earlier questions, which were moved aside, count as well."""
    known: dict[str, Mapping[str, str]] = {}
    inner = (Path(above, name) for folder in folders for above, names, _ in os.walk(folder) for name in names)
    problems = [
        f"{path} is a link, and results behind it are not read: name the folder that it leads to as well (--results)."
        for path in inner
        if path.is_symlink() and not any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)
    ]
    for path in sorted(path for folder in folders for path in files_below(folder, "result*.json")):
        try:
            keys = json_object(path)["provenance"]["keys"]
            known[str(path.parent if path.name == RESULT else path)] = {name: str(item) for name, item in keys.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(f"{path} is not a result ({type(error).__name__}).")
    return known, problems


def _users(names: list[str]) -> str:
    if not names:
        return "no result needs it"
    listed = ", ".join(Path(name).name for name in names[:NAMED])
    return f"{len(names)} result{'s' if len(names) > 1 else ''}: {listed}{' ...' if len(names) > NAMED else ''}"


def _age(item: Kept) -> str:
    seconds = max(0.0, time.time() - item.made_at)
    return f"{seconds / 3600:.0f} h" if seconds < 2 * DAY else f"{seconds / DAY:.0f} days"


def _size(number: float) -> str:
    return f"{in_short(number)}B"


def _say(text: str) -> None:
    sys.stdout.write(f"{visible(text)}\n")
