"""The methods as advice sees them: what each may say, its command, and its caution.

What it needs and costs is data of the method's class (`Requirements`) and is read from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from nonmember import methods
from nonmember.advice.situation import Situation
from nonmember.methods import Access, Method, Requirements
from nonmember.methods.base import Claim
from nonmember.records.requirements import INPUTS, Input
from nonmember.scores import Loss, Wbc


@dataclass(frozen=True)
class Need:
    name: str  # field of the situation that gives it
    what: str  # in words, as in "with ..."
    values: tuple[str, ...] = ()  # that will do, the first being what to ask for; none: true

    def met(self, situation: Situation) -> bool:
        if self.name == "reference" and situation.base:  # which has not read them either
            return True
        value = getattr(situation, self.name)
        return value in self.values if self.values else bool(value)


SAME_DRAW = Need("heldout", "unread text of the same draw", ("same_draw",))
SAME_KIND = Need("heldout", INPUTS["heldout"].asked, ("same_draw", "other_date"))
RELATED = Need("related", "related text that the target may have read")
# But general text, which most can get.
NEEDS: Mapping[Input, Need] = {
    name: SAME_KIND if name == "heldout" else Need(name, words.asked)
    for name, words in INPUTS.items()
    if name != "general"
}


@dataclass(frozen=True)
class Cost:
    # trained, read: tokens of the texts, at least; general text comes on top
    trained: int = 0
    read: int = 0
    # requests, asked, answered: to a model behind an endpoint, and their tokens
    requests: int = 0
    asked: int = 0
    answered: int = 0
    controls: int = 0  # models to train, each on the general text with the texts in it
    tuned: int = 0  # further models to train, on the texts alone

    @property
    def models(self) -> int:
        return self.controls + self.tuned

    @property
    def tokens(self) -> int:
        return self.trained + self.read

    @classmethod
    def of(cls, needed: Requirements, situation: Situation) -> Self:
        """Passes by models that are at hand; where they are not, one request a text and pass. Questions are asked about
        each text and held-out text, of which there are as many, with some 100 tokens around the texts shown."""
        tokens, documents, at_hand = situation.all_tokens, situation.documents, situation.access == "weights"
        questions = 2 * needed.questions * documents
        return cls(
            trained=needed.tuned * needed.epochs * tokens,
            read=needed.passes * tokens if at_hand else 0,
            requests=questions + (0 if at_hand else needed.passes * documents),
            asked=round(questions * (needed.shown * situation.tokens + 100))
            + (0 if at_hand else needed.passes * tokens),
            answered=questions * needed.answer_tokens,
            controls=needed.controls,
            tuned=needed.tuned,
        )

    def in_order(self) -> tuple[int, ...]:
        """What is cheaper comes first."""
        return (self.controls, self.requests, self.tuned, self.tokens)


@dataclass(frozen=True)
class Contestant:
    name: str
    title: str
    method: type[Method] | None  # its class; None for scores, which have none
    says: tuple[Claim, ...]  # what its verdict may speak for
    given: str  # what the command says beside target and data
    caution: str  # what a verdict rests on beside the numbers
    setting: str = ""  # of the measured numbers
    variant: str = ""  # what it says to choose this one among the method's settings
    excludes: int = 1  # the least readings that a verdict of non-membership denies
    otherwise: Requirements | None = None  # what it needs, where that is not what the class says
    related: bool = False  # whether it claims membership only where related text is named

    def may_say(self, situation: Situation) -> tuple[Claim, ...]:
        """What its verdict may speak for here."""
        return self.says if situation.related or not self.related else ("non_membership",)

    @property
    def requirements(self) -> Requirements:
        if self.otherwise is not None:
            return self.otherwise
        assert self.method is not None
        return self.method.requirements

    @property
    def needs(self) -> tuple[Need, ...]:
        """What it needs besides access."""
        needed = [NEEDS[name] for name in self.requirements.inputs if name != "general"]
        return tuple(SAME_DRAW if item is SAME_KIND and self.requirements.same_draw else item for item in needed)

    @property
    def planted(self) -> bool:
        """Whether what was measured is by copies of what was planted, not by readings of the set."""
        return "canaries" in self.requirements.inputs

    def cost(self, situation: Situation) -> Cost:
        return Cost.of(self.requirements, situation)


HELDOUT_FILE = "data.heldout.path=FILE"
TITLED = "data.title_field=TITLE data.heldout.title_field=TITLE"
OF_WORKS = f"{HELDOUT_FILE} {TITLED} data.cluster_field=WORK data.heldout.cluster_field=WORK"
OTHER_BASE: tuple[Input, ...] = ("reference", "stand_in", "general")
DIFFERENCE = f"{HELDOUT_FILE} reference.path=REFERENCE"
DEFAULT_SCORE, LOSS = Wbc(), Loss()  # of the difference in differences
PRISM = "reference.path=REFERENCE world.general.path=FILE"
COMPARED = "any difference between the two sets is reported as membership: run method=blind on them first"
PLANTED = "reference.path=REFERENCE method.controls.{}.path={} world.general.path=FILE"
UNREAD_WORKS = "the verdict is about the works as a group, compared with works that are certainly unread"

CONTESTANTS = (
    Contestant(
        "dose",
        "the dose meter, controls of the target's own base",
        methods.Dose,
        ("non_membership", "membership"),
        PLANTED.format("base", "BASE") + " method.controls.own_base=true",
        "a target trained differently from its controls appears to have read the set more or less often than it did",
        setting="own base",
        related=True,
    ),
    Contestant(
        "dose",
        "the dose meter, controls of another base",
        methods.Dose,
        ("non_membership", "membership"),
        PLANTED.format("base", "STAND_IN"),
        "differences between bases were measured only on models of about a million parameters",
        setting="another base",
        related=True,
        otherwise=replace(methods.Dose.requirements, inputs=OTHER_BASE),
    ),
    Contestant(
        "prism",
        "PRISM by losses",
        methods.Prism,
        ("non_membership",),
        PRISM,
        "measured with a sibling of the target as the reference; its own base has less power; a reading that "
        "leaves little beside what the rest of training did may go unseen (docs/studies/prism_power.md)",
        setting="loss",
        variant="score@method.score=loss",
    ),
    Contestant(
        "prism",
        "PRISM",
        methods.Prism,
        ("non_membership",),
        PRISM,
        "measured without gates, and then it often clears sets read once or twice; against the target's own base it "
        "has no power where training taught a new kind of text, nor with a large vocabulary "
        "(docs/studies/prism_power.md)",
    ),
    Contestant(
        "difference_in_differences",
        "the difference in differences",
        methods.DifferenceInDifferences,
        ("membership",),
        DIFFERENCE,
        f"{COMPARED}; the reference must have the target's tokenizer",
        setting=DEFAULT_SCORE.name,
        otherwise=replace(methods.DifferenceInDifferences.requirements, access=DEFAULT_SCORE.requirements.access),
    ),
    Contestant(
        "difference_in_differences",
        "the difference in differences of losses",
        methods.DifferenceInDifferences,
        ("membership",),
        DIFFERENCE,
        COMPARED,
        setting=LOSS.name,
        variant="score@method.score=loss",
    ),
    Contestant(
        "canary",
        "canaries",
        methods.CanaryTest,
        ("membership",),
        "data=canaries data.commitment=HASH",
        "its error rate is exact whatever the model, if the private variants stayed secret; it speaks only of "
        "documents with canaries, which deduplication or a filter may have removed",
    ),
    Contestant(
        "holdout",
        "sealed hold-out",
        methods.Holdout,
        ("membership",),
        "data=holdout data.commitment=HASH",
        "its error rate is exact whatever the model, if the kept documents stayed secret",
    ),
    Contestant(
        "identifiers",
        "natural identifiers",
        methods.IdentifierTest,
        ("membership",),
        "",
        "its error rate is exact whatever the model, if the strings were drawn at random and stand in no other text "
        "that it read; small models keep few",
    ),
    Contestant("llm_di", "LLM dataset inference", methods.LlmDi, ("membership",), HELDOUT_FILE, COMPARED),
    Contestant(
        "order",
        "the order test",
        methods.OrderTest,
        ("membership",),
        "data=ordered",
        "the published order must be exchangeable (not sorted), and if the examples were shuffled in training there is "
        "nothing to detect",
        otherwise=replace(methods.OrderTest.requirements, access=Access.WEIGHTS, documents=100),
    ),
    Contestant(
        "mc_pdd",
        "MC-PDD against unread text",
        methods.McPdd,
        ("membership",),
        f"{HELDOUT_FILE} {TITLED}",
        "any difference between the two sets may look like membership: run method=blind on them first",
    ),
    Contestant(
        "mc_pdd",
        "MC-PDD against text known to be read",
        methods.McPdd,
        ("non_membership",),
        f"method.reference=member {HELDOUT_FILE} {TITLED}",
        "data.heldout is here text of the same kind that is known to be read; the set is only shown to differ from it",
        otherwise=replace(methods.McPdd.requirements, inputs=("known_read", "titles", "follows")),
    ),
    Contestant(
        "decop", "DE-COP", methods.Decop, ("membership",), f"{OF_WORKS} method.paraphraser.path=MODEL", UNREAD_WORKS
    ),
    Contestant("name_cloze", "name cloze", methods.NameCloze, ("membership",), OF_WORKS, UNREAD_WORKS),
    Contestant(
        "prefix_completion",
        "prefix completion",
        methods.PrefixCompletion,
        ("membership",),
        OF_WORKS,
        f"{UNREAD_WORKS}; it detects verbatim memorization; where there are log-probabilities, take extraction",
    ),
    Contestant(
        "extraction",
        "probabilistic extraction",
        methods.ExtractionTest,
        ("membership",),
        HELDOUT_FILE,
        f"{COMPARED}; it detects what the target can be made to write, which one or two readings rarely achieve",
    ),
    Contestant(
        "sampled_completion",
        "sampled completion",
        methods.SampledCompletion,
        ("membership",),
        HELDOUT_FILE,
        "it finds what the target can be made to write: of SmolLM2-135M and Gemma 3 270M 10 of 12 read sets, and "
        "1 of 13 unread ones",
    ),
    Contestant(
        "pacost",
        "PaCoST",
        methods.Pacost,
        ("membership",),
        "method.rephraser.path=MODEL",
        "rephrasing alone lowers confidence, so compare the result with that of the same audit on unread text",
    ),
    Contestant(
        "blind",
        "the blind baseline",
        methods.Blind,
        (),
        HELDOUT_FILE,
        "it uses no model; if its AUC is above .6, no comparison of the two sets is meaningful",
    ),
    Contestant(
        "fsd",
        "FSD",
        methods.Fsd,
        (),
        f"{HELDOUT_FILE} data.unseen.path=FILE",
        "it ranks documents; its AUC can be computed only where membership is known",
    ),
    Contestant("kds", "KDS", methods.Kds, (), "", "a number for comparing sets of the same size"),
    Contestant(
        "score",
        "membership scores",
        None,
        (),
        "",
        "choosing a threshold requires unread text of the same draw",
        otherwise=Requirements(Access.PROMPT_LOGPROBS, passes=2),
    ),
)
