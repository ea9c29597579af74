"""Settings that this verifier takes into account: those of later versions it cannot know, and it says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from nonmember_verify.bundle import Audit
from nonmember_verify.envelope import plain
from nonmember_verify.methods.conclusion import BOUNDS

FORMAT = 1  # of an audit's question; a change of code that moves results raises it
VERDICTS = ("evidence_of_non_membership", "evidence_of_membership", "inconclusive", "score_only", "invalid")

# Names with dots, of which * stands for anything, and the values that are known where not all are.
_METRIC = "rank_metric=spearman|kendall"
_GATES = " ".join([
    *(f"gates.{name}" for bounds in BOUNDS.values() for name, _ in bounds),
    "gates.kind", "gates.num_folds", "gates.seed", "gates.num_documents", "gates.min_characters",
    "gates.max_characters", "gates.docstrings",
])  # fmt: skip
_EVERY = "method alpha max_tokens sham.*"
_PACOST = "rephraser rephrasings temperature max_new_tokens min_length_ratio max_length_ratio min_answer_mass"
METHOD_SETTINGS: Mapping[str, str] = {
    "clearance": (
        "score.* distillation.* distillation_seeds controls.kind=PlantedControls|SharedControls controls.stand_in.* "
        "controls.training.* controls.general.* controls.readings.share controls.readings.exposures "
        "controls.rotation.share controls.rotation.exposures controls.seeds controls.sets.* controls.audited "
        "controls.deviation controls.deviation_df exclude.kind exclude.share exclude.exposures third shams noise "
        f"{_METRIC} num_resamples content confidence {_GATES}"
    ),
    "decop": (
        "paraphraser paraphrases questions passage_length temperature max_new_tokens num_orders work exam "
        "reading=text|probabilities answer_tokens top_logprobs calibrate min_valid_share num_resamples num_few"
    ),
    "decop_baselines": "scores.* num_resamples num_few",
    "difference_in_differences": "score.*",
    "dose": (
        "controls.kind=PlantedDoses|RotatedDoses controls.base.* controls.own_base controls.training.* "
        "controls.general.* controls.seeds controls.afterwards.* controls.exposures controls.related.* "
        "controls.related_exposures controls.sets.* controls.audited controls.readings.share "
        "controls.readings.exposures controls.family panel.features.*.score "
        "panel.features.*.quantity=level|rank_correlation|upper_tail|slope|spread panel.shape "
        "panel.between.covariance panel.between.relative panel.between.df panel.version panel.origin third exclude "
        f"exceed num_resamples {_GATES}"
    ),
    "fsd": "scores.* training.* view num_resamples validation_share num_folds inverse_penalty compat",
    "kds": "training.* layer bandwidth=per_kernel_median|pre_only|fixed gamma baselines.* fsd.* order_test.* compat",
    "llm_di": (
        "perturbations reference_features outliers=mean|clip|zero|keep tail_fraction fit_size num_splits num_steps "
        "learning_rate equal_variances trim_predictions compat"
    ),
    "mc_pdd": (
        "reference=non_member|member strategy num_words show_name idf_corpus letters_only stop_words match "
        "max_new_tokens temperature control max_invalid num_resamples sizes"
    ),
    "name_cloze": "with_title tagger masked_model.* max_new_tokens min_valid_share num_resamples num_few",
    "order": "num_shards max_examples num_orders window stride control compat",
    "pacost": _PACOST,
    "pacost_qa": f"{_PACOST} max_answer_tokens",
    "paired_t": "score.* distillation.*",
    "prefix_completion": "k threshold thresholds tokenizer new_tokens num_permutations",
    "prism": (
        f"score.* distillation.* {_METRIC} num_resamples margin ladder.kind ladder.rates ladder.num_documents {_GATES}"
    ),
    "rank_agreement": f"score.* {_METRIC} num_resamples",
    "rank_shift": "score.* num_bins num_resamples",
}
_COMPAT = "compat=none|official"
SCORE_SETTINGS: Mapping[str, str] = {
    "Loss": "", "Perplexity": "", "TopLoss": "number", "Zlib": "", "MinK": f"k {_COMPAT}", "MaxK": f"k {_COMPAT}",
    "MinKPlusPlus": f"k {_COMPAT}", "Lowercase": "",
    "Perturbed": "perturbation quantity=ppl_ratio|ppl_difference|loss_ratio|loss_difference",
    "ReferenceDifference": "", "ReferenceRatio": "",
}  # fmt: skip


def unknown_of(audit: Audit) -> list[str]:
    """What of a question and its verdict is not taken into account here. A setting of a later version stands in a
    result only where it has another value than its default."""
    method, form = audit.question["method"], audit.described["identity"]["format"]
    decision = audit.result["verdict"]["decision"]
    return [
        *([f"format {form!r}"] if form != FORMAT else []),
        *([f"verdict {decision!r}"] if decision not in VERDICTS else []),
        *(f"setting {one}" for one in unknown_settings(audit.settings, known_of_method(method))),
    ]


def known_of_method(method: str) -> str:
    """Of a method that is not recomputed, any."""
    return f"{_EVERY} {METHOD_SETTINGS.get(method, '*')}"


def is_known(score: Mapping[str, Any]) -> bool:
    """Whether a score is recomputed here, with all of its settings."""
    kind = plain(score)["kind"]
    return kind in SCORE_SETTINGS and not unknown_settings(score, f"kind name {SCORE_SETTINGS[kind]}")


def unknown_settings(settings: Mapping[str, Any], known: str) -> list[str]:
    """Names of settings, with dots, that are not among the known ones or have no known value."""
    found = []
    choices = {name: values.split("|") if values else None for name, _, values in map(_parts, known.split())}
    for name, value in _leaves(plain(settings)):
        for pattern, values in choices.items():
            nothing = value in (None, [], {}) and pattern.startswith(f"{name}.")  # of what else has settings of its own
            if (nothing or fnmatchcase(name, pattern)) and (values is None or value in values):
                break
        else:
            found.append(name)
    return list(dict.fromkeys(found))


def _parts(known: str) -> tuple[str, str, str]:
    return known.partition("=")


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names and their values; the members of a list share a name."""
    if isinstance(value, dict) and value:
        for inner, one in value.items():
            yield from _leaves(one, f"{name}.{inner}" if name else inner)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for one in value:
            yield from _leaves(one, name)
    else:
        yield name, value
