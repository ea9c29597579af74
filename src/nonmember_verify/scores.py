"""Scores of documents from the statistics of their tokens: whose statistics they are, and whether each column is what
the question asks for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonmember_verify.bundle import NAMES, Audit, FloatArray, json_of, table_of
from nonmember_verify.envelope import Refused, plain
from nonmember_verify.known import KINDS, NOT_SCORED, kinds_of, unknown_settings
from nonmember_verify.questions import key_hash, part_of
from nonmember_verify.report import Report, some

TOLERANCE = 1e-9  # relative; tokens may stand in another order, and sums are rounded otherwise
SIGMA_EPS = 1e-6

Tokens = Mapping[str, FloatArray]  # log_prob, mean, std of one document
Described = Mapping[str, Any]


class Tables:
    """Tables of observations of a bundle by their hash: document -> its tokens. Each is read once."""

    def __init__(self, files: Mapping[str, bytes]):
        self.files = files
        self.keys: Mapping[str, Any] = json_of(files, "observations.json")
        self._read: dict[str, dict[str, Tokens]] = {}

    def tokens(self, name: str) -> dict[str, Tokens]:
        if name not in self._read:
            table = table_of(self.files, f"tokens/{name}.parquet")
            if len(set(table["document"])) < len(table["document"]):
                raise Refused(f"tokens/{name}.parquet holds a document twice")
            columns = [column for column in table if column != "document"]
            self._read[name] = {
                document: {column: np.asarray(table[column][index], dtype=np.float64) for column in columns}
                for index, document in enumerate(table["document"])
            }
        return self._read[name]


# Arithmetic -----------------------------------------------------------------------------------------------------------


def _nll(tokens: Tokens) -> float:
    return -math.fsum(tokens["log_prob"].tolist()) / len(tokens["log_prob"])


def _mean_of_least(values: FloatArray, score: Described) -> float:
    if score["compat"] == "official":
        number = math.floor(len(values) * score["k"])
    else:
        number = min(max(math.floor(len(values) * score["k"] + 1e-9), 1), len(values))
    return math.fsum(sorted(values.tolist())[:number]) / number


def _standardised(tokens: Tokens, compat: str) -> FloatArray:
    deviation, std = tokens["log_prob"] - tokens["mean"], tokens["std"]
    if compat == "official":
        return np.asarray(deviation / std)
    z = deviation / np.maximum(std, SIGMA_EPS)
    return np.asarray(np.where((std < SIGMA_EPS) & (np.abs(deviation) < SIGMA_EPS), 0.0, z))


def _likeliest_run(tables: list[Tokens], score: Described, size: int) -> float:
    """Sum of the likeliest k tokens in a row, of those that begin behind a multiple of k; NaN where there are none. The
    document's first token is not scored."""
    log_prob, k = tables[0]["log_prob"], score["k"]
    starts = range(k - 1, len(log_prob) - k + 1, k)
    return max((math.fsum(log_prob[start : start + k].tolist()) for start in starts), default=math.nan)


def _votes(tables: list[Tokens], score: Described, size: int) -> float:
    """Of windows of tokens the share whose sum is higher under the first model (ties are halves), mean over widths."""
    gain = tables[0]["log_prob"] - tables[1]["log_prob"]
    series = np.geomspace(score["narrowest"], score["widest"], score["num_widths"])
    widths = sorted({width for width in np.rint(series).astype(int).tolist() if width <= len(gain)})
    total = np.concatenate([[0.0], np.cumsum(gain)])
    shares = [(1 + np.sign(total[width:] - total[:-width]).mean()) / 2 for width in widths]
    return float(np.mean(shares)) if shares else math.nan


@dataclass(frozen=True)
class Score:
    name: str  # of its columns
    # Its value, from the tables of one document, its settings and the compressed size of the text.
    compute: Callable[[list[Tokens], Described, int], float]
    settings: str = ""  # that are taken into account, as in methods.toml
    second: str = ""  # what its second table is a view of; "reference": the same text under the reference
    is_ordered: bool = False  # whether it takes tokens in their order, which bundles tell only with token ids

    @property
    def views(self) -> list[str]:
        """Of the text, in the order of the tables."""
        return ["original", self.second.replace("reference", "original")] if self.second else ["original"]


