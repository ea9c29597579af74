"""What methods and scores need: declared on them, read by audits, explanations, advice and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple


class Access(IntEnum):
    """What a method needs of a model; each level includes the lower ones."""

    TEXT = 0
    TOP_LOGPROBS = 1
    PROMPT_LOGPROBS = 2
    FULL_LOGITS = 3
    WEIGHTS = 4


# Models: one that has not read the texts, several such, the target's base, one of its size, one that rephrases. Texts:
# unread of the same kind, more of it, of any kind, known to be read. Facts: the order of a file, passages of works,
# titles, a target that follows instructions, canaries planted before the texts were published,
# a sealed draw of what is published, strings in the texts that were drawn at random.
Input = Literal[
    "reference",
    "out_models",
    "base",
    "stand_in",
    "rephraser",
    "heldout",
    "unseen",
    "general",
    "known_read",
    "order",
    "works",
    "titles",
    "follows",
    "canaries",
    "holdout",
    "identifiers",
]


class Words(NamedTuple):
    """How what is needed is named."""

    asked: str  # where it is missing, as in "needs ..."
    label: str  # in a table


ACCESS: Mapping[Access | None, Words] = {
    None: Words("no model", "no model"),
    Access.TEXT: Words("a model that returns text", "text"),
    Access.TOP_LOGPROBS: Words("log-probabilities of the likeliest next tokens", "top log-probabilities"),
    Access.PROMPT_LOGPROBS: Words("the log-probability of each token of a given text", "log-probabilities"),
    Access.FULL_LOGITS: Words("the weights (full next-token distributions)", "full log-probabilities"),
    Access.WEIGHTS: Words("the weights", "weights"),
}
INPUTS: Mapping[Input, Words] = {
    "reference": Words("a reference model that has certainly not read the texts", "unread reference"),
    "out_models": Words("several models that have certainly not read the texts", "several unread models"),
    "base": Words("the target's base model, which has not read the texts", "base of the target"),
    "stand_in": Words("another model of the target's size that has not read the texts", "model of the target's size"),
    "rephraser": Words("a model for paraphrasing", "a model that rephrases"),
    "heldout": Words("unread text of the same kind", "held-out text"),
    "unseen": Words("further unread text for tuning", "more unread text"),
    "general": Words("general text without the documents", "general text"),
    "known_read": Words("text that the target is known to have read", "text known to be read"),
    "order": Words("the public order of the file", "order of the file"),
    "works": Words("texts that are passages from works (books, papers)", "passages of works"),
    "titles": Words("a title or name for each text", "titles"),
    "follows": Words("a target that follows instructions", "a model that follows instructions"),
    "canaries": Words("canaries that were planted before the texts were published", "canaries planted beforehand"),
    "holdout": Words("texts of which a sealed draw kept a part unpublished", "a sealed hold-out"),
    "identifiers": Words("texts with hashes, UUIDs or keys that were drawn at random", "random identifiers"),
}


@dataclass(frozen=True)
class Requirements:
    """Of a method or a score with its usual settings.

    Attributes:
        access: What the target must offer; None where no model is read.
        documents: The least number in each set.
        inputs: What it takes beside the target and the suspect set, in the order in which it is listed.
        same_draw: Whether held-out text must be of the same draw, and not of another date.
        passes: Over the suspect set, and over held-out text of its size where that is compared, by all models.
        tuned: Models that are trained on the texts alone.
        epochs: Of their training.
        controls: Models that are trained on general text with the texts in it.
        questions: About each text of either set.
        answer_tokens: Of an answer, at most.
        shown: Texts of that length in a question.
    """

    access: Access | None
    documents: int = 1
    inputs: tuple[Input, ...] = ()
    same_draw: bool = False
    passes: int = 0
    tuned: int = 0
    epochs: int = 1
    controls: int = 0
    questions: int = 0
    answer_tokens: int = 0
    shown: float = 1
