"""What was measured of the methods, as it ships with the package; made by docs/measured_powers.py from docs/results."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

FILE = Path(__file__).with_name("measured.json")
VERSION = 2

Says = Literal["non_membership", "membership", "ranking"]


@dataclass(frozen=True)
class MeasuredPower:
    """Of `of` sets that the target had read `dose` times, `count` got what `says` names: a verdict of non-membership or
    of membership; or (ranking) a statistic above that of all but 5% of the unread ones."""

    method: str
    setting: str  # what the method had besides, where that matters
    says: Says
    dose: int  # of canaries the copies of each
    count: int
    of: int
    # low, high: 95% interval, as the report has it; None where it has none
    low: float | None
    high: float | None
    num_documents: int | None  # of a set; None for one of canaries
    # study, cell: where the number is from
    study: str
    cell: str

    @property
    def share(self) -> float:
        return self.count / self.of


@cache
def all_measured() -> tuple[MeasuredPower, ...]:
    return tuple(MeasuredPower(**item) for item in json.loads(FILE.read_text(encoding="utf-8"))["cells"])


@cache
def measured(method: str, setting: str, says: Says, documents: int = 100) -> dict[int, MeasuredPower]:
    """By how often the target had read the set, rising, of sets of the nearest size by ratio; empty: not measured."""
    found = [item for item in all_measured() if (item.method, item.setting, item.says) == (method, setting, says)]
    sizes = sorted({item.num_documents for item in found if item.num_documents})
    nearest = min(sizes, key=lambda size: abs(math.log(size / documents)), default=None)
    return {item.dose: item for item in sorted(found, key=lambda item: item.dose) if item.num_documents == nearest}
