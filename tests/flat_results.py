"""Results from flat values, as versions before the schema wrote them: a short way to make some up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nonmember.methods import method_named
from nonmember.records.exposure import NOT_READ, Exposure
from nonmember.results.result import (
    CONCLUSIONS,
    Answer,
    AnsweredDocuments,
    AnsweredTarget,
    AuditedModel,
    AuditQuestion,
    AuditResult,
    Exclusions,
    Health,
    Provenance,
    Statistics,
    Verdict,
)

# Of a model: the last thing it was continued with, with the half of a set that this was (target+12xA, micro_s+8x50%).
LABEL = re.compile(r"(?:^|\+)(\d+)x(?:(\d+)%)?[A-Za-z]*$")
CONTROL = re.compile(r"control-(.+)-\d+")  # role of a planted control, with its exposure
DISTILLED = re.compile(r"(?:(.+)/)?distilled(?:/\d+)?")  # of a distilled reference, with the role of its teacher
RHO = ("rho_reference_target", "rho_distilled_target")
GROUPS = ("heldout", "unseen", "third")  # whose documents bore their name: heldout/id


def answer_like(decision: str, corpus: str, target: str | None, p: float | None, number: int) -> Answer:
    """As an audit words it, in short."""
    conclusion = CONCLUSIONS[decision]
    sentence = f"About {corpus} and {target}: {conclusion}."
    documents = AnsweredDocuments(corpus, number, "0" * 8)
    p = None if conclusion in ("invalid", "score only") else p
    found = (p, None, "", "asymptotic", ("A reason.",), "a step", "2026-11-28T08:00:00Z")
    return Answer(conclusion, sentence, *found, AnsweredTarget(target, "1" * 8 if target else None), documents, 0)


def upgraded(flat: Mapping[str, Any]) -> AuditResult:
    """The same in the present schema. Raises KeyError or TypeError where it is no result of an earlier version."""
    method = method_named(flat["method"])
    claim, null_hypothesis = method.hypothesis(flat["settings"])
    rho = {name: flat[name] for name in RHO if flat[name] is not None}
    return AuditResult(
        answer_like(flat["verdict"], flat["corpus"], flat["target"], flat["p_value"], flat["num_documents"]),
        AuditQuestion(
            claim=claim,
            null_hypothesis=null_hypothesis,
            models=_models(flat),
            **{name: flat[name] for name in AuditQuestion.__dataclass_fields__.keys() & flat.keys()},
        ),
        Statistics(
            name=method.statistic_name,
            value=flat["statistic"],
            bounds=method.statistic_bounds,
            p_value=flat["p_value"],
            ci_low=flat["ci_low"],
            ci_high=flat["ci_high"],
            num_documents=flat["num_documents"],
            num_tokens=flat["num_tokens"],
            details={**rho, **flat["details"]},
            picture=method.picture,
        ),
        Verdict(flat["verdict"], flat["allowed_claim"], tuple(flat["warnings"])),
        Health(training=flat["health"], capability=flat["capability"], counters={}),
        Exclusions(documents=_by_group(flat["excluded"]), dropped=flat["dropped"]),
        Provenance(flat["keys"], flat["versions"], flat["made"], flat["seconds"]),
    )


def exposure_of(label: str) -> Exposure | None:
    """None where the label tells of none. Shares are as exact as the label."""
    match = LABEL.search(label)
    if match is None:
        return None
    share = int(match[2]) / 100 if match[2] else 1.0
    return Exposure(share, int(match[1])) if 0 < share <= 1 else None


def _models(flat: Mapping[str, Any]) -> dict[str, AuditedModel]:
    """The target, planted controls, and others from which references were distilled."""
    planted = _planted(flat)
    distilled: dict[str, list[str]] = {}
    for role in flat["keys"]:
        if match := DISTILLED.fullmatch(role):
            distilled.setdefault(match[1] or "target", []).append(role)
    root = flat["settings"].get("controls", {}).get("stand_in", {}).get("label")
    models = {role: AuditedModel(None, None, distilled=tuple(names)) for role, names in distilled.items()}
    for role in flat["keys"]:
        if match := CONTROL.fullmatch(role):
            models[role] = AuditedModel(planted.get(match[1]), root, True, tuple(distilled.get(role, ())))
    if flat["target"] is not None:
        root = flat["target"].partition("+")[0]
        models["target"] = AuditedModel(_read_by_target(flat, planted), root, False, tuple(distilled.get("target", ())))
    return models


def _planted(flat: Mapping[str, Any]) -> dict[str, Exposure]:
    """Label -> exposure of the controls, as declared in the settings."""
    readings = flat["settings"].get("controls", {}).get("readings", ())
    exposures = [Exposure(float(item["share"]), int(item["exposures"])) for item in readings]
    return {item.label: item for item in exposures}


def _read_by_target(flat: Mapping[str, Any], planted: Mapping[str, Exposure]) -> Exposure | None:
    if flat["truth"] == "non_member":
        return NOT_READ
    if flat["truth"] is None:
        return None
    return planted.get(flat["target"].rpartition("+")[2]) or exposure_of(flat["target"])


def _by_group(excluded: Mapping[str, str]) -> dict[str, dict[str, str]]:
    documents: dict[str, dict[str, str]] = {}
    for name, reason in excluded.items():
        group, _, doc_id = name.partition("/")
        group, doc_id = (group, doc_id) if group in GROUPS else ("suspect", name)
        documents.setdefault(group, {})[doc_id] = reason
    return documents
