"""Checks of every audit's documents: enough of them, prepared alike in all groups, and how many are truncated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nonmember.artifacts import Builder
from nonmember.artifacts.store import key_hash
from nonmember.audits.question import Audit
from nonmember.corpora.transforms.cleaning import SHINGLE_WORDS, near_duplicates, normalise
from nonmember.methods import DocumentGroup, ScoredDocuments, TestOutcome
from nonmember.methods.comparison import blind_between, kinds_of
from nonmember.methods.gates import FOLDS, INVERSE_PENALTY
from nonmember.methods.protocols import PlantsControls
from nonmember.models.exposure import Exposures, truth_about
from nonmember.models.reading import Read
from nonmember.observations import Scored
from nonmember.observations.weights import WeightChange, weights_at_hand
from nonmember.records.groups import HELDOUT, SUSPECT, THIRD, UNSEEN, set_of
from nonmember.records.spans import split_words
from nonmember.stats.blind import INTERPRETABLE_UP_TO, layout_auc

COMPARED_WITH = {HELDOUT: "held-out", UNSEEN: "unseen"}  # groups of documents beside the suspect ones
NEAR_COPY, NUM_PERM = 0.7, 64  # as cleaning=deduplicated has them
FEW_COPIES = 0.05  # share of the units that may be near copies of others
FEW_DOCUMENTS = 0.05  # share of the set that controls may have read otherwise than is said


def require_documents(audit: Audit, builder: Builder) -> None:
    """Raises ValueError where a set has fewer documents than the method needs, or not the documents it needs."""
    method = audit.method
    corpora = {name: builder.get(group.corpus) for name, group in audit.groups.items()}
    for name, corpus in corpora.items():
        if len(corpus) < method.least(name):
            dropped = ", ".join(f"{number} {why}" for why, number in corpus.dropped.items())
            what = f"{set_of(name)} {audit.labels.get(name, '')}".rstrip()
            raise ValueError(
                f"The {what} has {len(corpus)} documents and {method.name} needs at least {method.least(name)} "
                f"(dropped on the way: {dropped or 'none'}). Give more documents or loosen the cleaning."
            )
    method.check(corpora)
    texts = {name: [normalise(item.text) for item in corpus.documents if item.text] for name, corpus in corpora.items()}
    shared = len(set(texts.get(SUSPECT, ())).intersection(texts.get(HELDOUT, ())))
    if method.requirements.same_draw and shared > FEW_COPIES * len(texts.get(SUSPECT, ())):
        raise ValueError(
            f"{shared} of {len(texts[SUSPECT])} texts of the suspect set are in the held-out set too, which leaves "
            "little to compare. Give texts that were certainly not used: data.heldout.path=FILE."
        )
    for name, (number, distinct) in units_of(audit, builder).items():
        if distinct < (1 - FEW_COPIES) * number:
            raise ValueError(
                f"The {set_of(name)} has {number} documents or clusters and only {distinct} different texts: others "
                "are near copies (most of their runs of five words are those of another). A test would take all for "
                "independent, and its p would be too small. Leave copies out with cleaning=deduplicated, or name what "
                "belongs together with data.cluster_field."
            )


def units_of(audit: Audit, builder: Builder) -> dict[str, tuple[int, int]]:
    """Of each set that a test compares, its documents or clusters and how many of them are no near copies of others.

    In a file whose order is in question copies are part of it, and variants of a canary, or of an identifier, are alike
    by design; of a hold-out the draw makes both parts alike.
    """
    if audit.method.claim is None or {"order", "canaries", "holdout", "identifiers"} & set(
        audit.method.requirements.inputs
    ):
        return {}
    found = {}
    for name in (item for item in (SUSPECT, HELDOUT) if item in audit.groups):
        # Of recorded answers the texts are not at hand, and a few words say nothing of copies.
        corpus = audit.groups[name].corpus
        documents = [item for item in builder.get(corpus).documents if len(split_words(item.text)) >= SHINGLE_WORDS]
        if documents:  # of the texts alone is the note: clusters are no part of a fingerprint
            key = {"near": NEAR_COPY, "permutations": NUM_PERM, "corpus": corpus.fingerprint(builder)}
            repeated = builder.noted("near copies", key, partial(_near_copies, [item.text for item in documents]))
            units = [item.cluster_id or item.doc_id for item in documents]
            left = {unit for unit, again in zip(units, repeated, strict=True) if not again}
            found[name] = len(set(units)), len(left)
    return found


def _near_copies(texts: Sequence[str]) -> list[bool]:
    return [bool(again) for again in near_duplicates(texts, NEAR_COPY, NUM_PERM)]


def require_alike(
    outcome: TestOutcome, documents: Mapping[str, ScoredDocuments], bound: float | None, seed: int, builder: Builder
) -> TestOutcome:
    """`invalid`, with the number, where text alone distinguishes the suspect set from what it is compared with.

    Layout, for every set beside it; and words, characters and years (the blind baseline) where a verdict compares it
    with held-out text. The values are in the details, as `layout_auc` and `blind_auc`. Sets of fewer documents than
    folds are left alone.

    Args:
        bound: Of the cross-validated AUC of layout; None: texts of this world are alike by construction, and neither
            is looked at. That of the blind baseline is `INTERPRETABLE_UP_TO`.
    """
    if bound is None:
        return outcome
    compared = {name: documents[name] for name in (SUSPECT, *COMPARED_WITH) if name in documents}
    compared = {name: group for name, group in compared.items() if len(group.texts) >= FOLDS}
    if SUSPECT not in compared or len(compared) < 2:
        return outcome
    has_texts = all(text.strip() for group in compared.values() for text in group.texts)  # recordings may have none
    by_words = has_texts and HELDOUT in compared and outcome.verdict != "score_only"
    key: dict[str, Any] = {"seed": seed, "by words": by_words}
    key |= {name: key_hash([group.texts, group.cluster_ids]) for name, group in compared.items()}
    found = builder.noted("two-sample AUC", key, partial(_two_sample_aucs, compared, seed, by_words=by_words))
    aucs, blind = found["layout"], found["text"]
    outcome = replace(outcome, details=replace(outcome.details, layout_auc=aucs, blind_auc=blind or None))
    reasons = [
        "Layout alone (line breaks, indentation, capitals and the like) tells the suspect from the "
        f"{COMPARED_WITH[name]} set with an AUC of {auc:.3f}; it must be at most {bound:.3f}. Prepare both alike: from "
        "like files, or with cleaning.white_space=normalised."
        for name, auc in aucs.items()
        if auc > bound
    ]
    if blind and max(blind.values()) > INTERPRETABLE_UP_TO:
        kind = max(blind, key=lambda name: blind[name])
        reasons.append(
            f"Text alone ({kind}) distinguishes the suspect from the held-out set with an AUC of {blind[kind]:.3f}; it "
            f"must be at most {INTERPRETABLE_UP_TO}. Give held-out text of the same draw: same source, kind and date."
        )
    return outcome.made_invalid([*reasons, *outcome.warnings]) if reasons else outcome


def _two_sample_aucs(
    groups: Mapping[str, ScoredDocuments], seed: int, *, by_words: bool
) -> dict[str, dict[str, float]]:
    """AUCs of layout, for each set beside the suspect one, and of the blind baseline, for each kind of features."""
    suspect, others = groups[SUSPECT], {name: group for name, group in groups.items() if name != SUSPECT}
    layout = {
        name: layout_auc(suspect.texts, group.texts, num_folds=FOLDS, seed=seed) for name, group in others.items()
    }
    if not by_words:
        return {"layout": layout, "text": {}}
    rng = np.random.default_rng([seed, FOLDS])
    found = blind_between(suspect, groups[HELDOUT], rng, FOLDS, INVERSE_PENALTY)
    return {"layout": layout, "text": {name: kind.auc for name, kind in kinds_of(found).items()}}


def require_planted(audit: Audit, builder: Builder) -> None:
    """Raises ValueError where the recipe of a control names more than a few documents of the set that it is not said to
    have read, or does not name those that it is: controls that read nothing of the set must not find it in their
    general text. A few are let pass, since short documents and their like stand in much text."""
    exposures = Exposures(builder, audit.suspect)
    if not isinstance(audit.method, PlantsControls):
        return
    for role, exposure in audit.method.control_exposures().items():
        read = exposures.occurrences(audit.models[role])
        few = FEW_DOCUMENTS * len(read)
        if not exposure.exposures and sum(map(bool, read)) > few:
            raise ValueError(
                f"{role} must not be trained on the suspect set, but {sum(map(bool, read))} of its {len(read)} "
                "documents are in its training text (world.general, related text, or the base's own text). Remove them "
                "there: otherwise a target that read the set looks like one that did not."
            )
        if exposure.share == 1 and sum(times < exposure.exposures for times in read) > few:
            raise ValueError(
                f"{role} must be trained on the suspect set {exposure.exposures} times, but {sum(map(bool, read))} of "
                f"its {len(read)} documents are in its training text. Name the planted set that is audited "
                "(controls.audited), or plant this one."
            )


def require_unread_third(outcome: TestOutcome, audit: Audit, builder: Builder) -> TestOutcome:
    """`invalid` where the target's recipe says that it read the third text: what it gains there would hide what it
    gains on the suspect set."""
    if THIRD not in audit.groups or truth_about(builder, audit.target, audit.groups[THIRD].corpus) != "member":
        return outcome
    reason = "The target has read the third text, by its recipe. Give text that it has not: data.heldout.path=FILE."
    return outcome.made_invalid([reason, *outcome.warnings])


def compare_weights(outcome: TestOutcome, audit: Audit, builder: Builder) -> TestOutcome:
    """What the method makes of how far the target's weights have moved, where it looks at them."""
    method = audit.method
    if not isinstance(method, PlantsControls) or (compared := method.moved_from(audit.roles)) is None:
        return outcome
    base, others = compared
    at_hand = weights_at_hand(audit.target)
    target = builder.get(WeightChange(audit.target, base)) if at_hand else None
    changes = {role: builder.get(WeightChange(model, base)) for role, model in others.items()} if at_hand else {}
    return method.judged_by_weights(outcome, target, changes)


def cut_warnings(groups: Mapping[str, DocumentGroup], builder: Builder) -> list[str]:
    """How many documents of each group a model reads only the beginning of."""
    warnings = []
    for name, group in groups.items():
        scored = [item for item in group.measured.values() if isinstance(item, Scored) and item.score.asks is None]
        if not scored or not scored[0].model.has_weights:
            continue
        limit = scored[0].max_tokens
        read = builder.get(Read(scored[0].model, group.corpus, limit))
        warnings += read.warnings
        num_cut = sum(read.is_cut)
        if num_cut:
            warnings.append(
                f"{num_cut} of {len(read.parts)} documents of the {set_of(name)} are longer than {limit} tokens "
                "(max_tokens); only their beginnings were read."
            )
    return warnings