_K = "k compat=none|official"
SCORES: Mapping[str, Score] = {  # t: tables, s: settings, z: compressed size
    "Loss": Score("loss", lambda t, s, z: -_nll(t[0])),
    "LogProbability": Score("log_probability", lambda t, s, z: math.fsum(t[0]["log_prob"].tolist())),
    "Perplexity": Score("perplexity", lambda t, s, z: -math.exp(_nll(t[0]))),
    "TopLoss": Score(
        "top_loss({number})",
        lambda t, s, z: float(np.maximum(t[0]["log_prob"], -math.log1p(s["number"])).mean()),
        "number",
    ),
    "Extraction": Score("extraction({k})", _likeliest_run, "k", is_ordered=True),
    "Zlib": Score("zlib", lambda t, s, z: -_nll(t[0]) / z if z else math.nan),
    "MinK": Score("mink({k:g})", lambda t, s, z: _mean_of_least(t[0]["log_prob"], s), _K),
    "MaxK": Score("maxk({k:g})", lambda t, s, z: -_mean_of_least(-t[0]["log_prob"], s), _K),
    "MinKPlusPlus": Score("minkpp({k:g})", lambda t, s, z: _mean_of_least(_standardised(t[0], s["compat"]), s), _K),
    "Lowercase": Score("lowercase", lambda t, s, z: _nll(t[1]) / _nll(t[0]), second="lowercase"),
    "ReferenceDifference": Score("ref_diff", lambda t, s, z: _nll(t[1]) - _nll(t[0]), second="reference"),
    "ReferenceRatio": Score("ref_ratio", lambda t, s, z: _nll(t[1]) / _nll(t[0]), second="reference"),
    "Wbc": Score("wbc({narrowest}-{widest})", _votes, "narrowest widest num_widths", "reference", is_ordered=True),
}


def is_known(score: Described) -> bool:
    """Whether a score is recomputed here, with all of its settings."""
    kind = plain(score)["kind"]
    return kind in SCORES and not unknown_settings(score, f"kind name {SCORES[kind].settings}")


# Columns of scores ----------------------------------------------------------------------------------------------------


def check_scores(audit: Audit, tables: Tables, report: Report) -> None:
    """Every column of scores that has token statistics: whose they are, and that the scores follow from them."""
    done, wrong = 0, list(_problems_of_names(audit))
    not_done: dict[str, list[str]] = {}
    for group, columns in audit.described["columns"].items():
        for column, how in columns.items():
            own = audit.groups.get(group)
            if how["kind"] == "Embedded":
                continue
            if own is None or column not in own.values:
                wrong.append(f"{column} of the {group} set is missing")
            elif not _is_computed(how, tables):
                not_done.setdefault(_why_not(how), []).append(f"{group}/{column}")
            elif problem := _problem(audit, group, column, how, tables):
                wrong.append(problem)
            else:
                done += 1
    if wrong or done:
        report.require_none("scores", wrong, f"{done} columns follow from the token statistics, within {TOLERANCE:g}.")
    described = {column for columns in audit.described["columns"].values() for column in columns}
    if more := [column for column in audit.table if column not in (*NAMES, *described)]:
        report.unchecked("further columns", f"{some(more)} of scores.parquet, which nothing describes")
    if audit.sizes:
        report.unchecked("compressed sizes", "of the texts, for zlib, are taken as stated; --documents shows them")
    for why, names in not_done.items():
        report.unchecked(f"scores {some(names)}", why)


def _is_arithmetic(how: Described) -> bool:
    """Whether the column is a score that is computed here."""
    return how["kind"] == "Scored" and is_known(how["score"])


def _is_computed(how: Described, tables: Tables) -> bool:
    """Whether its tokens are there as well, and in the document's order if the score takes them so."""
    if not _is_arithmetic(how) or not how["tables"]:
        return False
    documents = (item for name in how["tables"] for item in tables.tokens(name).values())
    return not SCORES[how["score"]["kind"]].is_ordered or all("token_id" in item for item in documents)


