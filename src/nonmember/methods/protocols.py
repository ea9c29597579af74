"""What some methods say of themselves beside `Method`; who carries out an audit asks by isinstance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from nonmember.corpora import CorpusSpec
from nonmember.methods.base import Claim, Roles, TestOutcome
from nonmember.models import ModelSpec
from nonmember.records.exposure import Exposure


@runtime_checkable
class RunsOthers(Protocol):
    """The question is about models of which the method measures nothing itself."""

    def asked_of(self, roles: Roles) -> Mapping[str, ModelSpec]:
        """By role."""


@runtime_checkable
class ComparesTokens(Protocol):
    """The comparison holds over the same tokens only."""

    def alike_tokenized(self, roles: Roles) -> Sequence[tuple[ModelSpec, ModelSpec]]:
        """Pairs of models that must cut texts into the same tokens."""


@runtime_checkable
class Distils(Protocol):
    """References are distilled from a model on the documents on which they are scored."""

    def distilled_roles(self) -> Mapping[str, Sequence[str]]:
        """Roles of those references, by the role of the model."""


@runtime_checkable
class MayBeGated(Protocol):
    """Gates judge the distilled reference, unless they are off."""

    @property
    def is_gated(self) -> bool:
        """If so, a reference with the target's weights is refused before anything is made; if not, nothing but the
        health that training measures shows that the distilled one is sound."""


@runtime_checkable
class PlantsControls(Protocol):
    """The target is compared with models that were made to read the suspect set so and so often."""

    def control_exposures(self) -> Mapping[str, Exposure]:
        """What each read of the suspect set, by role: so much and no more."""

    def related(self, roles: Roles) -> CorpusSpec | None:
        """Text related to the suspect set; how often each model read it is part of the result."""

    def moved_from(self, roles: Roles) -> tuple[ModelSpec, Mapping[str, ModelSpec]] | None:
        """A model from whose weights those of the target should have moved as far as those of others have.

        Returns:
            That model, and these by role; None where weights are not looked at.
        """

    def judged_by_weights(self, outcome: TestOutcome, target: float | None, others: Mapping[str, float]) -> TestOutcome:
        """The outcome, once it is known how far the weights have moved, as shares of those of that model.

        Args:
            target: None where its weights are not at hand.
        """


@runtime_checkable
class TestsBothClaims(Protocol):
    """A result has a p-value for each answer."""

    @classmethod
    def p_values(cls, p_value: float | None, details: Mapping[str, Any]) -> Mapping[Claim, float]:
        """By what they speak for, one-sided."""
