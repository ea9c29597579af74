"""One file per method of the literature."""

from nonmember.endpoints.asked import Asked
from nonmember.methods.auto import Auto
from nonmember.methods.base import DocumentGroup, Method, Roles, ScoredDocuments, TestOutcome, method_named
from nonmember.methods.blind import Blind
from nonmember.methods.canary import CanaryTest
from nonmember.methods.decop.decop import Decop, DecopBaselines
from nonmember.methods.difference_in_differences import DifferenceInDifferences
from nonmember.methods.dose.dose import Dose
from nonmember.methods.extraction import ExtractionTest
from nonmember.methods.fsd import Fsd
from nonmember.methods.holdout import Holdout
from nonmember.methods.identifiers import IdentifierTest
from nonmember.methods.kds import Kds
from nonmember.methods.levels import Levels
from nonmember.methods.llm_di import LlmDi
from nonmember.methods.mc_pdd.groups import McPddGroups
from nonmember.methods.mc_pdd.mc_pdd import McPdd, McPddContaminated
from nonmember.methods.name_cloze import NameCloze
from nonmember.methods.order import OrderTest
from nonmember.methods.pacost import Pacost
from nonmember.methods.paired_t import PairedT
from nonmember.methods.prefix_completion import PrefixCompletion
from nonmember.methods.prism.prism import Prism
from nonmember.methods.prism.ranks import RankAgreement, RankShift
from nonmember.methods.sampled_completion import SampledCompletion
from nonmember.observations import Diverged, Embedded, Measurement, Reordered, Scored
from nonmember.records.requirements import Access, Requirements

__all__ = [
    "Access",
    "Asked",
    "Auto",
    "Blind",
    "CanaryTest",
    "Decop",
    "DecopBaselines",
    "DifferenceInDifferences",
    "Diverged",
    "DocumentGroup",
    "Dose",
    "Embedded",
    "ExtractionTest",
    "Fsd",
    "Holdout",
    "IdentifierTest",
    "Kds",
    "Levels",
    "LlmDi",
    "McPdd",
    "McPddContaminated",
    "McPddGroups",
    "Measurement",
    "Method",
    "NameCloze",
    "OrderTest",
    "Pacost",
    "PairedT",
    "PrefixCompletion",
    "Prism",
    "RankAgreement",
    "RankShift",
    "Reordered",
    "Requirements",
    "Roles",
    "SampledCompletion",
    "Scored",
    "ScoredDocuments",
    "TestOutcome",
    "method_named",
]
