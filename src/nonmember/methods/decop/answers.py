"""DE-COP's summary of the answers about a group of works, and its details in a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from nonmember.endpoints import Answer, Answers
from nonmember.methods.base import ScoredDocuments, units
from nonmember.methods.decop.questions import letter_probabilities
from nonmember.records import FloatArray
from nonmember.stats._arrays import numbered
from nonmember.stats.letter_choice import LETTERS, NONE, BlindGuess, Choices, blind_guesses

_INDEX = {letter: number for number, letter in enumerate(LETTERS)}


@dataclass(frozen=True)
class AnsweredGroup:
    labels: list[str]  # [U] of its works
    # answers, unit_of: by document; the second holds the number of its work
    answers: Sequence[Answers]
    unit_of: list[int]
    choices: Choices

    @classmethod
    def of(cls, documents: ScoredDocuments, group: str, name: str, *, with_probabilities: bool) -> AnsweredGroup:
        """name: of the measurement that asks."""
        labels, answers = units(documents, group), documents.answers[name]
        unit_of = numbered(labels).tolist()
        flat = [(unit, item) for unit, found in zip(unit_of, answers, strict=True) for item in found]
        choices = _choices([unit for unit, _ in flat], [item for _, item in flat], with_probabilities)
        return cls(list(dict.fromkeys(labels)), answers, unit_of, choices)

    @property
    def num_units(self) -> int:
        return len(self.labels)

    def calibrated(self, offsets_L: FloatArray | None) -> Choices:
        """As they were, without offsets."""
        return self.choices if offsets_L is None else self.choices.calibrated(offsets_L)

    def passages(self) -> tuple[list[list[str]], list[int]]:
        """Of the documents of which the options are known: the original and its paraphrases, and the work's number."""
        known = [
            (found[0].request, unit)
            for found, unit in zip(self.answers, self.unit_of, strict=True)
            if found and found[0].request.options
        ]
        return [_original_first(item.options, item.expected) for item, _ in known], [unit for _, unit in known]


def _choices(unit: Sequence[int], answers: Sequence[Answer], with_probabilities: bool) -> Choices:
    probability_QL = None
    if with_probabilities:
        found = [letter_probabilities(item.completion.top_logprobs) for item in answers]
        nothing = [np.nan] * len(LETTERS)
        probability_QL = np.array([item or nothing for item in found], dtype=np.float64).reshape(-1, len(LETTERS))
    return Choices(
        unit_Q=np.array(unit, dtype=np.int64),
        right_Q=np.array([_INDEX[item.request.expected] for item in answers], dtype=np.int64),
        chosen_Q=np.array([_INDEX.get(item.parsed.read, NONE) for item in answers], dtype=np.int64),
        probability_QL=probability_QL,
    )


def _original_first(options: Sequence[str], letter: str) -> list[str]:
    index = _INDEX[letter]
    return [options[index], *options[:index], *options[index + 1 :]]


# What is told --------------------------------------------------------------------------------------------------------


class WorkDetails(TypedDict, total=False):
    """[works] each: name, share of right answers, mean probability of each letter; calibrated where offsets are."""

    name: Sequence[str]
    accuracy: Sequence[float]
    probability: Sequence[Sequence[float]]
    accuracy_calibrated: Sequence[float]
    probability_calibrated: Sequence[Sequence[float]]


def works(group: AnsweredGroup, offsets_L: FloatArray | None) -> WorkDetails:
    values: dict[str, Any] = {"name": [label.partition(":")[2] for label in group.labels]}
    for suffix, choices in _before_and_after(group, offsets_L):
        values[f"accuracy{suffix}"] = choices.accuracy_U().tolist()
        if choices.probability_QL is not None:
            values[f"probability{suffix}"] = choices.probability_UL().tolist()
    return WorkDetails(**values)  # type: ignore[typeddict-item]


class Letters(TypedDict, total=False):
    """Letter -> number."""

    chosen: Mapping[str, float]  # share of the answers
    accuracy: Mapping[str, float]  # where the original stands there
    probability: Mapping[str, float]  # its mean over the answers; calibrated where offsets are
    chosen_calibrated: Mapping[str, float]
    accuracy_calibrated: Mapping[str, float]
    probability_calibrated: Mapping[str, float]


def letters(group: AnsweredGroup, offsets_L: FloatArray | None) -> Letters:
    values: dict[str, Any] = {}
    for suffix, choices in _before_and_after(group, offsets_L):
        values[f"chosen{suffix}"] = by_letter(choices.shares_L())
        values[f"accuracy{suffix}"] = by_letter(choices.accuracy_L())
        if choices.probability_QL is not None:
            values[f"probability{suffix}"] = by_letter(choices.probability_L())
    return Letters(**values)  # type: ignore[typeddict-item]


def well_calibrated(group: AnsweredGroup, offsets_L: FloatArray) -> dict[str, float]:
    """Share of the works of which each letter's mean probability lies in [.15, .35] (the paper's table 12)."""
    return {"before": group.choices.well_calibrated(), "after": group.calibrated(offsets_L).well_calibrated()}


def by_letter(values_L: FloatArray) -> dict[str, float]:
    return dict(zip(LETTERS, values_L.tolist(), strict=True))


def _before_and_after(group: AnsweredGroup, offsets_L: FloatArray | None) -> list[tuple[str, Choices]]:
    """As they were, and with "_calibrated" where there are offsets."""
    after = [] if offsets_L is None else [("_calibrated", group.calibrated(offsets_L))]
    return [("", group.choices), *after]


# The text-only control -----------------------------------------------------------------------------------------------

NO_TEXTS = "The texts are not at hand, so it was not seen whether they give the original away by themselves."


def blind(suspect: AnsweredGroup, clean: AnsweredGroup, alpha: float) -> tuple[dict[str, BlindGuess] | None, list[str]]:
    """How often simple rules pick the original, and what that warns of. None where the texts are not at hand."""
    (first, first_units), (second, second_units) = suspect.passages(), clean.passages()
    if not first or not second:
        return None, [NO_TEXTS]
    guesses = blind_guesses(first, second, numbered(first_units), numbered(second_units))
    warnings = []
    for name, guess in guesses.items():
        picked = (
            f"Without any model, the rule `{name}` picks the original of {guess.first:.1%} of the suspect and "
            f"{guess.second:.1%} of the clean passages"
        )
        if guess.p_groups < alpha:
            warnings.append(f"{picked}: it is easier in one group, and that alone can look like membership.")
        elif min(guess.p_chance_first, guess.p_chance_second) < alpha:
            warnings.append(
                f"{picked}, where chance is 25%: the paraphrases give it away, and a model that never read it may "
                "choose it as well."
            )
    return guesses, warnings
