"""Lies about what single methods compute: gates, controls, margins, readings."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from doctored import (
    ANSWERS,
    RESULT,
    SCORES,
    TOLD,
    Files,
    edited,
    excluded,
    gate_lost,
    in_details,
    in_numbers,
    in_result,
    in_scores,
    in_told,
    plain,
    put,
    require_found,
    rows,
    signed,
    together,
    tokens_of,
    with_identity,
    written,
)

from nonmember.evidence.bundle import as_json
from nonmember_verify.known import INVALID

COLUMNS = ("columns", "suspect")
ZLIB = {"kind": "Scored", "role": "target", "tables": [], "score": {"kind": "Zlib", "name": "zlib"}}


def hidden(reason: str) -> Callable[[Files], Files]:
    """A finding called invalid."""
    verdict = {"decision": "invalid", "allowed_claim": INVALID, "warnings": [reason]}
    return edited(RESULT, lambda item: item["verdict"].update(verdict))


def answered(kinds: list[str]) -> Callable[[Files], Files]:
    """The first answers, right or otherwise."""

    def change(columns: dict) -> None:
        columns["kind"][: len(kinds)] = kinds
        columns["correct"] = [kind == "right" for kind in columns["kind"]]

    return rows(ANSWERS, change)


def exchanged(*names: str) -> Callable[[dict], None]:
    """These columns of the suspect and of the clean set."""

    def change(columns: dict) -> None:
        own, other = (
            [i for i, group in enumerate(columns["group"]) if group == name] for name in ("suspect", "heldout")
        )
        for values in (columns[name] for name in names):
            for first, second in zip(own, other, strict=True):
                values[first], values[second] = values[second], values[first]

    return change


def clean_set_first(columns: dict) -> None:
    order = sorted(range(len(columns["group"])), key=lambda index: columns["group"][index] == "suspect")
    columns.update({name: [values[index] for index in order] for name, values in columns.items()})


def without_control(files: Files) -> Files:
    """One that does not suit, left out wherever it is told of but in the question."""
    told, result = json.loads(files[TOLD]), json.loads(files[RESULT])
    role, controls = "control-2x-2", result["statistics"]["details"]["controls"]
    controls[:] = [item for item in controls if item["role"] != role]
    for named in (told["recipes"], result["question"]["models"], result["provenance"]["keys"]):
        del named[role]
    for columns in told["columns"].values():
        for column in [item for item in columns if item.startswith(f"{role}/")]:
            del columns[column]
    return signed({**files, TOLD: as_json(told), RESULT: as_json(result)})


def _without_distilled(result: dict) -> None:
    result["statistics"].update(dict.fromkeys(("value", "p_value", "ci_low", "ci_high")))
    result["verdict"].update(decision="invalid", allowed_claim=INVALID)
    for told in (result["provenance"]["keys"], result["question"]["models"]):
        told.pop("distilled", None)


PLAIN_LIES: dict[str, tuple[str, Callable[[Files], Files], str]] = {
    "a gate called passed": (
        "gates",
        edited(RESULT, lambda item: item["statistics"]["details"]["gates"]["kl"].update(passed=False)),
        "and passed is",
    ),
    "a gate's number": ("gates", in_details("gates", "nll_third", "value", -3.0), "nll_third is stated as -3.0"),
    "a gate left out": (
        "gates",
        gate_lost("reference_gain"),
        "reference_gain is missing, though the question has its bound",
    ),
    "canaries by a score of texts together": (
        "canaries",
        in_result("question", "settings", "score", "kind", "Lira"),
        "Lira depends on the texts that are scored together",
    ),
    "a gate left out that would not let it be cleared": (
        "knowing",
        together(gate_lost("target_gain"), in_result("verdict", "decision", "evidence_of_non_membership")),
        "target_gain is missing, though the question has its bound",
    ),
    "a gate's bound": (
        "gates",
        in_details("gates", "ce", "bound", -9.0),
        "ce has the bound -9.0, which is not that of the question",
    ),
    "a hash that need not be checked": (
        "prism",
        together(in_told("redacted", ["identity"]), in_told("identity", "seed", 6)),
        "the question has the hash",
    ),
    "related text that a control read": (
        "dose",
        in_details("controls", 0, "related", 8),
        "what it read is stated differently",
    ),
    "identifiers of another form": ("identifiers", in_details("forms", "UUID", 4), "are not as many as were scored"),
    "identifiers by the mean of their tokens": (
        "identifiers",
        in_told("columns", "suspect", "target", "score", {"kind": "Loss", "name": "loss"}),
        "identifiers are scored by LogProbability, and Log.*Loss is stated",
    ),
    "the rank of a canary": ("canaries", in_details("ranks", 0, 9), "ranks is stated as"),
    "the score of an identifier": ("identifiers", in_scores("target", 3, 0.0), "and its tokens give"),
    "alternatives that are missing": (
        "identifiers",
        edited(TOLD, lambda told: told["documents"]["alternatives"].pop()),
        "not as many as asked",
    ),
    "documents by themselves": ("prism by clusters", in_scores("unit", 1, 39), "is stated as"),
    "how often a control read": ("dose", in_details("controls", 2, "dose", 4), "what it read is stated differently"),
    "a control left out": (
        "dose",
        edited(RESULT, lambda item: item["statistics"]["details"]["controls"].pop(1)),
        "or it was left out",
    ),
    "fewer readings": ("dose", in_numbers("value", 7.7), "readings is stated as 7.7"),
    "readings in words": ("dose", in_details("readings", "none"), "in words is stated as none"),
    "another dose that was excluded": ("dose", in_details("excluded_dose", 1), "doses is stated as"),
    "p of the dose": ("dose", in_numbers("p_value", lambda item: item / 2 + 1e-4), "p is stated as"),
    "a score of a control": (
        "dose",
        lambda files: in_scores(
            next(name for name in json.loads(files[TOLD])["columns"]["suspect"] if name.startswith("control")), 3, 0.0
        )(files),
        "and its tokens give",
    ),
    "a variant of the score that nobody asked for": (
        "dose",
        in_told("columns", "suspect", "target/minkpp(0.2)", "score", "compat", "official"),
        "compat official.* which the question does not ask for",
    ),
    "a gate of the dose left out": ("dose", gate_lost("fit"), "fit is missing, though the question has its bound"),
    "answers called wrong": ("decop", answered(["wrong"] * 8), "difference is stated as"),
    "membership where works are known alike": (
        "decop",
        answered(["right", "wrong"] * 96),
        "evidence_of_membership is stated, and the numbers say invalid",
    ),
    "answers that are no letters": (
        "decop",
        answered(["unreadable"] * 8),
        "evidence_of_membership is stated, and the numbers say invalid",
    ),
    "token statistics left out behind a kind of score that nobody asked for": (
        "prism",
        together(
            in_told("columns", "suspect", "target", "score", "kind", "Own"),
            in_told("columns", "suspect", "target", "tables", []),
        ),
        "was scored by Own .*, and the question asks for MinKPlusPlus",
    ),
    "a finding hidden by leaving out the distilled reference": (
        "prism",
        together(
            edited(TOLD, lambda item: (item["columns"]["suspect"].pop("distilled"), item["recipes"].pop("distilled"))),
            edited(RESULT, _without_distilled),
            rows(SCORES, lambda columns: columns.pop("distilled")),
        ),
        "the scores of the distilled reference are missing",
    ),
    "canaries that do not suit, left without private variants": (
        "canaries",
        in_scores("unit", 3, 999),
        "have no published variant or no private one",
    ),
    "a finding hidden by a target that is no reference": (
        "prism",
        hidden("The reference is the target: both are one."),
        "invalid is stated, and the numbers say inconclusive",
    ),
    "a finding hidden by a health that no verdict rests on": (
        "difference",
        together(hidden("The health of the distilled reference was not measured"), in_result("health", "training", {})),
        "invalid is stated, and the numbers say evidence_of_membership",
    ),
    "a finding hidden by exclusions from a set that is not there": (
        "difference",
        together(
            hidden(""),
            in_result("exclusions", "documents", "x", dict.fromkeys(map(str, range(99)), "lost")),
            in_told("columns", "x", {"embedding": {"kind": "Embedded", "role": "target", "tables": []}}),
        ),
        "the x set has no commitments",
    ),
    "a set that nobody asked about": (
        "passages",
        edited(TOLD, lambda told: (told["documents"].update(more=[]), told["columns"].update(more={}))),
        "the question has no more set",
    ),
    "the clean set left out": (
        "passages",
        edited(TOLD, lambda told: (told["documents"].pop("heldout"), told["columns"].pop("heldout"))),
        "the heldout set of the question is not there",
    ),
    "a share of right answers": ("decop", in_scores("decop", 2, 0.9), "has 0.9, and [0-9] of 4 are right"),
    "doses that do not rise": ("dose", with_identity(put("method", "exceed", -1)), "exceed -1, exclude 2 and the heav"),
    "answers that are wrong and correct": (
        "decop",
        rows(ANSWERS, put("kind", 0, lambda kind: "wrong" if kind == "right" else "right")),
        "an answer is called",
    ),
    "a document excluded for a column that the method has not": (
        "prism",
        together(excluded, in_told(*COLUMNS, "embedding", {"kind": "Embedded", "role": "target", "tables": []})),
        "embedding of the suspect set is of the kind Embedded, and prism has none",
    ),
    "a document excluded for a score that the test does not take": (
        "difference",
        together(
            excluded,
            rows(SCORES, lambda columns: columns.update(zlib=columns["target"])),
            lambda files: in_told(*COLUMNS, "zlib", ZLIB | {"tables": [tokens_of(files, "target")]})(files),
        ),
        "was left out .* and can be scored",
    ),
    "a level at which all is evidence": ("order", with_identity(put("method", "alpha", 1)), "alpha is 1, and must be"),
    "a margin at which all are cleared": (
        "prism",
        with_identity(put("method", "margin", -1)),
        "margin is -1, and must",
    ),
    "scores that are no numbers": (
        "order",
        in_scores("mean_shuffled", 3, float("nan")),
        "mean_shuffled of the suspect set holds what is no finite number",
    ),
    "scores that are text": (
        "order",
        rows(SCORES, lambda columns: columns.update(canonical=list(map(str, columns["canonical"])))),
        "canonical of the suspect set holds what is no finite number",
    ),
    "a p that is small, called far smaller": ("decop", in_numbers("p_value", 1e-300), "as 1e-300"),
    "a recipe exchanged beside one that lacks a path": (
        "prism",
        edited(
            TOLD,
            lambda told: (
                told.update(redacted=["recipes"]),
                told["recipes"].update(target={"scratch": "x"}),
                told["recipes"]["reference"].update(note="[path left out]"),
            ),
        ),
        "the recipe of target is not that",
    ),
    "a reference distilled on other documents": (
        "prism",
        in_told("recipes", "distilled", "corpus", "f" * 64),
        "the corpus of distilled is not that of the question",
    ),
    "a control that does not suit left out": (
        "dose",
        without_control,
        "control-2x-2: what it read .* or it was left out",
    ),
    "a control listed twice": (
        "dose",
        in_details("controls", lambda items: [items[-1] | {"reading": 3.0}, *items]),
        "a role is listed twice",
    ),
    "tokens of a document listed twice": (
        "prism",
        lambda files: rows(
            f"tokens/{tokens_of(files, 'target')}.parquet",
            lambda columns: columns.update({name: [items[0], *items] for name, items in columns.items()}),
        )(files),
        "holds a document twice",
    ),
    "a passage likelier than its tokens": (
        "extraction",
        in_scores("target", 3, lambda value: value + 0.01),
        r"target of the suspect set is stated as .* and its tokens give",
    ),
    "a share of extractable documents raised": (
        "extraction",
        in_details("suspect", "share_at_least", "0.001", lambda share: share + 0.025),
        "numbers of the suspect set",
    ),
    "discoverable documents of unread text made fewer": (
        "extraction",
        in_details("heldout", "num_discoverable", "10000", 0),
        "numbers of the heldout set",
    ),
    "fewer tries than it takes": (
        "extraction",
        in_details("most_extractable", lambda most: {k: {**v, "tries": 2.0} for k, v in most.items()}),
        "probability or tries of document",
    ),
    "another document called the most extractable": (
        "extraction",
        in_details("most_extractable", lambda most: dict(zip(reversed(most), most.values(), strict=True))),
        "probability or tries of document",
    ),
    "a seal that nobody gave": (
        "prism",
        in_told("receipt", {"seal": "0" * 64, "audit": "", "started": ""}),
        "the bundle leaves it out",
    ),
}


@pytest.mark.parametrize("name", PLAIN_LIES)
def test_a_lie_about_an_audit_is_found(name, tmp_path):
    of, lie, sentence = PLAIN_LIES[name]
    require_found(written(lie(plain(of)), tmp_path / "bundle.zip"), sentence)
