"""What an auditor has: access to the target, the documents, and further models and texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, Self

from nonmember.checks import Checked, Count, Number
from nonmember.records.requirements import ACCESS, Access

Offered = Literal["none", "text", "top_logprobs", "logprobs", "weights"]
Heldout = Literal["none", "same_draw", "other_date"]

LEVELS: Mapping[Offered, Access] = {  # but none
    "text": Access.TEXT,
    "top_logprobs": Access.TOP_LOGPROBS,
    "logprobs": Access.PROMPT_LOGPROBS,
    "weights": Access.WEIGHTS,
}


@dataclass(frozen=True)
class Situation(Checked):
    """access: what the target gives.   documents: how many texts are in question.   tokens: of a text, on average.

    heldout: text of the same kind that has certainly not been read: from the same draw, or of another date.   unseen:
    whether there is more of it, for tuning.   related: whether there is text of the set's kind that the target may have
    read, such as other pages of the same documentation.   known_read: whether there is text that the target is known to
    have read.

    reference: a model that has certainly not read the texts.   out_models: several such.   base: the model that the
    target was continued from is at hand (`fine_tuned` says that there is one).   stand_in: another model of the
    target's size that has not read them.

    order: the texts are a file in its public order.   works: they are passages of works (books, papers).   titles: each
    has a title or the name of what it is about.   follows: the target follows instructions.   canaries: some were
    planted in the texts before they were published (`nonmember canary make`).   rephraser: a model that rephrases is at
    hand.

    input_price, output_price: of a million tokens, where requests are paid.
    """

    access: Offered = "none"
    documents: Annotated[int, Count(1)] = 150
    tokens: Annotated[int, Count(1)] = 120
    heldout: Heldout = "none"
    unseen: bool = False
    related: bool = False
    known_read: bool = False
    reference: bool = False
    out_models: bool = False
    base: bool = False
    fine_tuned: bool = False
    stand_in: bool = False
    order: bool = False
    works: bool = False
    titles: bool = False
    follows: bool = False
    canaries: bool = False
    rephraser: bool = False
    input_price: Annotated[float | None, Number("[0, inf)")] = None
    output_price: Annotated[float | None, Number("[0, inf)")] = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Raises ValueError for a name that is none of a situation's."""
        names = [field.name for field in fields(cls)]
        if unknown := [name for name in given if name not in names]:
            raise ValueError(f"{unknown[0]} is not a key of advise; the keys are {', '.join(names)}.")
        return cls(**given)

    @property
    def level(self) -> Access | None:
        """None: no model."""
        return LEVELS.get(self.access)

    @property
    def all_tokens(self) -> int:
        return self.documents * self.tokens

    def in_words(self) -> str:
        given = {"none": "no model", "text": "a model that returns only text", "weights": "the model's weights"}
        model = given.get(self.access) or f"a model that returns {ACCESS[self.level].asked}"
        parts = [model, f"{self.documents:,} texts of about {self.tokens:,} tokens"]
        parts += {
            "none": [],
            "same_draw": ["unread text of the same draw"],
            "other_date": ["unread text of another date"],
        }[self.heldout]
        descriptions = {
            "unseen": "further unread text for tuning",
            "related": "related text that the model may have read",
            "known_read": "text that the model is known to have read",
            "reference": "a reference model that has not read them",
            "out_models": "several models that have not read them",
            "base": "the target's base model",
            "stand_in": "another model of the target's size that has not read them",
            "order": "the public order of the file",
            "works": "texts that are passages from works (books, papers)",
            "titles": "a title for each text",
            "follows": "the model follows instructions",
            "canaries": "canaries in the texts, planted before they were published",
            "rephraser": "a model for paraphrasing",
        }
        parts += [words for name, words in descriptions.items() if getattr(self, name)]
        if self.fine_tuned and not self.base:
            parts.append("the target was fine-tuned, and its base model is not available")
        return "; ".join(parts)
