"""nonmember: was this dataset used to train this language model, or was it not?

    import nonmember as nm

    nm.score(texts, model="EleutherAI/pythia-160m")               membership scores, a row per text
    nm.prism_test(reference, target, distilled)                   PRISM's test on three arrays of scores
    nm.audit("prism", target=..., reference=..., documents=...)   one audit, from models and texts to a verdict
    nm.advise(access="weights", documents=150)                    which method could say what with what you have
    nm.make_canaries(texts, "planted", canaries=10)               canaries to publish, for an exact test later
    nm.load_results("outputs/audits")                             finished audits, a row each
    nm.load_scores("outputs/scores/NAME")                         scores of streamed documents, batch by batch
    nm.scores, nm.stats                                           every score and statistic, on arrays

Nothing is imported before it is used.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from nonmember import scores, stats
    from nonmember.api.advising import advise
    from nonmember.api.auditing import audit
    from nonmember.api.planting import make_canaries
    from nonmember.api.prism import prism_test
    from nonmember.api.results import FinishedAudit, load_results, load_scores
    from nonmember.api.scoring import score
    from nonmember.evidence.canaries import PlantedCanaries

__all__ = [
    "FinishedAudit",
    "PlantedCanaries",
    "__version__",
    "advise",
    "audit",
    "load_results",
    "load_scores",
    "make_canaries",
    "prism_test",
    "score",
    "scores",
    "stats",
]

_HOMES = {
    "FinishedAudit": "nonmember.api.results",
    "PlantedCanaries": "nonmember.evidence.canaries",
    "advise": "nonmember.api.advising",
    "audit": "nonmember.api.auditing",
    "load_results": "nonmember.api.results",
    "load_scores": "nonmember.api.results",
    "make_canaries": "nonmember.api.planting",
    "prism_test": "nonmember.api.prism",
    "score": "nonmember.api.scoring",
}


def __getattr__(name: str) -> Any:
    if name in ("scores", "stats"):
        return importlib.import_module(f"nonmember.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'nonmember' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
