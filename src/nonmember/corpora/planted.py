"""The part of a set that a model is to read: a component of the mixture that it is trained on."""

from __future__ import annotations

from nonmember.corpora.specs import CorpusSpec
from nonmember.corpora.transforms.splits import Component, Part
from nonmember.records.exposure import Exposure

SHARE, SALT = "read", "reading"


def planted_part(corpus: CorpusSpec, exposure: Exposure) -> Component:
    """What is read of a set, as a component of a mixture. Documents are chosen by hash, so that a smaller share is part
    of a larger one."""
    if exposure.share < 1:
        sizes = {SHARE: exposure.share}
        corpus = Part(corpus, take=SHARE, sizes=sizes, by="document", per="corpus", salt=SALT)
    return Component(corpus, exposure.exposures)


def planted_share(corpus: CorpusSpec) -> tuple[CorpusSpec, float]:
    """The set that a corpus was planted from, and the share of it that it is: what `planted_part` was given."""
    if isinstance(corpus, Part) and (corpus.salt, corpus.take) == (SALT, SHARE):
        return corpus.base, float(dict(corpus.sizes)[SHARE])
    return corpus, 1.0
