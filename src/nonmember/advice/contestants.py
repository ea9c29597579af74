"""The methods as advice sees them: what each needs besides access, what it costs, its command, and its caution.

Access, claim and the least number of documents are data of the method's class and are read from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nonmember import methods
from nonmember.advice.situation import Situation
from nonmember.methods import Access, Method
from nonmember.methods.base import Claim


@dataclass(frozen=True)
class Need:
    """name: field of the situation that gives it.   what: in words, as in "with ...".   values: that will do, the first
    being what to ask for; none: true."""

    name: str
    what: str
    values: tuple[str, ...] = ()

    def met(self, situation: Situation) -> bool:
        if self.name == "reference" and situation.base:  # which has not read them either
            return True
        value = getattr(situation, self.name)
        return value in self.values if self.values else bool(value)


REFERENCE = Need("reference", "a reference model that has certainly not read the texts")
BASE = Need("base", "the target's base model, which has not read the texts")
STAND_IN = Need("stand_in", "another model of the target's size that has not read the texts")
SAME_DRAW = Need("heldout", "unread text of the same draw", ("same_draw",))
SAME_KIND = Need("heldout", "unread text of the same kind", ("same_draw", "other_date"))
UNSEEN = Need("unseen", "further unread text for tuning")
ORDER = Need("order", "the public order of the file")
WORKS = Need("works", "texts that are passages from works (books, papers)")
TITLES = Need("titles", "a title or name for each text")
FOLLOWS = Need("follows", "a target that follows instructions")
REPHRASER = Need("rephraser", "a model for paraphrasing")
RELATED = Need("related", "related text that the target may have read")
KNOWN_READ = Need("known_read", "text that the target is known to have read")


@dataclass(frozen=True)
class Cost:
    """trained, read: tokens of the texts, at least; general text comes on top.   controls: models to train, each on the
    general text with the texts in it.   tuned: further models to train, on the texts alone.   requests, asked,
    answered: to a model behind an endpoint, and their tokens."""

    trained: int = 0
    read: int = 0
    requests: int = 0
    asked: int = 0
    answered: int = 0
    controls: int = 0
    tuned: int = 0

    @property
    def models(self) -> int:
        return self.controls + self.tuned

    @property
    def tokens(self) -> int:
        return self.trained + self.read

    def in_order(self) -> tuple[int, ...]:
        """What is cheaper comes first."""
        return (self.controls, self.requests, self.tuned, self.tokens)


@dataclass(frozen=True)
class Contestant:
    """method: its class; None for scores, which have none.   says: what its verdict may speak for.   given: what the
    command says beside target and data.   variant: what it says to choose this one among the method's settings.
    caution: what a verdict rests on beside the numbers.   setting: of the measured numbers.   excludes: the least
    readings that a verdict of non-membership denies.   access, documents: where it takes more than the class says.
    general: whether it takes general text too, which most can get.   related: whether it claims membership only where
    related text is named.
    """

    name: str
    title: str
    method: type[Method] | None
    says: tuple[Claim, ...]
    needs: tuple[Need, ...]
    cost: Callable[[Situation], Cost]
    given: str
    caution: str
    setting: str = ""
    variant: str = ""
    excludes: int = 1
    access: Access | None = None
    documents: int | None = None
    general: bool = False
    related: bool = False

    def may_say(self, situation: Situation) -> tuple[Claim, ...]:
        """What its verdict may speak for here."""
        return self.says if situation.related or not self.related else ("non_membership",)

    @property
    def least_access(self) -> Access | None:
        """None: it reads no model."""
        if self.method is None:
            return Access.PROMPT_LOGPROBS
        return self.access or self.method.target_access

    @property
    def least_documents(self) -> int:
        return self.documents or (1 if self.method is None else self.method.min_documents)


def _passes(number: int, *, tuned: int = 0, epochs: int = 1, controls: int = 0) -> Callable[[Situation], Cost]:
    """Passes over the texts by models that are at hand; one request a text and pass where they are not."""
    return lambda one: Cost(
        trained=tuned * epochs * one.all_tokens, controls=controls, tuned=tuned,
        read=number * one.all_tokens if one.access == "weights" else 0,
        requests=0 if one.access == "weights" else number * one.documents,
        asked=0 if one.access == "weights" else number * one.all_tokens,
    )  # fmt: skip


def _questions(number: int, answer: int) -> Callable[[Situation], Cost]:
    """So many requests a text and held-out text, of which there are as many, with some 100 tokens around the text and
    an answer of so many."""
    return lambda one: Cost(
        requests=2 * number * one.documents,
        asked=2 * number * one.documents * (one.tokens + 100),
        answered=2 * number * one.documents * answer,
    )


HELDOUT_FILE = "data.heldout.path=FILE"
TITLED = "data.title_field=TITLE data.heldout.title_field=TITLE"
OF_WORKS = f"{HELDOUT_FILE} {TITLED} data.cluster_field=WORK data.heldout.cluster_field=WORK"
DIFFERENCE = f"{HELDOUT_FILE} reference.path=REFERENCE"
COMPARED = "any difference between the two sets is reported as membership: run method=blind on them first"
PLANTED = "reference.path=REFERENCE method.controls.{}.path={} world.general.path=FILE"
UNREAD_WORKS = "the verdict is about the works as a group, compared with works that are certainly unread"

CONTESTANTS = (
    Contestant(
        "dose", "the dose meter, controls of the target's own base", methods.Dose, ("non_membership", "membership"),
        (BASE,), _passes(12, controls=10), PLANTED.format("base", "BASE") + " method.controls.own_base=true",
        "a target trained differently from its controls appears to have read the set more or less often than it did",
        setting="own base", general=True, related=True,
    ),
    Contestant(
        "dose", "the dose meter, controls of another base", methods.Dose, ("non_membership", "membership"),
        (REFERENCE, STAND_IN), _passes(12, controls=10), PLANTED.format("base", "STAND_IN"),
        "differences between bases were measured only on models of about a million parameters",
        setting="another base", general=True, related=True,
    ),
    Contestant(
        "clearance", "calibrated clearance, controls of the target's own base", methods.Clearance,
        ("non_membership",), (BASE,), _passes(22, tuned=14, controls=6),
        PLANTED.format("stand_in", "BASE") + " method.controls.deviation=0.015",
        "it rules out eight readings or more, not fewer", setting="own base", excludes=8, general=True,
    ),
    Contestant(
        "clearance", "calibrated clearance, controls of another base", methods.Clearance,
        ("non_membership",), (REFERENCE, STAND_IN), _passes(22, tuned=14, controls=6),
        PLANTED.format("stand_in", "STAND_IN"),
        "it rules out eight readings or more, not fewer", setting="another base", excludes=8, general=True,
    ),
    Contestant(
        "prism", "PRISM", methods.Prism, ("non_membership",), (REFERENCE,), _passes(3, tuned=1),
        "reference.path=REFERENCE world.general.path=FILE",
        "it often clears sets that were read once or twice; in other studies it cleared fewer of the unread sets (19 "
        "of 40 in docs/results/dose, 10 of 24 in docs/results/arena)", general=True,
    ),
    Contestant(
        "difference_in_differences", "the difference in differences", methods.DifferenceInDifferences, ("membership",),
        (SAME_DRAW, REFERENCE), _passes(4), DIFFERENCE, COMPARED, setting="minkpp(0.2)", access=Access.FULL_LOGITS,
    ),
    Contestant(
        "difference_in_differences", "the difference in differences of losses", methods.DifferenceInDifferences,
        ("membership",), (SAME_DRAW, REFERENCE), _passes(4), DIFFERENCE, COMPARED, setting="loss",
        variant="score@method.score=loss",
    ),
    Contestant(
        "llm_di", "LLM dataset inference", methods.LlmDi, ("membership",), (SAME_DRAW,), _passes(2), HELDOUT_FILE,
        COMPARED,
    ),
    Contestant(
        "order", "the order test", methods.OrderTest, ("membership",), (ORDER,), _passes(251), "data=ordered",
        "the published order must be exchangeable (not sorted), and if the examples were shuffled in training there is "
        "nothing to detect", access=Access.WEIGHTS, documents=100,
    ),
    Contestant(
        "mc_pdd", "MC-PDD against unread text", methods.McPdd, ("membership",), (SAME_DRAW, TITLES, FOLLOWS),
        _questions(2, 60), f"{HELDOUT_FILE} {TITLED}",
        "any difference between the two sets may look like membership: run method=blind on them first",
    ),
    Contestant(
        "mc_pdd", "MC-PDD against text known to be read", methods.McPdd, ("non_membership",),
        (KNOWN_READ, TITLES, FOLLOWS), _questions(2, 60), f"method.reference=member {HELDOUT_FILE} {TITLED}",
        "data.heldout is here text of the same kind that is known to be read; the set is only shown to differ from it",
    ),
    Contestant(
        "decop", "DE-COP", methods.Decop, ("membership",), (SAME_KIND, WORKS, TITLES, FOLLOWS, REPHRASER),
        _questions(24, 4), f"{OF_WORKS} method.paraphraser.path=MODEL", UNREAD_WORKS,
    ),
    Contestant(
        "name_cloze", "name cloze", methods.NameCloze, ("membership",), (SAME_KIND, WORKS, TITLES, FOLLOWS),
        _questions(1, 16), OF_WORKS, UNREAD_WORKS,
    ),
    Contestant(
        "prefix_completion", "prefix completion", methods.PrefixCompletion, ("membership",),
        (SAME_KIND, WORKS, TITLES, FOLLOWS), _questions(2, 60), OF_WORKS,
        f"{UNREAD_WORKS}; it detects verbatim memorization",
    ),
    Contestant(
        "pacost", "PaCoST", methods.Pacost, ("membership",), (REPHRASER, FOLLOWS), _questions(2, 1),
        "method.rephraser.path=MODEL",
        "rephrasing alone lowers confidence, so compare the result with that of the same audit on unread text",
    ),
    Contestant(
        "blind", "the blind baseline", methods.Blind, (), (SAME_KIND,), lambda _: Cost(), HELDOUT_FILE,
        "it uses no model; if its AUC is above .6, no comparison of the two sets is meaningful",
    ),
    Contestant(
        "fsd", "FSD", methods.Fsd, (), (SAME_KIND, UNSEEN), _passes(8, tuned=1, epochs=3),
        f"{HELDOUT_FILE} data.unseen.path=FILE",
        "it ranks documents; its AUC can be computed only where membership is known",
    ),
    Contestant(
        "kds", "KDS", methods.Kds, (), (), _passes(2, tuned=1), "", "a number for comparing sets of the same size",
    ),
    Contestant(
        "score", "membership scores", None, (), (), _passes(2), "",
        "choosing a threshold requires unread text of the same draw",
    ),
)  # fmt: skip
