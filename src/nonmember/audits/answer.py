"""The answer of an audit in words: the one record that every view prints first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from nonmember.artifacts import Builder
from nonmember.audits.question import Audit
from nonmember.methods import TestOutcome
from nonmember.methods.auto import IN_WORDS, AutoDetails, ChosenTest
from nonmember.methods.base import Claim
from nonmember.results.result import (
    CONCLUSIONS,
    PARTS,
    Answer,
    AnsweredDocuments,
    AnsweredTarget,
    AuditQuestion,
    Conclusion,
    Statistics,
)
from nonmember.stats.blind import INTERPRETABLE_UP_TO

FEW_DOCUMENTS = 150
MOST_REASONS = 2
DIGITS = 8  # of hashes
UNREAD = "data.heldout.path=FILE, texts of the same kind that were never published"
# What to do about a gate that failed.
REMEDIES: Mapping[str, str] = {
    "ce": "distil for more steps: method.distillation.num_steps=NUMBER",
    "kl": "a lower learning rate: method.distillation.optimization.learning_rate=RATE",
    "kl_third": "a lower learning rate: method.distillation.optimization.learning_rate=RATE",
    "nll_third": "a lower learning rate: method.distillation.optimization.learning_rate=RATE",
    "reference_gain": "another reference, which has certainly not read the documents: reference.path=FOLDER",
    "rank_correlation": "a reference that is another model than the target: reference.path=FOLDER",
    "distinct": "more different texts",
    "spread": "another score: score@method.score=loss",
    "target_gain": f"method=difference_in_differences with {UNREAD}",
    "third_kind": UNREAD,
    "delta": "method=dose, if the base that the target was trained from is at hand",
    "layout": "text prepared in the same way: cleaning.white_space=normalised",
    "separation": "more or longer documents: a reading of these leaves no trace",
}
HOLDS = {"canary": "canaries", "identifiers": "identifiers"}  # method -> what is counted, in place of documents
PLANT_MORE = "more canaries in what is published next (nonmember plant)"
LESS_A_REFERENCE = "score@method.score=ref_diff reference.path=FOLDER, which takes away how hard each text is"
LIKE_THE_TARGET = "controls trained as the target was (rate, length, texts afterwards)"


def answer_of(
    audit: Audit,
    outcome: TestOutcome,
    question: AuditQuestion,
    statistics: Statistics,
    keys: Mapping[str, str],
    builder: Builder,
) -> Answer:
    conclusion = CONCLUSIONS[outcome.verdict]
    concludes = conclusion not in ("invalid", "score only")
    return Answer(
        conclusion=conclusion,
        sentence=_sentence(conclusion, outcome, question, statistics),
        p=statistics.p_value if concludes else None,
        p_error=statistics.p_error if concludes else None,
        hypothesis=question.null_hypothesis,
        guarantee=_guarantee(audit, outcome),
        because=_because(conclusion, outcome, audit, statistics),
        next=_next(conclusion, outcome, audit, statistics.num_documents, is_sealed="seal" in keys),
        finished=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        target=AnsweredTarget(question.target, keys["target"][:DIGITS] if "target" in keys else None),
        documents=AnsweredDocuments(question.corpus, statistics.num_documents, keys["corpus"][:DIGITS]),
        other_looks=0 if f"/{PARTS}/" in question.cell else _counted(keys, builder),
    )


def _sentence(conclusion: Conclusion, outcome: TestOutcome, question: AuditQuestion, statistics: Statistics) -> str:
    target = f'the target "{question.target}"' if question.target else "the target"
    counted = HOLDS.get(question.method, "")
    documents = f'these {statistics.num_documents} {counted or "documents"} ("{question.corpus}")'
    documents = f"text that holds {documents}" if counted else documents
    p = f"p = {statistics.p_value:.2g}" if statistics.p_value is not None else "p undefined"
    match conclusion:
        case "used" | "not used":
            often = ""
            if question.method == "dose" and conclusion == "used":
                low, high = (
                    f"{end:.2g}" if end is not None else "more" for end in (statistics.ci_low, statistics.ci_high)
                )
                often, p = f", about {statistics.value:.2g} times", f"interval {low} to {high}; {p}"
            proviso = re.search(r", (provided that [^.:]*)", outcome.allowed_claim)
            was = "was" if conclusion == "used" else "was not"
            claim = f"There is evidence that {target} {was} trained on {documents} as a set{often} ({p})"
            return f"{claim}{', ' + proviso[1] if proviso else ''}. It says nothing about single documents."
        case "no answer":
            return f"No evidence either way whether {target} was trained on {documents}."
        case "invalid":
            return f"No conclusion can be drawn about {documents}: a precondition of the test failed."
    return f"No conclusion about {documents}: {outcome.allowed_claim[:1].lower()}{outcome.allowed_claim[1:]}"


def _because(conclusion: Conclusion, outcome: TestOutcome, audit: Audit, statistics: Statistics) -> tuple[str, ...]:
    """The method's own reasons come first among its warnings."""
    if isinstance(outcome.details, AutoDetails):
        return tuple(_of_test(claim, outcome.details) for claim in IN_WORDS)
    gates = outcome.details.to_json().get("gates") or {}
    number = statistics.num_documents
    if conclusion in ("used", "not used"):
        value = "undefined" if statistics.value is None else f"{statistics.value:.3g}"
        interval = "" if statistics.ci_low is None else f", interval from {statistics.ci_low:.3g}"
        interval += f" to {statistics.ci_high:.3g}" if interval and statistics.ci_high is not None else ""
        measured = f"{statistics.name} is {value}{interval}, over {number} documents."
        return (measured, f"All {len(gates)} preconditions (gates) held.") if gates else (measured,)
    p = statistics.p_value
    significant = p is not None and p < outcome.alpha  # and something else stands in its way
    refused = conclusion == "invalid" or significant or any(not gate["passed"] for gate in gates.values())
    reasons = [text for text in outcome.warnings[:1] if refused or text.startswith("No power")]
    if conclusion == "no answer":
        if p is not None and not significant and not reasons:
            reasons.append(f"p is {p:.2g}, and an answer needs less than {outcome.alpha:g}.")
        if number < FEW_DOCUMENTS and not audit.method.is_drawn:
            reasons.append(f"{number} documents are few; from {FEW_DOCUMENTS} on tests decide more often.")
        if audit.heldout is None and not audit.method.is_drawn:
            reasons.append("No unread text of the same kind was given to compare with.")
    return tuple(reasons[:MOST_REASONS])


