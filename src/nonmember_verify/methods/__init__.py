"""The arithmetic of each method a second time, from the scores of its documents.

A method's function adds lines to a report and says what the numbers allow; what it does not look at it says as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nonmember_verify.bundle import Audit
from nonmember_verify.methods import (
    clearance,
    difference_in_differences,
    dose,
    fsd,
    kds,
    llm_di,
    mc_pdd,
    paired_t,
    prism,
    simple,
    works,
)
from nonmember_verify.methods.conclusion import Conclusion
from nonmember_verify.report import Report

Recompute = Callable[[Audit, Report], Conclusion]

METHODS: Mapping[str, Recompute] = {
    "clearance": clearance.recompute,
    "decop": works.decop,
    "decop_baselines": works.decop_baselines,
    "difference_in_differences": difference_in_differences.recompute,
    "dose": dose.recompute,
    "fsd": fsd.recompute,
    "kds": kds.recompute,
    "llm_di": llm_di.recompute,
    "mc_pdd": mc_pdd.recompute,
    "name_cloze": works.name_cloze,
    "order": simple.order,
    "pacost": simple.pacost,
    "pacost_qa": simple.pacost,
    "paired_t": paired_t.recompute,
    "prefix_completion": works.prefix_completion,
    "prism": prism.recompute,
    "rank_agreement": simple.rank_agreement,
    "rank_shift": simple.rank_shift,
}
