"""Method selection: which methods apply to what an auditor has, with their measured power and cost."""

from nonmember.advice.advise import Advice, Option, advise
from nonmember.advice.situation import Situation

__all__ = ["Advice", "Option", "Situation", "advise"]
