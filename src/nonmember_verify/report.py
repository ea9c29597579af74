"""What was checked, what failed, and what could not be checked: a line for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from nonmember_verify.bundle import Audit

Kind = Literal["ok", "FAILED", "not checked"]

CLOSE = 1e-9  # relative: what other processors and libraries round otherwise
SIZE_OF_P = 0.01  # relative, by which a p-value may differ, however small it is
SAME = 1e-12  # relative: two ways to one p


@dataclass(frozen=True)
class Line:
    kind: Kind
    what: str
    told: str
    as_stated: bool = False  # of the answer of an audit, which was not recomputed
    fields: str = ""  # names that --fields adds

    def __str__(self) -> str:
        text = " ".join(f"{self.what}: {self.told}".split())  # line breaks in a name could imitate lines of this report
        return f"{self.kind:12} {text}"


@dataclass
class Report:
    """where: put before what each line is about, as the cell of an audit."""

    where: str = ""
    lines: list[Line] = field(default_factory=list)

    def under(self, where: str) -> Report:
        """Its lines go to the same list."""
        return Report(where, self.lines)

    def of(self, audit: Audit, audits: Sequence[Audit]) -> Report:
        """Where there are several, their lines say of which they are."""
        return self.under(audit.cell if len(audits) > 1 else "")

    def ok(self, what: str, told: str) -> None:
        self._add("ok", what, told)

    def failed(self, what: str, told: str) -> None:
        self._add("FAILED", what, told)

    def unchecked(self, what: str, why: str, fields: str = "") -> None:
        self._add("not checked", what, why, fields=fields)

    def taken_as_stated(self, why: str, what: str = "statistic, interval, p and verdict") -> None:
        """The answer of an audit was not recomputed."""
        self._add("not checked", what, f"{why}; they are taken as stated", as_stated=True)

    def _add(self, kind: Kind, what: str, told: str, *, as_stated: bool = False, fields: str = "") -> None:
        self.lines.append(Line(kind, f"{self.where}, {what}" if self.where else what, told, as_stated, fields))

    def require(self, what: str, holds: bool, told: str, otherwise: str) -> bool:
        self._add("ok" if holds else "FAILED", what, told if holds else otherwise)
        return holds

    def require_none(self, what: str, problems: Sequence[str], told: str, before: str = "") -> bool:
        """before: what is said before the problems."""
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        return self.require(what, not problems, told, f"{before}{'; '.join(problems[:3])}{more}.")

    def numbers(self, what: str, pairs: dict[str, tuple[Any, Any]], told: str, *, tolerance: float = CLOSE) -> None:
        """pairs: name -> (stated, found). Undefined numbers are None."""
        for name, (stated, found) in pairs.items():
            is_p = name.split()[0] == "p" and isinstance(found, float) and found > 0  # which may be far below CLOSE
            near = agree(stated, found, tolerance=tolerance)
            if not near or (is_p and not math.isclose(stated, found, rel_tol=SIZE_OF_P)):
                self.failed(what, f"{name} is stated as {shown(stated)} and comes out as {shown(found)} ({told}).")
                return
        exactly = all(agree(*pair, tolerance=0.0) for pair in pairs.values())
        digits = "to the last digit" if exactly else f"within {tolerance:g} of it"
        self.ok(what, f"{', '.join(pairs)} {told}, {digits}.")

    @property
    def failures(self) -> list[Line]:
        return [line for line in self.lines if line.kind == "FAILED"]

    @property
    def num_as_stated(self) -> int:
        """Audits of which the answer was not recomputed."""
        return sum(line.as_stated for line in self.lines)


def is_below(alpha: float, stated: float, found: float) -> bool:
    """Whether p is below alpha; the stated one, where both are one but for rounding, as p of ranks may equal alpha."""
    return (stated if math.isclose(stated, found, rel_tol=SAME) else found) < alpha


def is_one_to_one(pairs: Iterable[tuple[Any, Any]]) -> bool:
    known = set(pairs)
    return len(known) == len({first for first, _ in known}) == len({second for _, second in known})


def agree(stated: Any, found: Any, *, tolerance: float = CLOSE) -> bool:
    """Numbers within a relative tolerance (absolute below 1); None and NaN both mean undefined; else equal."""
    stated, found = (None if isinstance(item, float) and item != item else item for item in (stated, found))
    if isinstance(stated, list | tuple) and isinstance(found, list | tuple):
        pairs = zip(stated, found, strict=False)
        return len(stated) == len(found) and all(agree(*pair, tolerance=tolerance) for pair in pairs)
    if isinstance(stated, dict) and isinstance(found, dict):
        names = stated.keys()
        return names == found.keys() and all(agree(stated[name], found[name], tolerance=tolerance) for name in names)
    if all(isinstance(item, int | float) and not isinstance(item, bool) for item in (stated, found)):
        return bool(stated == found or abs(stated - found) <= tolerance * max(1.0, abs(found)))
    return isinstance(stated, bool) == isinstance(found, bool) and bool(stated == found)


def shown(value: Any) -> str:
    if isinstance(value, float):
        return repr(value)
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
