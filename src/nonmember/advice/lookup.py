"""What of a situation can be looked up: what the target offers, the texts, and how long audits took here before."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nonmember.advice.advise import Past
from nonmember.advice.situation import LEVELS, Offered
from nonmember.artifacts import Builder
from nonmember.models import ModelSpec
from nonmember.records import Corpus
from nonmember.results.outcomes import outcome_paths, read_outcome
from nonmember.results.result import AuditResult

TOKENS_PER_WORD = 1.3  # of English prose, by most vocabularies; no tokenizer is loaded for it


def offered(builder: Builder, model: ModelSpec) -> Offered:
    """The name of the target's access. An endpoint is asked a few plain questions, which may be charged."""
    if model.has_weights:
        model.validate()
        return "weights"
    names: tuple[Offered, ...] = ("logprobs", "top_logprobs")
    for name in names:
        try:
            model.require(builder, LEVELS[name], "advice")
        except ValueError:
            continue
        return name
    model.require(builder, LEVELS["text"], "advice")  # which says why there is none
    return "text"


def about_texts(corpus: Corpus) -> dict[str, Any]:
    """Number and length of the texts, and whether they have works and titles."""
    words = sum(len(document.text.split()) for document in corpus.documents)
    return {
        "documents": len(corpus),
        "tokens": max(1, round(TOKENS_PER_WORD * words / max(1, len(corpus)))),
        "works": any(document.cluster_id for document in corpus.documents),
        "titles": any(document.title for document in corpus.documents),
    }


def past_audits(folder: Path) -> Mapping[str, Past]:
    """Median wall time by method, of the results below a folder; those that cannot be read are left out."""
    if not folder.is_dir():
        return {}
    try:
        paths = outcome_paths(folder)
    except ValueError:
        return {}
    seconds: dict[str, list[float]] = {}
    for path in paths:
        try:
            outcome = read_outcome(path)
        except ValueError:
            continue
        if isinstance(outcome, AuditResult):
            seconds.setdefault(outcome.question.method, []).append(outcome.provenance.seconds)
    return {method: Past(statistics.median(took), len(took)) for method, took in seconds.items()}
