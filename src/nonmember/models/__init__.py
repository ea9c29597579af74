"""Models: kinds, loading, the forward pass, prompting."""

from nonmember.models.base import ModelSpec, label_of
from nonmember.models.conversations import Rendered
from nonmember.models.kinds.in_memory import InMemory
from nonmember.models.kinds.pretrained import Gguf, PackagedGguf, Pretrained, named
from nonmember.models.kinds.scratch import Scratch, TrainedTokenizer
from nonmember.records.requirements import Access

__all__ = [
    "Access",
    "Gguf",
    "InMemory",
    "ModelSpec",
    "PackagedGguf",
    "Pretrained",
    "Rendered",
    "Scratch",
    "TrainedTokenizer",
    "label_of",
    "named",
]
