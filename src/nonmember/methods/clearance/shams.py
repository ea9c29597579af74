"""Counterfeit distilled references: methods run with a substitute that a defender could supply.

PRISM, clearance and the paired t-test take what they are given; only the target's own distilled references are
exchanged, those of controls are the auditor's. With no sham each is the method itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, TypeGuard

from nonmember.checks import Checked, Number
from nonmember.corpora import CorpusSpec
from nonmember.methods.base import DocumentGroup, Measurement, Method, Roles
from nonmember.methods.clearance.clearance import Clearance
from nonmember.methods.paired_t import PairedT
from nonmember.methods.prism.prism import Prism
from nonmember.models import ModelSpec, Noised, label_of
from nonmember.training import Trained
from nonmember.training.recipes import Distillation


@dataclass(frozen=True)
class OnOtherText(Checked):
    """Made by the recipe of distillation, but on text that is not the suspect set."""

    corpus: CorpusSpec
    # Weight of the teacher in place of the recipe's; 0: the teacher is not listened to.
    lambda_: Annotated[float, Number("[0, 1]")]

    def __call__(self, distilled: Trained) -> ModelSpec:
        assert isinstance(distilled.training, Distillation)
        training = replace(distilled.training, lambda_=self.lambda_)
        return replace(distilled, training=training, corpus=self.corpus, label=f"{label_of(distilled)}-on-other-text")


@dataclass(frozen=True)
class Damaged(Checked):
    """The distilled reference with noise on its weights, of `scale` times the standard deviation of each tensor."""

    scale: Annotated[float, Number("(0, inf)")]

    fields_called = "{field} of the noise"

    def __call__(self, distilled: Trained) -> ModelSpec:
        return Noised(distilled, self.scale, distilled.seed)


Sham = OnOtherText | Damaged


@dataclass(frozen=True)
class WithCounterfeitReference(Method):
    sham: Sham | None  # what takes the place of the target's distilled references; None: nothing does

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        def given(measurement: Measurement) -> Measurement:
            model = measurement.model
            return measurement.under(self.sham(model)) if self.sham and _is_distilled(model, roles) else measurement

        return {
            name: replace(group, measured={role: given(measurement) for role, measurement in group.measured.items()})
            for name, group in super().groups(roles).items()  # type: ignore[safe-super]  # that of the method beside
        }


def _is_distilled(model: ModelSpec, roles: Roles) -> TypeGuard[Trained]:
    """Whether it is a distilled reference of the target, and not one of a control."""
    ours = (roles.reference, roles.target, roles.suspect)
    return isinstance(model, Trained) and (model.base, model.teacher, model.corpus) == ours


@dataclass(frozen=True)
class ShamPrism(WithCounterfeitReference, Prism):
    """PRISM with a counterfeit distilled reference."""


@dataclass(frozen=True)
class ShamClearance(WithCounterfeitReference, Clearance):
    """Calibrated clearance with a counterfeit distilled reference for every distillation seed."""


@dataclass(frozen=True)
class ShamPairedT(WithCounterfeitReference, PairedT):
    """The paired t-test with a counterfeit distilled reference."""
