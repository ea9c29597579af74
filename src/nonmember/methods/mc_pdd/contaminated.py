"""MC-PDD of a target first tuned on some of the documents (figure 5): do hits rise with reading?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from nonmember.checks import require_count
from nonmember.methods.base import (
    Access,
    Bounds,
    Claim,
    DocumentGroup,
    Method,
    Picture,
    Roles,
    ScoredDocuments,
    TestOutcome,
)
from nonmember.methods.mc_pdd.mc_pdd import McPdd
from nonmember.models import label_of
from nonmember.records import Corpus
from nonmember.records.requirements import Requirements
from nonmember.training import Trained
from nonmember.training.recipes import AdapterTuning


@dataclass(frozen=True)
class McPddContaminated(Method):
    """mc_pdd: the test.   training: how the target is tuned on the unseen documents, which may be those of the suspect
    set.   epochs: of that, in place of its own; 0: the target as it is.
    """

    mc_pdd: McPdd
    training: AdapterTuning
    epochs: int
    alpha: float
    max_tokens: int

    name: ClassVar[str] = "mc_pdd_contaminated"
    statistic_name: ClassVar[str] = McPdd.statistic_name
    statistic_bounds: ClassVar[Bounds] = McPdd.statistic_bounds
    picture: ClassVar[Picture] = McPdd.picture
    requirements: ClassVar[Requirements] = replace(
        McPdd.requirements, access=Access.WEIGHTS, inputs=("heldout", "unseen", "titles", "follows"), tuned=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(self.epochs, 0, "epochs")

    @classmethod
    def hypothesis(cls, settings: Mapping[str, Any]) -> tuple[Claim | None, str]:
        return McPdd.hypothesis(settings["mc_pdd"])

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        return self.mc_pdd.groups(replace(roles, target=self.tuned(roles)) if self.epochs else roles)

    def tuned(self, roles: Roles) -> Trained:
        """The target after so many epochs on the unseen documents."""
        optimization = replace(self.training.optimization, epochs=self.epochs)
        return Trained(
            roles.target,
            replace(self.training, optimization=optimization),
            roles.need_unseen(self.name),
            seed=roles.seed,
            label=f"{label_of(roles.target)}-contaminated",
        )

    def check(self, corpora: Mapping[str, Corpus]) -> None:
        self.mc_pdd.check(corpora)

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        return self.mc_pdd.test(documents, rng)