def check_exclusions(audit: Audit, tables: Tables, report: Report) -> None:
    """That no document was left out though each of its scores follows from the token statistics; after the method's
    arithmetic. Where a column has none, the reason may lie there: not in one that this arithmetic did not read, nor in
    a divergence, which all documents have that have scores."""
    wrong = []
    for group, reasons in audit.result["exclusions"]["documents"].items():
        read = audit.groups[group].values.seen
        columns = [
            how
            for column, how in audit.described["columns"][group].items()
            if how["kind"] != "Diverged" and (how["kind"] != "Scored" or not read or column in read)
        ]
        if not all(_is_computed(how, tables) for how in columns):
            continue
        for document, why in reasons.items():
            if all(math.isfinite(_value(document, how, tables, audit.sizes)) for how in columns):
                wrong.append(f"document {document[:12]} of the {group} set was left out ({why}) and can be scored")
    if wrong:
        report.require_none("exclusions", wrong, "")


def _value(document: str, how: Described, tables: Tables, sizes: Mapping[str, int]) -> float:
    """NaN where there is none."""
    found = [tables.tokens(name).get(document, {}) for name in how["tables"]]
    if any(len(item.get("log_prob", ())) == 0 for item in found):
        return math.nan
    try:
        return SCORES[how["score"]["kind"]].compute(found, how["score"], sizes.get(document, 0))
    except ZeroDivisionError:
        return math.nan


WHY_NOT = {
    "Diverged": "a divergence needs the whole distributions of two models, which no bundle holds",
    "Reordered": "log-likelihoods of an ordered file are taken as stated",
    "Asked": "what a model answered is taken as stated; the answers are not in the bundle",
}


def _why_not(how: Described) -> str:
    if how["kind"] not in KINDS:
        return f"measurements of the kind {how['kind']} are unknown to this verifier"
    if how["kind"] != "Scored":
        return WHY_NOT[how["kind"]]
    if not is_known(how["score"]):
        stated = ", ".join(f"{name} {value}" for name, value in plain(how["score"]).items())
        return f"the score ({stated}) or one of its settings is unknown to this verifier"
    if how["tables"]:
        return "the score takes tokens in their order, which a bundle tells only with token ids (--with-tokens)"
    return "the bundle holds no token statistics for them"


def _problem(audit: Audit, group: str, column: str, how: Described, tables: Tables) -> str:
    """Empty where all is well."""
    where, score = f"{column} of the {group} set", SCORES[how["score"]["kind"]]
    if len(how["tables"]) != len(score.views):
        return f"{where} is made from {len(score.views)} tables of token statistics, and {len(how['tables'])} are named"
    roles = (how["role"], "reference" if score.second == "reference" else how["role"])
    for name, view, role in zip(how["tables"], score.views, roles, strict=False):
        if problem := _problem_of_table(audit, group, name, role, view, tables, where):
            return problem
    own, found = audit.groups[group], [tables.tokens(name) for name in how["tables"]]
    if any(document not in table for table in found for document in own.documents):
        return f"documents of {where} have no token statistics"
    sizes = audit.sizes
    values = dict.__getitem__(own.values, column)  # that the method's arithmetic reads it is noted elsewhere
    for document, stated in zip(own.documents, values.tolist(), strict=True):
        value = score.compute([table[document] for table in found], how["score"], sizes.get(document, 0))
        if not abs(value - stated) <= TOLERANCE * max(1.0, abs(value)):
            return f"{where} is stated as {stated!r} for document {document[:12]}, and its tokens give {value!r}"
    return ""


