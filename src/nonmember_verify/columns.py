"""Is each column of scores what the question asks for: the score of that name, under that model, read in that way?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nonmember_verify.bundle import Audit
from nonmember_verify.envelope import plain
from nonmember_verify.known import is_known

Described = Mapping[str, Any]

KINDS = ("Scored", "Diverged", "Reordered", "Asked", "Embedded")
NOT_SCORED = {  # how columns begin (x/) or end that are no scores by themselves -> their kind
    "kl/": "Diverged", "embedding": "Embedded", "canonical": "Reordered", "mean_shuffled": "Reordered",
    "num_tokens": "Reordered", "num_read": "Reordered", "hits": "Asked", "decop": "Asked", "cloze": "Asked",
    "completion": "Asked",
}  # fmt: skip
# Kind of a score -> its name, from its settings.
NAMES: Mapping[str, Callable[[Described], str]] = {
    "Loss": lambda score: "loss",
    "Perplexity": lambda score: "perplexity",
    "TopLoss": lambda score: f"top_loss({score['number']})",
    "Zlib": lambda score: "zlib",
    "MinK": lambda score: f"mink({score['k']:g})",
    "MaxK": lambda score: f"maxk({score['k']:g})",
    "MinKPlusPlus": lambda score: f"minkpp({score['k']:g})",
    "Lowercase": lambda score: "lowercase",
    "Perturbed": lambda score: f"{score['perturbation']}_{score['quantity']}",
    "ReferenceDifference": lambda score: "ref_diff",
    "ReferenceRatio": lambda score: "ref_ratio",
}
NAME_OF_KNOWN = re.compile(r"(loss|perplexity|zlib|lowercase|ref_diff|ref_ratio|(top_loss|mink|maxk|minkpp)\(.*\))")


def views_of(score: Described) -> list[str]:
    """Of the text, in the order of the tables that a score is made from."""
    second: dict[str, list[Any]] = {
        "Lowercase": ["lowercase"], "Perturbed": [score.get("perturbation")],
        "ReferenceDifference": ["original"], "ReferenceRatio": ["original"],
    }  # fmt: skip
    return ["original", *second.get(score["kind"], [])]


def problems_of(audit: Audit) -> Iterator[str]:
    """What is told of columns that cannot be: each is found by its name, so the name binds kind, role and score."""
    for group, columns in audit.described["columns"].items():
        has = {column: bool(how["tables"]) for column, how in columns.items() if _is_arithmetic(how)}
        for column, how in columns.items():
            place = f"{column} of the {group} set"
            if problem := _problem(audit, column, how):
                yield f"{place} {problem}"
            elif any(has.values()) and not has.get(column, True):
                yield f"the token statistics of {place} are left out, and those beside it are there"


def _is_arithmetic(how: Described) -> bool:
    return how["kind"] == "Scored" and is_known(how["score"])


def _problem(audit: Audit, column: str, how: Described) -> str:
    kind = next((one for mark, one in NOT_SCORED.items() if _has_mark(column, mark)), "Scored")
    if how["kind"] != kind and how["kind"] in KINDS:
        return f"is told to be of the kind {how['kind']}, and its name is that of a {kind} one"
    if not _is_arithmetic(how):
        return _problem_of_unknown(audit, column, how) if how["kind"] == "Scored" else ""
    score = {name: value for name, value in how["score"].items() if name != "name"}
    name = NAMES[score["kind"]](score)
    if how["score"]["name"] != name:
        return f"has the score {name}, and is told to have {how['score']['name']}"
    role = "target" if column == name else column.removeprefix(f"{name}/").removesuffix(f"/{name}")
    if how["role"] != role:
        return f"is told to be of the role {how['role']}, and its name is that of {role}"
    asked = audit.settings.get("score")
    if column == role and isinstance(asked, Mapping) and score != dict(asked.items()):
        return f"was scored by {_told(score)}, and the question asks for {_told(asked)}"
    odd = score.get("compat", "none") != "none" and not audit.settings.get("compat")
    if odd and score not in list(_mappings(audit.settings)):
        return f"was scored by {_told(score)}, which the question does not ask for"
    return ""


def _problem_of_unknown(audit: Audit, column: str, how: Described) -> str:
    """Of a score that is not recomputed: it must be the one that the question asks for, and have no name of another."""
    told, asked = plain(how["score"]), audit.settings.get("score")
    if column in audit.question["models"] and isinstance(asked, Mapping):
        score = {name: value for name, value in how["score"].items() if name != "name"}
        if score != dict(asked.items()):
            return f"was scored by {_told(score)}, and the question asks for {_told(asked)}"
    if told["kind"] not in NAMES and any(NAME_OF_KNOWN.fullmatch(name) for name in (told["name"], *column.split("/"))):
        return f"has the name of another score than {told['kind']}"
    return ""


def _has_mark(column: str, mark: str) -> bool:
    if mark.endswith("/"):
        return column.startswith(mark)
    return column == mark or column.endswith(f"/{mark}")


def _told(score: Described) -> str:
    rest = ", ".join(f"{name} {value}" for name, value in score.items() if name != "kind")
    return f"{score['kind']} ({rest})" if rest else str(score["kind"])


def _mappings(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield value
    if isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _mappings(one)
