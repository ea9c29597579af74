"""Scores of documents from the statistics of their tokens, and whose statistics they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nonmember_verify.bundle import Audit, FloatArray, json_of, table_of
from nonmember_verify.columns import KINDS, problems_of, views_of
from nonmember_verify.envelope import plain
from nonmember_verify.known import is_known
from nonmember_verify.questions import SUSPECT, key_hash
from nonmember_verify.report import Report

TOLERANCE = 1e-9  # relative; tokens may stand in another order, and sums are rounded otherwise
SIGMA_EPS = 1e-6
SMALLEST_NLL = 1e-8

Tokens = Mapping[str, FloatArray]  # log_prob, mean, std of one document


class Tables:
    """Tables of observations of a bundle by their hash: document -> its tokens. Each is read once."""

    def __init__(self, files: Mapping[str, bytes]):
        self.files = files
        self.keys: Mapping[str, Any] = json_of(files, "observations.json")
        self._read: dict[str, dict[str, Tokens]] = {}

    def tokens(self, name: str) -> dict[str, Tokens]:
        if name not in self._read:
            table = table_of(self.files, f"tokens/{name}.parquet")
            columns = [column for column in table if column != "document"]
            self._read[name] = {
                document: {column: np.asarray(table[column][place], dtype=np.float64) for column in columns}
                for place, document in enumerate(table["document"])
            }
        return self._read[name]

    def sizes(self, folder: str) -> dict[str, int]:
        name = f"{folder}/texts.parquet"
        if name not in self.files:
            return {}
        table = table_of(self.files, name)
        return dict(zip(table["document"], table["zlib_bytes"].tolist(), strict=True))


def check_scores(audit: Audit, tables: Tables, report: Report) -> None:
    """Every column of scores that has token statistics: whose they are, and that the scores follow from them."""
    done, wrong = 0, list(problems_of(audit))
    not_done: dict[str, list[str]] = {}
    for group, columns in audit.described["columns"].items():
        for column, how in columns.items():
            own = audit.groups.get(group)
            if how["kind"] == "Embedded":
                continue
            if own is None or column not in own.values:
                wrong.append(f"{column} of the {group} set is missing")
            elif how["kind"] != "Scored" or not is_known(how["score"]) or not how["tables"]:
                not_done.setdefault(_why_not(how), []).append(f"{group}/{column}")
            elif problem := _problem(audit, group, column, how, tables):
                wrong.append(problem)
            else:
                done += 1
    wrong += _wrongly_excluded(audit, tables)
    if wrong:
        report.failed("scores", f"{'; '.join(wrong[:3])}{f'; and {len(wrong) - 3} more' if len(wrong) > 3 else ''}.")
    elif done:
        report.ok("scores", f"{done} columns follow from the token statistics, within {TOLERANCE:g}.")
    if tables.sizes(audit.folder):
        report.unchecked("compressed sizes", "of the texts, for zlib, are taken as stated; --documents shows them")
    for why, names in not_done.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        report.unchecked(f"scores {', '.join(names[:3])}{more}", why)


def _wrongly_excluded(audit: Audit, tables: Tables) -> list[str]:
    """Documents that were left out though each of their scores follows from the token statistics. Where a column has
    none, the reason may lie there."""
    found = []
    for group, reasons in audit.result["exclusions"]["documents"].items():
        columns = audit.described["columns"][group].values()
        known = [how for how in columns if how["kind"] == "Scored" and is_known(how["score"]) and how["tables"]]
        if len(known) < len(columns):
            continue
        for document in reasons:
            values = [_value(document, how, tables, tables.sizes(audit.folder)) for how in known]
            if all(map(math.isfinite, values)):
                why = reasons[document]
                found.append(f"document {document[:12]} of the {group} set was left out ({why}) and can be scored")
    return found


def _value(document: str, how: Mapping[str, Any], tables: Tables, sizes: Mapping[str, int]) -> float:
    """NaN where there is none."""
    found = [tables.tokens(name).get(document, {}) for name in how["tables"]]
    if any(len(one.get("log_prob", ())) == 0 for one in found):
        return math.nan
    try:
        return SCORES[how["score"]["kind"]](found, how["score"], sizes.get(document, 0))
    except ZeroDivisionError:
        return math.nan


def _why_not(how: Mapping[str, Any]) -> str:
    if how["kind"] not in KINDS:
        return f"measurements of the kind {how['kind']} are unknown to this verifier"
    if how["kind"] == "Diverged":
        return "a divergence needs the whole distributions of two models, which no bundle holds"
    if how["kind"] == "Reordered":
        return "log-likelihoods of an ordered file are taken as stated"
    if how["kind"] == "Asked" or how.get("score", {}).get("kind") == "AnswerProbability":
        return "what a model answered is taken as stated; the answers are not in the bundle"
    if not is_known(how["score"]):
        told = ", ".join(f"{name} {value}" for name, value in plain(how["score"]).items())
        return f"the score ({told}) or one of its settings is unknown to this verifier"
    return "the bundle holds no token statistics for them"


def _problem(audit: Audit, group: str, column: str, how: Mapping[str, Any], tables: Tables) -> str:
    """Empty where all is well."""
    place = f"{column} of the {group} set"
    keys, views = audit.result["provenance"]["keys"], views_of(how["score"])
    if len(how["tables"]) != len(views):
        return f"{place} is made from {len(views)} tables of token statistics, and {len(how['tables'])} are named"
    for number, name in enumerate(how["tables"]):
        key = tables.keys.get(name)
        if key is None or f"tokens/{name}.parquet" not in tables.files:
            return f"the token statistics of {place} are missing"
        if key_hash(plain(key)) != name:
            return f"the token statistics of {place} are not those that their hash names"
        is_reference = number > 0 and how["score"]["kind"].startswith("Reference")
        role = "reference" if is_reference else how["role"]
        if key_hash(key["model"]) != keys.get(role):
            return f"{place} was scored under another model than {role}"
        corpus = keys.get("corpus" if group == SUSPECT else group)
        if key["corpus"] != corpus:
            return f"{place} was scored on other documents"
        if (read := (key["view"], key["max_tokens"])) != (asked := (views[number], audit.settings["max_tokens"])):
            return f"{place} was read as {_read(*read)}, and the question asks for {_read(*asked)}"
    function = SCORES[how["score"]["kind"]]
    own = audit.groups[group]
    found = [tables.tokens(name) for name in how["tables"]]
    if any(document not in table for table in found for document in own.documents):
        return f"documents of {place} have no token statistics"
    sizes = tables.sizes(audit.folder)
    stated = own.values[column]
    for place_of, document in enumerate(own.documents):
        value = function([table[document] for table in found], how["score"], sizes.get(document, 0))
        if not abs(value - stated[place_of]) <= TOLERANCE * max(1.0, abs(value)):
            return (
                f"{place} is stated as {float(stated[place_of])!r} for document {document[:12]}, and its tokens give "
                f"{value!r}"
            )
    return ""


def _read(view: str, max_tokens: int) -> str:
    return f"the {view} text to {max_tokens} tokens"


# Scores ---------------------------------------------------------------------------------------------------------------


def _nll(tokens: Tokens) -> float:
    return -math.fsum(tokens["log_prob"].tolist()) / len(tokens["log_prob"])


def _mean_of_least(values: FloatArray, k: float, compat: str) -> float:
    number = math.floor(len(values) * k) if compat == "official" else math.floor(len(values) * k + 1e-9)
    number = number if compat == "official" else min(max(number, 1), len(values))
    return math.fsum(sorted(values.tolist())[:number]) / number


def _standardised(tokens: Tokens, compat: str) -> FloatArray:
    deviation, std = tokens["log_prob"] - tokens["mean"], tokens["std"]
    if compat == "official":
        return np.asarray(deviation / std)
    z = deviation / np.maximum(std, SIGMA_EPS)
    return np.asarray(np.where((std < SIGMA_EPS) & (np.abs(deviation) < SIGMA_EPS), 0.0, z))


def _perturbed(tables: list[Tokens], score: Mapping[str, Any]) -> float:
    loss, other = _nll(tables[0]), _nll(tables[1])
    match score["quantity"]:
        case "ppl_ratio":
            return -math.exp(loss - other)
        case "ppl_difference":
            return math.exp(other) - math.exp(loss)
        case "loss_ratio":
            return other / loss if loss > 0 else math.nan
        case _:
            return other - loss


Function = Callable[[list[Tokens], Mapping[str, Any], int], float]

SCORES: Mapping[str, Function] = {
    "Loss": lambda tables, score, size: -_nll(tables[0]),
    "Perplexity": lambda tables, score, size: -math.exp(_nll(tables[0])),
    "TopLoss": lambda tables, score, size: float(
        np.clip(tables[0]["log_prob"].astype(np.float64), -math.log1p(score["number"]), None).mean()
    ),
    "Zlib": lambda tables, score, size: -_nll(tables[0]) / size if size else math.nan,
    "MinK": lambda tables, score, size: _mean_of_least(tables[0]["log_prob"], score["k"], score["compat"]),
    "MaxK": lambda tables, score, size: -_mean_of_least(-tables[0]["log_prob"], score["k"], score["compat"]),
    "MinKPlusPlus": lambda tables, score, size: _mean_of_least(
        _standardised(tables[0], score["compat"]), score["k"], score["compat"]
    ),
    "Lowercase": lambda tables, score, size: _nll(tables[1]) / _nll(tables[0]),
    "Perturbed": lambda tables, score, size: _perturbed(tables, score),
    "ReferenceDifference": lambda tables, score, size: _nll(tables[1]) - _nll(tables[0]),
    "ReferenceRatio": lambda tables, score, size: _nll(tables[1]) / _nll(tables[0]),
}
