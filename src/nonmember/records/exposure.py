"""How much of a set of documents a model has read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from nonmember.checks import Checked, Count, Number


@dataclass(frozen=True, order=True)
class Exposure(Checked):
    """What was read of a set.

    Attributes:
        share: Of the set's documents that are read.
        exposures: How often each of these is; 0: the set is not read, and the share is 1.
    """

    share: Annotated[float, Number("(0, 1]")]
    exposures: Annotated[int, Count(0)]

    fields_called = "{field} of a reading"

    @property
    def label(self) -> str:
        return f"{self.exposures}x" if self.share == 1 else f"{self.exposures}x{self.share:.0%}"

    def at_least(self, other: Exposure) -> bool:
        """As many documents as in the other, each as often."""
        return self.share >= other.share and self.exposures >= other.exposures


NOT_READ = Exposure(1.0, 0)
