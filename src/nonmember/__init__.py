"""nonmember: was this dataset used to train this language model, or was it not?

    import nonmember as nm

    nm.score(texts, model="EleutherAI/pythia-160m")               membership scores, a row per text
    nm.prism_test(reference, target, distilled)                   PRISM's test on three arrays of scores
    nm.audit("prism", target=..., reference=..., documents=...)   one audit, from models and texts to a verdict
    nm.load_results("outputs/audits")                             finished audits, a row each
    nm.scores, nm.stats                                           every score and statistic, on arrays

Nothing is imported before it is used.
"""

from typing import TYPE_CHECKING

from nonmember._lazy import lazily

__version__ = "0.1.0"

if TYPE_CHECKING:
    from nonmember import scores, stats
    from nonmember.api.auditing import audit
    from nonmember.api.prism import PrismTest, prism_test
    from nonmember.api.results import FinishedAudit, load_results
    from nonmember.api.scoring import score

__all__ = [
    "FinishedAudit",
    "PrismTest",
    "__version__",
    "audit",
    "load_results",
    "prism_test",
    "score",
    "scores",
    "stats",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "api.auditing": ["audit"],
        "api.prism": ["PrismTest", "prism_test"],
        "api.results": ["FinishedAudit", "load_results"],
        "api.scoring": ["score"],
        "scores": [],
        "stats": [],
    },
)
