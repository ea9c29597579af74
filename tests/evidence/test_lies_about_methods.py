"""Lies about what single methods compute: gates, controls, margins, readings."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from doctored import ANSWERS, RESULT, SCORES, TOLD, Files, edited, plain, put, require_found, rows, together, written

from nonmember_verify.known import INVALID

NUMBERS = ("statistics",)


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
    "a gate's number": (
        "gates",
        edited(RESULT, put(*NUMBERS, "details", "gates", "nll_third", "value", -3.0)),
        "nll_third is stated as -3.0",
    ),
    "a gate left out": (
        "gates",
        edited(RESULT, lambda item: item["statistics"]["details"]["gates"].pop("reference_gain")),
        "reference_gain is missing, though the question has its bound",
    ),
    "canaries by a score of texts together": (
        "canaries",
        edited(RESULT, put("question", "settings", "score", "kind", "Lira")),
        "Lira depends on the texts that are scored together",
    ),
    "a gate left out that would not let it be cleared": (
        "knowing",
        together(
            edited(RESULT, lambda item: item["statistics"]["details"]["gates"].pop("target_gain")),
            edited(RESULT, put("verdict", "decision", "evidence_of_non_membership")),
        ),
        "target_gain is missing, though the question has its bound",
    ),
    "a gate's bound": (
        "gates",
        edited(RESULT, put(*NUMBERS, "details", "gates", "ce", "bound", -9.0)),
        "ce has the bound -9.0, which is not that of the question",
    ),
    "a gate of clearance left out": (
        "clearance",
        edited(RESULT, lambda item: item["statistics"]["details"]["gates"].pop("kl_third")),
        "kl_third is missing, though the question has its bound",
    ),
    "a hash that need not be checked": (
        "prism",
        together(edited(TOLD, put("redacted", ["identity"])), edited(TOLD, put("identity", "seed", 6))),
        "the question has the hash",
    ),
    "related text that a control read": (
        "dose",
        edited(RESULT, put(*NUMBERS, "details", "controls", 0, "related", 8)),
        "what it read is stated differently",
    ),
    "a control's Delta": (
        "clearance",
        edited(RESULT, put(*NUMBERS, "details", "control_deltas", "2x", 0, -0.9)),
        "deltas of the controls is",
    ),
    "a lower margin": (
        "clearance",
        edited(RESULT, put(*NUMBERS, "details", "margin", -0.5)),
        "margin is stated as -0.5",
    ),
    "p of clearance": ("clearance", edited(RESULT, put(*NUMBERS, "p_value", 1e-4)), "p is stated as 0.0001"),
    "shams left out": (
        "clearance",
        edited(RESULT, put(*NUMBERS, "details", "shams", {})),
        "put to two shams, and they are",
    ),
    "documents of one cluster": ("clearance", rows(SCORES, put("unit", 1, 0)), "is stated as"),
    "how often a control read": (
        "dose",
        edited(RESULT, put(*NUMBERS, "details", "controls", 2, "dose", 4)),
        "what it read is stated differently",
    ),
    "a control left out": (
        "dose",
        edited(RESULT, lambda item: item["statistics"]["details"]["controls"].pop(1)),
        "or it was left out",
    ),
    "fewer readings": ("dose", edited(RESULT, put(*NUMBERS, "value", 7.7)), "readings is stated as 7.7"),
    "readings in words": (
        "dose",
        edited(RESULT, put(*NUMBERS, "details", "readings", "none")),
        "in words is stated as none",
    ),
    "another dose that was excluded": (
        "dose",
        edited(RESULT, put(*NUMBERS, "details", "excluded_dose", 1)),
        "doses is stated as",
    ),
    "p of the dose": ("dose", edited(RESULT, put(*NUMBERS, "p_value", lambda item: item / 2 + 1e-4)), "p is stated as"),
    "a score of a control": (
        "dose",
        lambda files: rows(
            SCORES,
            put(
                next(name for name in json.loads(files[TOLD])["columns"]["suspect"] if name.startswith("control")),
                3,
                0.0,
            ),
        )(files),
        "and its tokens give",
    ),
    "the order test's control": (
        "order",
        edited(RESULT, put(*NUMBERS, "details", "control", "p_value", 0.9)),
        "p is stated as 0.9",
    ),
    "a variant of the score that nobody asked for": (
        "dose",
        edited(TOLD, put("columns", "suspect", "target/minkpp(0.2)", "score", "compat", "official")),
        "compat official.* which the question does not ask for",
    ),
    "a gate of the dose left out": (
        "dose",
        edited(RESULT, lambda item: item["statistics"]["details"]["gates"].pop("fit")),
        "fit is missing, though the question has its bound",
    ),
    "a sham that is called refused": (
        "clearance",
        edited(RESULT, put(*NUMBERS, "details", "shams", "sham_unrelated", "refused", True)),
        "refused is True, and its gates say False",
    ),
    "answers called wrong": (
        "decop",
        rows(ANSWERS, lambda columns: columns.update(correct=[False] * 8 + columns["correct"][8:])),
        "difference is stated as",
    ),
    "membership where works are known alike": (
        "decop",
        rows(ANSWERS, lambda columns: columns.update(correct=[True, False] * (len(columns["correct"]) // 2))),
        "evidence_of_membership is stated, and the numbers say invalid",
    ),
    "answers that are no letters": (
        "decop",
        rows(ANSWERS, lambda columns: columns.update(kind=["unreadable"] * 8 + columns["kind"][8:])),
        "evidence_of_membership is stated, and the numbers say invalid",
    ),
    "p of passages that were reproduced": (
        "passages",
        edited(RESULT, put(*NUMBERS, "p_value", 1e-9)),
        "p is stated as 1e-09",
    ),
    "a confidence": ("pacost", rows(SCORES, put("original", 3, 0.99)), "t is stated as"),
    "answers that are hardly any": (
        "pacost",
        together(
            rows(
                SCORES, lambda columns: columns.update({item: [0.0] * 40 for item in ("original_no", "rephrased_no")})
            ),
            edited(RESULT, put("question", "settings", "min_answer_mass", 0.7)),
        ),
        "evidence_of_membership is stated, and the numbers say invalid",
    ),
    "Yes and No that are the same token": (
        "pacost",
        rows(SCORES, lambda item: item.update({f"{name}_no": item[name] for name in ("original", "rephrased")})),
        "evidence_of_membership is stated, and the numbers say invalid",
    ),
    "a rate that no gate let pass": (
        "ladder",
        edited(RESULT, put(*NUMBERS, "details", "ladder", "chosen", 0.001)),
        "it chose 0.001, which is not the first of its rates that passed",
    ),
    "a rate that nobody asked for": (
        "ladder",
        edited(
            RESULT,
            put(*NUMBERS, "details", "ladder", {"chosen": 0.5, "tried": [{"learning_rate": 0.5, "passed": True}]}),
        ),
        "it chose 0.5, which is not the first of its rates that passed",
    ),
    "a finding hidden behind a ladder that nobody climbed": (
        "prism",
        edited(
            RESULT,
            lambda item: item["verdict"].update(
                decision="invalid", allowed_claim=INVALID, warnings=["No learning rate of the ladder passes the gates."]
            ),
        ),
        "invalid is stated, and the numbers say inconclusive",
    ),
    "token statistics left out behind a kind of score that nobody asked for": (
        "prism",
        together(
            edited(TOLD, put("columns", "suspect", "target", "score", "kind", "Own")),
            edited(TOLD, put("columns", "suspect", "target", "tables", [])),
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
    "a seal that nobody gave": (
        "prism",
        edited(TOLD, put("receipt", {"seal": "0" * 64, "audit": "", "started": ""})),
        "the bundle leaves it out",
    ),
}


@pytest.mark.parametrize("name", PLAIN_LIES)
def test_a_lie_about_an_audit_is_found(name, tmp_path):
    of, lie, sentence = PLAIN_LIES[name]
    require_found(written(lie(plain(of)), tmp_path / "bundle.zip"), sentence)
