"""What each contestant needs and costs: of methods as `nonmember advise` knows it, of scores by their passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nonmember.advice.contestants import CONTESTANTS, Contestant, Cost
from nonmember.advice.situation import Situation
from nonmember.models.access import Access

NO_MODEL = "no model"
ACCESS = {
    None: NO_MODEL,
    Access.TEXT: "text",
    Access.TOP_LOGPROBS: "top log-probabilities",
    Access.PROMPT_LOGPROBS: "log-probabilities",
    Access.FULL_LOGITS: "full log-probabilities",
    Access.WEIGHTS: "weights",
}
REFERENCE, HELDOUT, UNSEEN = "unread reference", "held-out text", "more unread text"
BESIDE = {  # by name of a need of `advise`
    "reference": REFERENCE,
    "base": "base of the target",
    "stand_in": "model of the target's size",
    "heldout": HELDOUT,
    "unseen": UNSEEN,
    "order": "order of the file",
    "works": "passages of works",
    "titles": "titles",
    "follows": "a model that follows instructions",
    "rephraser": "a model that rephrases",
    "known_read": "text known to be read",
}
CLAIMS = {"non_membership": "not used", "membership": "used"}
RANKING = "a number"
NOTHING = "nothing"


@dataclass(frozen=True)
class Needs:
    """access: to the target, in words.   beside: what else.   says: what its verdict may speak for, or a number.
    cost: of an audit of a set of the arena's size, where it can be reckoned."""

    access: str
    beside: tuple[str, ...]
    says: str
    cost: Cost | None = None

    @property
    def beside_in_words(self) -> str:
        return ", ".join(self.beside) or NOTHING


def situation_of(documents: int, tokens: int) -> Situation:
    return Situation(access="weights", documents=documents, tokens=tokens)


def advised(method: str) -> Contestant:
    """The first that `advise` has under this name."""
    return next(one for one in CONTESTANTS if one.name == method)


def needs_of_method(method: str, situation: Situation) -> Needs:
    """The paired t, which is not advised, finds PRISM's distilled reference."""
    if method == "paired_t":
        return Needs(ACCESS[Access.FULL_LOGITS], (REFERENCE,), RANKING, advised("prism").cost(situation))
    return needs_of(advised(method), situation)


def needs_of(contestant: Contestant, situation: Situation) -> Needs:
    beside = [BESIDE[need.name] for need in contestant.needs] + (["general text"] if contestant.general else [])
    return Needs(
        ACCESS[contestant.least_access],
        tuple(beside),
        " or ".join(CLAIMS[claim] for claim in contestant.says) or RANKING,
        contestant.cost(situation),
    )


def not_here(entered: Iterable[str]) -> list[Contestant]:
    """What `advise` knows and the arena has no results of: scores are there, and of the dose meter the own base's."""
    here = {*entered, "score"}
    return [one for one in CONTESTANTS if one.name not in here or (one.setting == "another base")]


def of_score(access: Access, passes: int, beside: Sequence[str], situation: Situation) -> Needs:
    """passes: over the documents and what stands beside them."""
    return Needs(ACCESS[access], tuple(beside), RANKING, Cost(read=passes * situation.all_tokens))
