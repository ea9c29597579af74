"""What a reader of a result is to be warned of, beside what the method itself warns of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nonmember.artifacts import Builder
from nonmember.audits.distilled import share_read_alike
from nonmember.audits.measuring import MeasuredGroup
from nonmember.audits.preconditions import cut_warnings, units_of
from nonmember.audits.question import UNSEEN, Audit
from nonmember.audits.walk import specs_in
from nonmember.checks import first_few
from nonmember.corpora.transforms.cleaning import Prepared, normalise
from nonmember.methods.base import SampledMethod
from nonmember.models import ModelSpec
from nonmember.models.exposure import truth_about
from nonmember.models.tokenizing import SMALLEST_SHARED_VOCABULARY
from nonmember.observations import Scored
from nonmember.records.groups import HELDOUT, SUSPECT, set_of
from nonmember.results import answers
from nonmember.results.result import LOWERED, Health

AS_LARGE = 0.95  # of the target's parameters; an adapter adds less than the rest


def warnings_about(
    audit: Audit, measured: Mapping[str, MeasuredGroup], health: Health, rows: Iterable[answers.Row], builder: Builder
) -> Iterator[str]:
    """rows: what the models answered, where the method asks any."""
    yield from _capability_warnings(health.capability)
    yield from _tokenizer_warnings(audit, builder)
    yield from _health_warnings(health.training, audit.models)
    yield from _unseen_warnings(audit, builder)
    yield from _out_model_warnings(audit, builder)
    yield from _failed_warnings(measured)
    yield from answers.warnings_about(rows)
    yield from builder.warnings()
    yield from _blank_warnings(audit, builder)
    yield from _repeated_warnings(audit, builder)
    yield from _cluster_warnings(audit, builder)
    if audit.scored_text:
        yield from cut_warnings(audit.groups, builder)


def _capability_warnings(capability: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    if "reference" not in capability:
        return
    target, reference = capability["target"], capability["reference"]
    if not {"num_parameters"} <= reference.keys() & target.keys():  # one can only be asked
        return
    if reference["num_parameters"] < AS_LARGE * target["num_parameters"]:
        yield (
            f"The reference is smaller than the target ({reference['num_parameters']:,.0f} against "
            f"{target['num_parameters']:,.0f} parameters): weak references clear models that did read the documents "
            "(PRISM, table 5). Run the positive control: a model trained on the documents."
        )


def _tokenizer_warnings(audit: Audit, builder: Builder) -> Iterator[str]:
    """Of a reference with another tokenizer, where the method lets one pass."""
    models = [model for role in ("target", "reference") if (model := audit.models.get(role)) and model.has_weights]
    if len(models) < 2:
        return
    share = share_read_alike(models, audit.suspect, audit.method.max_tokens, builder)
    if share < SMALLEST_SHARED_VOCABULARY:
        tokenizers = [model.load_tokenizer(builder) for model in models]
        named = " and ".join(
            f"{model.readable}'s ({type(tokenizer).__name__}, {len(tokenizer):,} entries)"
            for model, tokenizer in zip(models, tokenizers, strict=True)
        )
        yield (
            f"Target and reference have different tokenizers, {named}: {share:.1%} of the suspect set's tokens are the "
            "same. A score is a mean over a model's own tokens, so a difference between the models is also one between "
            "their tokenizers. Prefer a reference with the target's tokenizer."
        )


def _health_warnings(health: Mapping[str, float], models: Mapping[str, ModelSpec]) -> Iterator[str]:
    made = "distilled reference" if "distilled" in models else "tuned model"
    for name, what in LOWERED.items():
        before, after = health.get(f"{name}_before"), health.get(f"{name}_after")
        if before is not None and after is not None and not after < before:
            yield f"The {made}'s {what} did not fall ({before:.3f} to {after:.3f} nats per token)."


def _failed_warnings(measured: Mapping[str, MeasuredGroup]) -> Iterator[str]:
    for group, item in measured.items():
        for name, reasons in item.failed.items():
            listed = ", ".join(f"{reason}: {number}" for reason, number in reasons.items())
            yield f"{sum(reasons.values())} questions of {name} about the {set_of(group)} have no answer ({listed})."


def _blank_warnings(audit: Audit, builder: Builder) -> Iterator[str]:
    """Of all texts that the audit rests on."""
    texts = {"suspect": audit.suspect, "held-out": audit.heldout, "unseen": audit.unseen, "general": audit.general}
    prepared = [item for item in specs_in(list(audit.groups.values())) if isinstance(item, Prepared)]
    for number, corpus in enumerate(prepared):
        if corpus not in prepared[:number] and (blank := corpus.blank_ids(builder)):
            name = next((name for name, text in texts.items() if corpus in specs_in(text)), "further")
            yield f"Blank documents of the {name} text were left out ({len(blank)}): {first_few(blank)}."


def _repeated_warnings(audit: Audit, builder: Builder) -> Iterator[str]:
    """Of texts that are given twice, in one set or in two."""
    corpora = {name: group.corpus for name, group in audit.groups.items()}
    if any(isinstance(item, Scored) and item.further_corpora() for item in audit.measurements):
        corpora |= {} if audit.unseen is None else {UNSEEN: audit.unseen}
    # Of recorded answers the texts are not at hand.
    texts = {
        name: [normalise(item.text) for item in builder.get(given).documents if item.text]
        for name, given in corpora.items()
    }
    for name, (number, distinct) in units_of(audit, builder).items():
        if distinct < number:
            yield (
                f"{number - distinct} of {number} documents of the {set_of(name)} are near copies of others, and the "
                "test treats all as independent. Leave them out, as by cleaning=deduplicated."
            )
    for name in (HELDOUT, UNSEEN):
        if num_shared := len(set(texts[SUSPECT]).intersection(texts.get(name, ()))):
            yield (
                f"{num_shared} texts of the suspect set are in the {set_of(name)} too, which hides what differs "
                "between them. Give text that is not in question."
            )
    if num_shared := len(set(texts.get(HELDOUT, ())).intersection(texts.get(UNSEEN, ()))):
        yield (
            f"{num_shared} texts of the {set_of(HELDOUT)} are in the {set_of(UNSEEN)} too, so that it is not treated "
            "as the suspect set is. Give other unread text."
        )


def _cluster_warnings(audit: Audit, builder: Builder) -> Iterator[str]:
    if not isinstance(audit.method, SampledMethod) or audit.method.sampling_unit == "cluster":
        return
    for name in (item for item in (SUSPECT, HELDOUT) if item in audit.groups):
        documents = builder.get(audit.groups[name].corpus).documents
        clusters = [item.cluster_id for item in documents if item.cluster_id]
        if len(clusters) > (number := len(set(clusters))):
            yield (
                f"{len(clusters)} documents of the {set_of(name)} belong to {number} clusters, and the test treats all "
                "as independent: p is too small. Set method.sampling_unit=cluster, or give one document of each."
            )


def _unseen_warnings(audit: Audit, builder: Builder) -> Iterator[str]:
    """What was given as unread and is not, as far as recipes tell."""
    given = audit.groups if audit.target else {}
    for name, what in ((UNSEEN, "that it is tuned on"), (HELDOUT, "given as unread")):
        if name in given and truth_about(builder, audit.target, given[name].corpus) == "member":
            yield f"The target has read the documents {what}."


def _out_model_warnings(audit: Audit, builder: Builder) -> Iterator[str]:
    """Of models that were given as unread and are not, as far as recipes tell."""
    texts = {name: group.corpus for name, group in audit.groups.items()}
    for role, model in audit.compared_with().items():
        if role == "reference":
            continue
        if read := [name for name, corpus in texts.items() if truth_about(builder, model, corpus) == "member"]:
            yield f"The out-model {model.readable} has read documents of: {', '.join(read)}. Leave it out."
