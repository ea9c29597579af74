"""One file per method of the literature."""

from nonmember.methods.base import (
    Access,
    Asked,
    Diverged,
    DocumentGroup,
    Embedded,
    Measurement,
    Method,
    Reordered,
    Roles,
    Scored,
    ScoredDocuments,
    TestOutcome,
    method_named,
)
from nonmember.methods.blind import Blind
from nonmember.methods.clearance import Clearance
from nonmember.methods.decop import Decop
from nonmember.methods.decop_baselines import DecopBaselines
from nonmember.methods.fsd import Fsd
from nonmember.methods.kds import Kds
from nonmember.methods.llm_di import LlmDi
from nonmember.methods.mc_pdd import McPdd
from nonmember.methods.mc_pdd_contaminated import McPddContaminated
from nonmember.methods.mc_pdd_groups import McPddGroups
from nonmember.methods.name_cloze import NameCloze
from nonmember.methods.order import OrderTest
from nonmember.methods.pacost import Pacost
from nonmember.methods.pacost_qa import PacostQa
from nonmember.methods.paired_t import PairedT
from nonmember.methods.prefix_completion import PrefixCompletion
from nonmember.methods.prism import Prism
from nonmember.methods.rank_agreement import RankAgreement
from nonmember.methods.rank_shift import RankShift

__all__ = [
    "Access",
    "Asked",
    "Blind",
    "Clearance",
    "Decop",
    "DecopBaselines",
    "Diverged",
    "DocumentGroup",
    "Embedded",
    "Fsd",
    "Kds",
    "LlmDi",
    "McPdd",
    "McPddContaminated",
    "McPddGroups",
    "Measurement",
    "Method",
    "NameCloze",
    "OrderTest",
    "Pacost",
    "PacostQa",
    "PairedT",
    "PrefixCompletion",
    "Prism",
    "RankAgreement",
    "RankShift",
    "Reordered",
    "Roles",
    "Scored",
    "ScoredDocuments",
    "TestOutcome",
    "method_named",
]