def _problem_of_table(audit: Audit, group: str, name: str, role: str, view: str, tables: Tables, where: str) -> str:
    """Whether these token statistics are of that model, of the group's documents, read as the question asks for."""
    keys, key = audit.result["provenance"]["keys"], tables.keys.get(name)
    if key is None or f"tokens/{name}.parquet" not in tables.files:
        return f"the token statistics of {where} are missing"
    if key_hash(plain(key)) != name:
        return f"the token statistics of {where} are not those that their hash names"
    if key_hash(key["model"]) != keys.get(role):
        return f"{where} was scored under another model than {role}"
    if key["corpus"] != keys.get(part_of(group)):
        return f"{where} was scored on other documents"
    read, asked = (
        f"the {view} text to {most} tokens"
        for view, most in ((key["view"], key["max_tokens"]), (view, audit.settings["max_tokens"]))
    )
    return f"{where} was read as {read}, and the question asks for {asked}" if read != asked else ""


# What a column is said to be ------------------------------------------------------------------------------------------


def _pattern(score: Score) -> str:
    """Of its names: any value where the name has a setting, or those that are known."""
    choices = dict(item.partition("=")[::2] for item in score.settings.split())
    return re.sub(r"\\\{(\w+).*?\\\}", lambda setting: f"({choices[setting[1]] or '.*'})", re.escape(score.name))


NAME_OF_KNOWN = re.compile("|".join(map(_pattern, SCORES.values())))


def _problems_of_names(audit: Audit) -> Iterator[str]:
    """What is told of columns that cannot be: each is found by its name, so the name binds kind, role and score."""
    for group, columns in audit.described["columns"].items():
        has = {column: bool(how["tables"]) for column, how in columns.items() if _is_arithmetic(how)}
        for column, how in columns.items():
            where = f"{column} of the {group} set"
            if problem := _problem_of_name(audit, column, how):
                yield f"{where} {problem}"
            elif any(has.values()) and not has.get(column, True):
                yield f"the token statistics of {where} are left out, and those beside it are there"


def _problem_of_name(audit: Audit, column: str, how: Described) -> str:
    parts, method = column.split("/"), audit.question["method"]
    kind = NOT_SCORED.get(parts[-1], NOT_SCORED.get(f"{parts[0]}/", "Scored"))
    if how["kind"] != kind and how["kind"] in KINDS:
        return f"is stated to be of the kind {how['kind']}, and its name is that of a {kind} one"
    if how["kind"] not in kinds_of(method) and how["kind"] in KINDS:
        return f"is of the kind {how['kind']}, and {method} has none of it"
    if how["kind"] != "Scored":
        return ""
    stated, asked = plain(how["score"]), audit.settings.get("score")

    def differs() -> bool:
        return isinstance(asked, Mapping) and _settings(how["score"]) != dict(asked.items())

    if not is_known(how["score"]):  # it must be the one that the question asks for, and have no name of another
        if column in audit.question["models"] and differs():
            return f"was scored by {_named(stated)}, and the question asks for {_named(asked)}"
        named = any(NAME_OF_KNOWN.fullmatch(item) for item in (stated["name"], *column.split("/")))
        return f"has the name of another score than {stated['kind']}" if named and stated["kind"] not in SCORES else ""
    score = _settings(how["score"])
    name = SCORES[score["kind"]].name.format(**score)
    if stated["name"] != name:
        return f"has the score {name}, and is stated to have {stated['name']}"
    role = "target" if column == name else column.removeprefix(f"{name}/").removesuffix(f"/{name}")
    if how["role"] != role:
        return f"is stated to be of the role {how['role']}, and its name is that of {role}"
    if column == role and differs():
        return f"was scored by {_named(score)}, and the question asks for {_named(asked)}"
    odd = score.get("compat", "none") != "none" and not audit.settings.get("compat")
    if odd and score not in list(_mappings(audit.settings)):
        return f"was scored by {_named(score)}, which the question does not ask for"
    return ""


def _settings(score: Described) -> dict[str, Any]:
    return {setting: value for setting, value in score.items() if setting != "name"}


def _named(score: Described) -> str:
    rest = ", ".join(f"{name} {value}" for name, value in score.items() if name not in ("kind", "name"))
    return f"{score['kind']} ({rest})" if rest else str(score["kind"])


def _mappings(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield value
    if isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _mappings(item)
