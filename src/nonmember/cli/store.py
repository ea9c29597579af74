"""`nonmember store list|verify|remove|merge|move|export`: maintenance of the artifact store."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from nonmember.artifacts import card, keeping
from nonmember.artifacts.keeping import Kept
from nonmember.checks import require_number
from nonmember.runtime.files import files_below, json_object
from nonmember.runtime.naming import outputs_folder
from nonmember.runtime.progress import tracked
from nonmember.runtime.terminal import visible

RESULT = "result.json"
DAY = 86400.0
NAMED = 3  # results in a line
KEEP_DAYS = 1.0
ONLY_AN_ADAPTER = (
    "This is an adapter, and its base is not in it. Write the base's folder into base_model_name_or_path of its "
    "adapter_config.json; or, for a whole model, repeat the command that trained it with export=FOLDER merge=true."
)
UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def main() -> None:
    given = _parser().parse_args()
    given.run(given)


def _parser() -> argparse.ArgumentParser:
    outputs = outputs_folder()
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="nonmember store", description="Manage the artifact store."
    )
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

    item = action("list", list_entries, "every entry: kind, size, age, label, and which results need it", results=True)
    item.add_argument("--kind", help="models, observations, corpora or tokenizers alone")
    action("verify", verify, "check every file against its hash; nothing is changed")
    item = action("remove", remove, "remove entries that no result needs; without --yes only list them", results=True)
    item.add_argument("--yes", action="store_true", help="remove the listed entries")
    item.add_argument(
        "--keep-days", type=float, default=KEEP_DAYS, help="keep entries younger than this; their result may be pending"
    )
    item.add_argument("--unfinished", action="store_true", help="also remove resume points of killed trainings")
    item = action("merge", merge, "copy the entries that only another store has into this one")
    item.add_argument("other", type=Path, help="the other store, which stays as it is")
    item = action("move", move, "move this store, or merge it into another one")
    item.add_argument("to", type=Path)
    item = action("export", export, "a model as a folder with its card (README.md)")
    item.add_argument("model", help="its name as `list` prints it, its folder, or its label where only one has it")
    item.add_argument("folder", type=Path, help="a new folder")
    return parser


def list_entries(given: argparse.Namespace) -> None:
    kept = keeping.entries(given.store)
    results, problems = keys_of_results(given.results)
    users = keeping.users_of(kept, results)
    shown = [item for item in kept if given.kind in (None, item.kind)]
    for item in shown:
        size, name = _size(item.size), f"{item.label}-{item.hash}"
        _say(f"{item.kind:12} {size:>9} {_age(item):>7}  {name}  {_users(users[item.path])}")
    for path in keeping.answers(given.store) if given.kind in (None, keeping.ANSWERS) else ():
        _say(f"{keeping.ANSWERS:12} {_size(keeping.size_of(path)):>9}          {path.name}  (answers; never removed)")
    for path in keeping.unfinished(given.store) if given.kind is None else ():
        _say(f"{'unfinished':12} {_size(keeping.size_of(path)):>9}          {path.parent.name}/{path.name}")
    unused = [item for item in kept if not users[item.path]]
    _say(
        f"Entries: {len(kept)}, {_size(sum(item.size for item in kept))}; needed by no result: {len(unused)}, "
        f"{_size(sum(item.size for item in unused))}. Results: {len(results)}."
    )
    _say_problems(problems)


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


def merge(given: argparse.Namespace) -> None:
    _merge(given.other, given.store)


def move(given: argparse.Namespace) -> None:
    """Everything is copied and verified before anything is removed."""
    if others := keeping.strange(given.store):
        raise ValueError(
            f"{given.store} must hold a store and nothing else, since it is removed; got {others[0]}. Name the folder "
            "of the store itself (--store), or put that elsewhere first."
        )
    if busy := keeping.being_made(given.store):
        raise ValueError(f"{busy[0]} is being written; move the store when no process is using it.")
    _merge(given.store, given.to)
    for path in keeping.unfinished(given.store):
        goal = given.to / path.parent.name / path.name
        if not goal.exists():
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(path, goal)
    shutil.rmtree(given.store.resolve())
    if given.store.is_symlink():
        given.store.unlink()
    _say(f"{given.store} no longer exists; use store={given.to} from now on.")


def _merge(source: Path, target: Path) -> None:
    record = None
    number = len(keeping.entries(source)) + len(keeping.answers(source))
    for record in tracked(keeping.merge(source, target), f"merging {source.name}", "entries", total=number):  # noqa: B007
        pass
    record = record or keeping.Merged()
    _say(f"{len(record.copied)} entries were copied into {target}, {len(record.there)} were there already.")
    for why in (*record.conflicts, *record.damaged):
        _say(why)
    if record.conflicts or record.damaged:
        raise ValueError(
            f"{len(record.conflicts) + len(record.damaged)} entries were left where they are. Of two entries with one "
            "key and other content remove the one that you trust less; a damaged one is made again by what needs it."
        )


def export(given: argparse.Namespace) -> None:
    models = [item for item in keeping.entries(given.store) if item.kind == "models"]
    matching = [item for item in models if Path(given.model).name in (item.hash, item.path.name)]
    matching = matching or [item for item in models if item.label == given.model]
    if len(matching) != 1:
        which = ", ".join(item.path.name for item in matching or models[:NAMED])
        what = "is the label of several models" if matching else "is not a model in this store"
        there = f"name one as `nonmember store list` prints it: {which}" if models else "the store has no models"
        raise ValueError(f"{given.model} {what}; {there}.")
    if card.is_adapter(matching[0]):
        sys.stderr.write(f"{ONLY_AN_ADAPTER}\n")
    _say(str(card.export(matching[0], given.folder)))


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
            values = json_object(path)
            keys = values["provenance"]["keys"] if "provenance" in values else values["keys"]
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
    for size, unit in UNITS:
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} B"


def _say(text: str) -> None:
    sys.stdout.write(f"{visible(text)}\n")


def _say_problems(problems: list[str]) -> None:
    for problem in problems:
        _say(problem)