def _next(conclusion: Conclusion, outcome: TestOutcome, audit: Audit, number: int, *, is_sealed: bool) -> str:
    """The first that is not done already."""
    if conclusion in ("used", "not used"):
        part, details = "", outcome.details
        if isinstance(details, AutoDetails) and outcome.claim is not None:
            part = f"/{Path(details.tests[outcome.claim]['result']).parent}"
        key = "--key KEY --secret SEAL.private" if is_sealed else "--new-key KEY"
        return f"hand it to somebody who can check it: nonmember bundle FOLDER{part} --out audit.zip {key}"
    if isinstance(outcome.details, AutoDetails):
        missing = [UNREAD] if audit.heldout is None else []
        missing += [] if audit.reference else ["reference.path=FOLDER, a model that has certainly not read them"]
        tests = sorted(outcome.details.tests.values(), key=lambda test: test["verdict"] != "invalid")
        return "; ".join(missing) or next(map(_in_auto, tests), UNREAD)
    gates = outcome.details.to_json().get("gates") or {}
    failed = [name for name, gate in gates.items() if not gate["passed"]]
    given = [REMEDIES.get(name, LIKE_THE_TARGET) for name in failed]
    if max((outcome.details.blind_auc or {"": 0.0}).values()) > INTERPRETABLE_UP_TO:
        given.append("held-out text of the same source, kind and date: data.heldout.path=FILE")
    if max((outcome.details.layout_auc or {"": 0.0}).values()) > (audit.max_layout_auc or 1.0):
        given.append(REMEDIES["layout"])
    if audit.method.is_drawn:
        given.append(LESS_A_REFERENCE if audit.heldout is not None else PLANT_MORE)
    elif conclusion in ("no answer", "score only"):
        given.append(UNREAD)
        if number < FEW_DOCUMENTS:
            given.append(f"more documents: {FEW_DOCUMENTS} or more")
        given.append("nonmember advise target.path=MODEL data.path=FILE, which ranks the methods that apply")
    given.append("mend what the reason names, then start the same command again")
    score = getattr(getattr(audit.method, "score", None), "name", "")
    done = {UNREAD: audit.heldout is not None, REMEDIES["spread"]: score == "loss"}
    done[LESS_A_REFERENCE] = score == "ref_diff"
    return next(item for item in given if not done.get(item, False))


def _in_auto(test: ChosenTest) -> str:
    """What would help a test, in the words of the command that ran it beside others."""
    return re.sub(r"\bmethod\.(?=\w+[.=])", f"+method.given.{test['method']}.", test["next"])


def _guarantee(audit: Audit, outcome: TestOutcome) -> str:
    """Of the test that decides."""
    details = outcome.details
    if isinstance(details, AutoDetails) and outcome.claim is not None:
        return details.tests[outcome.claim]["guarantee"]
    return audit.method.guarantee


def _of_test(claim: Claim, details: AutoDetails) -> str:
    """What the one test of a claim found; where there is none, what it would take."""
    if (test := details.tests.get(claim)) is None:
        return f"no test for {IN_WORDS[claim]!r} could be run: {details.lacking[claim].removesuffix('.')}."
    found = "no p" if test["p_value"] is None else f"p = {test['p_value']:.2g}"
    found = "" if test["because"].startswith("p is ") else "invalid. " if test["verdict"] == "invalid" else f"{found}. "
    return f"{IN_WORDS[claim]!r}, tested by {test['method'].replace('_', ' ')}: {found}{test['because']}".strip()


def other_looks(keys: Mapping[str, str], builder: Builder) -> int:
    """Audits of the same documents and target that were made before, this one apart: each left an empty file here."""
    folder = _looks(keys, builder)
    return sum(path.name != keys["audit"] for path in folder.iterdir()) if folder.is_dir() else 0


def _counted(keys: Mapping[str, str], builder: Builder) -> int:
    """`other_looks`, and that this audit was one."""
    if "target" not in keys:
        return 0
    number, folder = other_looks(keys, builder), _looks(keys, builder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / keys["audit"]).touch()
    return number


def _looks(keys: Mapping[str, str], builder: Builder) -> Path:
    return builder.store.root / "looks" / f"{keys.get('target')}-{keys['corpus']}"
