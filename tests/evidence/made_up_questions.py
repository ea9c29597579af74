"""Audits of every method, about documents and models that are made up."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from made_up_audits import TELLING, Chat

import made_up_methods
import tiny
from made_up_methods import CLOZE, DECOP, FSD, ORDER, PREFIX, PRISM, PRISM_GATES
from nonmember.audits.question import Audit
from nonmember.corpora import Component, CorpusSpec, Mixture, Shuffled
from nonmember.methods import (
    Blind,
    CanaryTest,
    DecopBaselines,
    DifferenceInDifferences,
    Dose,
    ExtractionTest,
    IdentifierTest,
    McPdd,
    PairedT,
    RankAgreement,
    RankShift,
    SampledCompletion,
)
from nonmember.methods.dose.controls import PlantedDoses
from nonmember.methods.dose.gates import DoseGates
from nonmember.methods.dose.panel import BetweenBases, Feature, Panel
from nonmember.records import Corpus, Document
from nonmember.records.exposure import Exposure
from nonmember.scores import (
    Extraction,
    Lira,
    Loss,
    Lowercase,
    MaxK,
    MinK,
    MinKPlusPlus,
    Perplexity,
    ReferenceDifference,
    ReferenceRatio,
    Rmia,
    TopLoss,
    Wbc,
    Zlib,
)
from nonmember.training import Trained

NONE, TWICE, OFTEN = Exposure(1.0, 0), Exposure(1.0, 2), Exposure(1.0, 8)


@dataclass(frozen=True)
class Made(CorpusSpec):
    """Documents of which each has words of its own, which a bundle must not hold."""

    number: int
    name: str
    per_cluster: int = 0
    title: str = ""

    stored: ClassVar[bool] = False

    def build(self, builder: Any) -> Corpus:
        return Corpus(self.documents)

    def identity(self) -> dict[str, Any]:
        return {"kind": "made", "fingerprint": Corpus(self.documents).fingerprint}

    @property
    def documents(self) -> tuple[Document, ...]:
        return _documents(self)


@functools.cache
def _documents(spec: Made) -> tuple[Document, ...]:
    rng = np.random.default_rng(sum(map(ord, spec.name)))
    documents = []
    for index in range(spec.number):
        own = f"{spec.name}zqword{index}"
        words = [*rng.choice(tiny.WORDS, size=8), own, own, *rng.choice(tiny.WORDS, size=3)]
        cluster = f"{spec.name}-book-{index // spec.per_cluster}" if spec.per_cluster else ""
        title = f"{spec.title} {index}" if spec.title else ""
        documents.append(Document(f"{spec.name}-doc-{index}", " ".join(words), cluster, title=title))
    return tuple(documents)


def texts(number: int, name: str, *, per_cluster: int = 0, title: str = "") -> Made:
    return Made(number, name, per_cluster, title)


GENERAL = texts(60, "general")
SUSPECT, CLUSTERED = texts(40, "suspect"), texts(40, "suspect", per_cluster=3)
HELDOUT, UNSEEN, THIRD = texts(36, "heldout"), texts(16, "unseen"), texts(80, "third")
WITH_SHORT = tiny.Texts((*SUSPECT.documents[:-1], Document("suspect-doc-short", "one")))
UNREAD, REFERENCE = (
    Trained(tiny.scratch(seed, GENERAL), tiny.pretraining(), GENERAL, seed=seed, label=label)
    for seed, label in ((1, "target"), (2, "reference"))
)
READ = Trained(UNREAD, tiny.pretraining(), SUSPECT, seed=3, label="reader")
CONTINUED = Trained(UNREAD, tiny.pretraining(), GENERAL, seed=5, label="target")  # of the base of the controls
HEAVY = Trained(UNREAD, tiny.pretraining(), Mixture((Component(SUSPECT, 6),)), seed=3, label="reader")

DOSE = Dose(
    controls=PlantedDoses(
        base=UNREAD,
        own_base=True,
        training=tiny.pretraining(),
        general=GENERAL,
        seeds=[1, 2],
        exposures=[0, 2, 8],
        related=texts(30, "related"),
        related_exposures=[8],
    ),
    panel=Panel(
        {"level": Feature(MinKPlusPlus(0.2), "level"), "slope": Feature(Loss(), "slope")},
        shape=[[1.0, 0.1], [0.1, 0.5]],
        between=None,
        version="test",
        origin="a test",
    ),
    third=THIRD,
    exclude=2,
    exceed=0.25,
    gates=DoseGates(
        min_separation=0.5,
        min_order=0.1,
        min_fit=0.0,
        min_left_out=0.0,
        max_shift=50.0,
        max_weight_ratio=9.0,
        max_base_distance=9.0,
        max_layout_auc=None,
        num_folds=3,
        seed=0,
    ),
    alpha=0.05,
    max_tokens=64,
)
DIFFERENCE = DifferenceInDifferences(Loss(), num_permutations=999, alpha=0.05, max_tokens=64)
EXTRACTION = ExtractionTest(Extraction(4), num_permutations=999, alpha=0.05, max_tokens=64)
LLM_DI = replace(made_up_methods.LLM_DI, tail_fraction=0.1, num_steps=40)
WIDE = replace(PRISM_GATES, min_ce_gain=-1.0, max_nll_rise=9.0)
KNOWING = replace(PRISM, distillation=TELLING, gates=replace(WIDE, max_target_gain=-9.0))
KDS = replace(made_up_methods.KDS, baselines=[Loss()])
MC_PDD = McPdd(
    reference="non_member",
    strategy="max",
    num_words=1,
    show_name=True,
    idf_corpus="own",
    letters_only=False,
    stop_words="english",
    match="whole_word",
    max_new_tokens=200,
    temperature=0.1,
    control=False,
    max_invalid=0.05,
    num_resamples=200,
    sizes=[],
    alpha=0.05,
    max_tokens=512,
)
SAMPLED = SampledCompletion(
    similarity="samia",
    num_samples=2,
    prompt="instruction",
    temperature=1.0,
    most_words=40,
    least_words=4,
    ngram=2,
    max_new_tokens=8,
    seed=0,
    num_permutations=199,
    alpha=0.05,
    max_tokens=64,
)
PACOST = replace(
    made_up_methods.PACOST,
    rephraser=None,
    rephrasings=tiny.Texts(
        tuple(Document(item.doc_id, f"again {item.text}", item.cluster_id) for item in SUSPECT.documents)
    ),
    max_new_tokens=64,
    min_answer_mass=0.5,
    max_tokens=64,
)
BASELINES = DecopBaselines(scores=[MinK(0.2), Zlib()], num_resamples=100, num_few=10, alpha=0.05, max_tokens=64)


def audit(method: Any, **changes: Any) -> Audit:
    plain = Audit(
        CONTINUED if isinstance(method, Dose) else UNREAD,
        REFERENCE,
        SUSPECT,
        method,
        seed=5,
        corpus_label="suspect texts",
        heldout=HELDOUT,
        heldout_label="held out",
        unseen=UNSEEN,
        unseen_label="unseen",
        general=GENERAL,
    )
    return replace(plain, **changes)


def scored(name: str, score: Any) -> Audit:
    return audit(RankAgreement(score, "spearman", 100, alpha=0.05, max_tokens=64), corpus_label=name)


def with_short(number: int, short: int) -> tiny.Texts:
    """Suspect documents, and such as have no token to be scored."""
    return tiny.Texts(
        (*SUSPECT.documents[:number], *(Document(f"suspect-doc-short-{index}", "one") for index in range(short)))
    )


def asked(method: Any, **changes: Any) -> Audit:
    titled = {name: texts(40, name, per_cluster=4, title="Entity") for name in ("suspect", "heldout")}
    return audit(method, target=Chat("chat", 0.8, 0.3), **{**titled, **changes})


def named(number: int, name: str) -> tiny.Texts:
    """Passages in which one name comes twice."""
    names = ["Hartwell", "Pemberton", "Ashcombe", "Wickfield", "Merriman"]
    rows = [
        f"When Mr. {item} came in, the dog was asleep {index}, and nobody had seen {item} before on that day."
        for index in range(number)
        for item in [names[index % len(names)]]
    ]
    return tiny.Texts(
        tuple(Document(f"{name}-doc-{index}", row, f"{name}-book-{index // 4}") for index, row in enumerate(rows))
    )


def decop(*, calibrate: bool = False, title: str = "Book") -> Audit:
    books = {name: texts(24, name, per_cluster=4, title=title) for name in ("suspect", "heldout", "unseen")}
    paraphrases = tiny.Texts(
        tuple(
            Document(f"{item.doc_id}#{number}", f"text {number} of {item.doc_id}", item.cluster_id)
            for corpus in books.values()
            for item in corpus.documents
            for number in (1, 2, 3)
        )
    )
    reading = "probabilities" if calibrate else "text"
    method = replace(DECOP, paraphraser=None, paraphrases=paraphrases, reading=reading, calibrate=calibrate)
    return asked(method, **books)


def single_passages() -> Audit:
    """Each a work of its own, reproduced or not."""
    return asked(PREFIX, **{name: texts(40, name, title="Entity") for name in ("suspect", "heldout")})


def canaries(number: int = 30, *, private: int = 9, read: bool = True, **settings: Any) -> Audit:
    """Of each canary one published variant, which the target has read or not, and some private ones."""
    published, secret = (
        tiny.Texts(
            tuple(
                Document(
                    f"canary-doc-{index}/{variant}",
                    " ".join(
                        [f"zqword{index}x{variant}", *np.random.default_rng([index, variant]).choice(tiny.WORDS, 12)]
                    ),
                    f"canary-book-{index}",
                )
                for index in range(number)
                for variant in variants
            )
        )
        for variants in ([0], range(1, private + 1))
    )
    reader = Trained(UNREAD, tiny.pretraining(), Mixture((Component(published, 6),)), seed=3, label="reader")
    method = CanaryTest(**{"score": Loss(), "commitment": "ab" * 32, "alpha": 0.05} | settings, max_tokens=64)
    return audit(method, target=reader if read else UNREAD, suspect=published, heldout=secret)


def identifiers(*, read: bool = True, seed: int = 5) -> Audit:
    """Each document ends with a string that chance chose; the target has read them or not."""
    rng = np.random.default_rng(3)
    strings = [
        str(uuid.UUID(bytes=rng.bytes(16), version=4)) if index % 2 else rng.bytes(20).hex() for index in range(12)
    ]
    suspect = tiny.Texts(
        tuple(
            Document(f"suspect-doc-{index}", f"zqword{index} {' '.join(rng.choice(tiny.WORDS, 9))} {string}")
            for index, string in enumerate(strings)
        )
    )
    reader = Trained(UNREAD, tiny.pretraining(), Mixture((Component(suspect, 30),)), seed=3, label="reader")
    method = IdentifierTest(9, alpha=0.05, max_tokens=64)
    return audit(method, target=reader if read else UNREAD, suspect=suspect, heldout=None, seed=seed)


def every() -> Iterator[tuple[str, Audit]]:
    """Name -> audit; each method in several settings."""
    yield "prism", audit(PRISM)
    yield "prism of a reader", audit(PRISM, target=READ)
    yield "prism by kendall", audit(replace(PRISM, rank_metric="kendall", num_resamples=60))
    yield "prism with a margin", audit(replace(PRISM, margin=0.05, alpha=0.1))
    yield "prism with clusters", audit(PRISM, suspect=CLUSTERED)
    yield "prism by clusters", audit(replace(PRISM, sampling_unit="cluster"), suspect=CLUSTERED)
    yield "prism with a document too short", audit(PRISM, suspect=WITH_SHORT)
    general, gated = texts(200, "general"), replace(PRISM, gates=PRISM_GATES)
    yield "prism with gates", audit(gated, general=general)
    failing = replace(PRISM, gates=replace(PRISM_GATES, min_ce_gain=3.0))
    yield "prism with gates that fail", audit(failing, general=general)
    yield "prism of few documents", audit(PRISM, suspect=texts(31, "suspect"), seed=9)
    paired = PairedT(MinKPlusPlus(0.2), tiny.distillation(), alpha=0.05, max_tokens=64)
    yield "paired t", audit(paired)
    yield "paired t of min-k", audit(PairedT(MinK(0.3), tiny.distillation(), alpha=0.01, max_tokens=64), target=READ)
    by_clusters = PairedT(MinK(0.3), tiny.distillation(), alpha=0.05, max_tokens=64, sampling_unit="cluster")
    yield "paired t by clusters", audit(by_clusters, suspect=CLUSTERED)
    yield "dose", audit(DOSE, heldout=None)
    yield "dose of a reader", audit(DOSE, target=READ)
    yield "dose with estimated shape", audit(replace(DOSE, panel=replace(DOSE.panel, shape=None)))
    quantities = {"rho": "rank_correlation", "tail": "upper_tail", "spread": "spread"}
    features = {name: Feature(Loss(), quantity) for name, quantity in quantities.items()}
    yield "dose of other features", audit(replace(DOSE, panel=replace(DOSE.panel, features=features, shape=None)))
    other = BetweenBases(covariance=[[0.01, 0.0], [0.0, 0.02]], relative=0.2, df=5.0)
    foreign = replace(DOSE.controls, own_base=False, related=None, related_exposures=())
    yield "dose on another base", audit(replace(DOSE, controls=foreign, panel=replace(DOSE.panel, between=other)))
    file = Shuffled(texts(60, "suspect"), "lines")
    yield "order", audit(ORDER, suspect=file)
    yield "order with control", audit(replace(ORDER, control=True, compat=True), suspect=file)
    agreement = RankAgreement(Loss(), "kendall", 60, alpha=0.05, max_tokens=64)
    yield "rank agreement", audit(agreement)
    yield "rank shift", audit(RankShift(Loss(), 5, 100, alpha=0.05, max_tokens=64))
    shares = MinK(0.2), MaxK(0.3), MinK(0.5, "official"), MinKPlusPlus(0.4, "official")
    beside = Lowercase(), ReferenceDifference(), ReferenceRatio()
    for score in (Perplexity(), TopLoss(5), Zlib(), *shares, *beside):
        yield f"scores {score.name}", scored(score.name, score)
    for score in (Lira(), Rmia()):  # which the verifier does not recompute
        yield f"scores {score.name}", replace(scored(score.name, score), out_models=(REFERENCE, READ))
    yield "llm_di", audit(LLM_DI)
    yield "llm_di, clip", audit(replace(LLM_DI, outliers="clip", perturbations=()))
    yield "llm_di as published", audit(replace(LLM_DI, compat=True, perturbations=()))
    by_clusters = replace(LLM_DI, sampling_unit="cluster", perturbations=())
    yield "llm_di by clusters", audit(by_clusters, suspect=CLUSTERED)
    yield "difference in differences", audit(DIFFERENCE, target=READ)
    yield "difference in differences by windows", audit(replace(DIFFERENCE, score=Wbc(2, 4, 3)), target=READ)
    yield "difference in differences by clusters", audit(DIFFERENCE, suspect=CLUSTERED)
    yield "difference in differences of the reference itself", audit(DIFFERENCE, target=REFERENCE)
    yield "extraction", audit(EXTRACTION, target=HEAVY)
    yield "extraction by clusters", audit(EXTRACTION, suspect=CLUSTERED)
    yield "extraction with a document too short", audit(EXTRACTION, suspect=WITH_SHORT)
    yield "extraction alone", audit(EXTRACTION, heldout=None)
    yield "canaries", canaries()
    yield "canaries that were not read", canaries(read=False, commitment=None)
    yield "identifiers", identifiers()
    yield "identifiers that were not read", identifiers(read=False)
    yield "kds", audit(KDS)
    yield "kds with a document too short", audit(KDS, suspect=WITH_SHORT)
    yield "kds, fixed", audit(replace(KDS, bandwidth="fixed", gamma=1.5))
    yield "fsd", audit(FSD)
    yield "mc_pdd", asked(MC_PDD)
    yield "mc_pdd against text that was read", asked(replace(MC_PDD, reference="member"))
    yield "decop", decop()
    yield "decop, calibrated", decop(calibrate=True)
    yield "decop of works without a title", decop(title="")
    yield "decop baselines", audit(BASELINES, suspect=CLUSTERED)
    yield "name cloze", asked(CLOZE, suspect=named(24, "suspect"), heldout=named(24, "heldout"))
    yield "prefix completion", asked(PREFIX)
    yield "sampled completion", asked(SAMPLED)
    yield "prefix completion alone", asked(PREFIX, heldout=None)
    yield "prefix completion of single passages", single_passages()
    yield "name cloze alone", asked(CLOZE, suspect=named(24, "suspect"), heldout=None)
    yield "pacost", audit(PACOST)
    yield "pacost by clusters", audit(replace(PACOST, sampling_unit="cluster"), suspect=CLUSTERED)
    fewer = tiny.Texts(PACOST.rephrasings.documents[:29])
    yield "pacost of few documents", audit(replace(PACOST, rephrasings=fewer), suspect=texts(34, "suspect"))
    yield "mc_pdd with a control that fails", asked(replace(MC_PDD, control=True))
    telling = replace(PRISM, distillation=TELLING)
    yield "prism that rules out", audit(telling)
    yield "prism of too few documents", audit(telling, suspect=with_short(29, 6))
    yield "prism of many that cannot be scored", audit(telling, suspect=with_short(36, 12))
    yield "prism with gates that rules out", audit(replace(telling, gates=WIDE), general=general)
    yield "prism with too small a Delta", audit(replace(telling, gates=replace(WIDE, min_delta=1.9)), general=general)
    yield "prism of a target that knows the set", audit(KNOWING, general=general)
    yield "prism of the reference itself", audit(gated, target=REFERENCE, general=general)
    yield "dose of a heavy reader", audit(DOSE, target=HEAVY)
    alone = replace(DOSE.controls, related=None, related_exposures=())
    yield "dose of a heavy reader without related text", audit(replace(DOSE, controls=alone), target=HEAVY)
    yield "kds of many", audit(KDS, suspect=texts(210, "suspect"))
    yield "kds of few", audit(KDS, suspect=texts(2, "suspect"))
    yield "paired t of few that can be scored", audit(paired, suspect=with_short(29, 6))
    yield "llm_di of few that can be scored", audit(replace(LLM_DI, perturbations=()), suspect=with_short(29, 6))
    yield "rank agreement of few that can be scored", audit(agreement, suspect=with_short(29, 6))
    third = tiny.Texts((*THIRD.documents[:29], *(Document(f"third-doc-short-{index}", "one") for index in range(4))))
    yield "dose beside few that can be scored", audit(replace(DOSE, third=third), heldout=None)
    yield "blind", audit(Blind(num_folds=3, inverse_penalty=1.0, num_resamples=100, alpha=0.05, max_tokens=64))
