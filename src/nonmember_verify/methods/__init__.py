"""The arithmetic of each method a second time, from the scores of its documents, where a verdict rests on it.

A method's function adds lines to a report and says what the numbers allow; what it does not look at it says as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nonmember_verify.bundle import Audit
from nonmember_verify.methods import answers, canary, dose, prism, t_tests
from nonmember_verify.report import Report
from nonmember_verify.verdicts import Conclusion


def only_scores(audit: Audit, report: Report) -> Conclusion:
    """Of a method that finds evidence of nothing: its verdict and claim are checked, and not its numbers."""
    report.taken_as_stated(
        f"no verdict rests on the numbers of {audit.question['method']}, which are not computed here a second time",
        "statistic, interval and p",
    )
    return Conclusion("invalid" if audit.result["verdict"]["decision"] == "invalid" else "score_only")


METHODS: Mapping[str, Callable[[Audit, Report], Conclusion]] = {
    "canary": canary.recompute,
    "decop": answers.decop,
    "decop_baselines": only_scores,
    "difference_in_differences": t_tests.difference_in_differences,
    "dose": dose.recompute,
    "extraction": t_tests.extraction,
    "fsd": only_scores,
    "holdout": t_tests.holdout,
    "identifiers": canary.identifiers,
    "kds": only_scores,
    "mc_pdd": answers.mc_pdd,
    "prism": prism.recompute,
    "rank_agreement": only_scores,
    "rank_shift": only_scores,
}
