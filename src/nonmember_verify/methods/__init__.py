"""The arithmetic of each method a second time, from the scores of its documents.

A method's function adds lines to a report and says what the numbers allow; what it does not look at it says as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nonmember_verify.bundle import Audit
from nonmember_verify.methods import paired_t, prism
from nonmember_verify.methods.conclusion import Conclusion
from nonmember_verify.report import Report

Recompute = Callable[[Audit, Report], Conclusion]

METHODS: Mapping[str, Recompute] = {
    "paired_t": paired_t.recompute,
    "prism": prism.recompute,
}
