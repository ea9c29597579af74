"""Membership known from a model's training recipe."""

from __future__ import annotations

from typing import Literal

from nonmember.artifacts import Builder
from nonmember.corpora.specs import CorpusSpec
from nonmember.models.base import ModelSpec


def truth_about(builder: Builder, target: ModelSpec, suspect: CorpusSpec) -> Literal["member", "non_member"] | None:
    """member where the recipes of the target say that it has read all the documents; non_member where they say all it
    has read, and none of these are among it; None elsewhere."""
    read, is_all = target.texts_read(builder)
    known = [document.text in read for document in builder.get(suspect).documents]
    if all(known):
        return "member"
    return "non_member" if is_all and not any(known) else None
