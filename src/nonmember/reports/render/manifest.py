"""What a report rests on: the hash of each result, said once, in a line of its own.

Results that agree in world, sweep, method and the tables that show them stand together, below the folder they share:
a study has thousands. Differences between two manifests are by result.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nonmember.results.load import Collection
from nonmember.results.result import RESULT, SCORES

MANIFEST = "manifest.json"
COLUMNS = ["folder", f"sha256 of {RESULT}", "key of the audit", f"sha256 of {SCORES}, where it was read"]


def manifest(
    collection: Collection, used: Mapping[str, Sequence[str]], read: Mapping[str, str], version: str, made: str
) -> dict[str, Any]:
    """The files a report rests on. used: anchor of a run -> the tables and figures it stands in.
    read: files beside results that were read too, path -> hash.
    """
    groups: dict[tuple[Any, ...], list[list[str | None]]] = defaultdict(list)
    for run in collection.runs:
        path = run.path.rpartition("/")[0]
        below, _, folder = path.rpartition("/")
        question, scores = run.question, read.get(f"{path}/{SCORES}")
        group = (question.world, question.sweep, question.method, below, *sorted(used.get(run.anchor, ())))
        row = [folder, run.sha256, run.result.provenance.keys.get("audit"), scores]
        groups[group].append(row if scores else row[:-1])
    return {
        "made": made,
        "nonmember": version,
        "num_results": len(collection.runs),
        "num_unreadable": len(collection.unreadable),
        "columns": COLUMNS,
        "results": [
            {"world": world, "sweep": sweep, "method": method, "below": below, "used_in": used_in, "audits": rows}
            for (world, sweep, method, below, *used_in), rows in groups.items()
        ],
        "unreadable": [{"path": path, "reason": reason} for path, reason in collection.unreadable.items()],
    }


def written(listing: Mapping[str, Any]) -> str:
    """As JSON, with a line for each audit and each file."""
    shown = {name: _json(value) for name, value in listing.items()}
    shown["results"] = _a_line_each(map(_group, listing["results"]))
    for name in ("unreadable", "files"):
        shown[name] = _a_line_each(map(_json, listing[name]))
    return "{\n" + ",\n".join(f"{_json(name)}: {value}" for name, value in shown.items()) + "\n}\n"


def _group(group: Mapping[str, Any]) -> str:
    head = _json({name: value for name, value in group.items() if name != "audits"})
    return f'{head[:-1]}, "audits": {_a_line_each(map(_json, group["audits"]))}}}'


def _a_line_each(values: Iterable[str]) -> str:
    lines = ",\n".join(values)
    return f"[\n{lines}\n]" if lines else "[]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
