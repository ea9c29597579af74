"""A score of every document under a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import key_hash
from nonmember.checks import returned
from nonmember.corpora.specs import CorpusSpec
from nonmember.models.base import ModelSpec
from nonmember.models.reading import Read, position_limit
from nonmember.models.tokenizing import naming
from nonmember.observations.base import Measured, Measurement, Observation, scored_by_id, texts_of
from nonmember.observations.tokens import AnswerProbabilities, TokenStatistics, token_counts_in
from nonmember.records import TokenTable
from nonmember.records.requirements import Access
from nonmember.scores import DocumentScores, Score, ScoreInputs
from nonmember.scores.base import nll

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel


@dataclass(frozen=True)
class Scored(Measurement):
    """`score` of every document of `corpus` under `model`.

    max_tokens: documents are cut to so many ids.   reference: the model that scores such as ref_ratio compare with.
    counted_in: general text in which DC-PDD counts tokens.   scored_text: a score that reads texts (zlib) is given them
    as far as the model reads them, and not whole.   prefix: texts that the model has certainly not read, which ReCaLL
    puts before each document and RMIA ranks it among.   out_models: have not read the documents; one of them that is
    the model itself is left out.
    """

    role: str
    model: ModelSpec
    corpus: CorpusSpec
    score: Score
    max_tokens: int
    reference: ModelSpec | None = None
    counted_in: CorpusSpec | None = None
    scored_text: bool = False
    prefix: CorpusSpec | None = None
    out_models: tuple[ModelSpec, ...] = ()

    @property
    def access(self) -> Access:
        return access_of(self.score)

    def compared_with(self) -> Mapping[str, ModelSpec]:
        found = {"reference": self.reference} if self.score.needs_reference and self.reference is not None else {}
        if self.score.needs_out_models:
            found |= {f"out-model-{index}": model for index, model in enumerate(self.out_models) if model != self.model}
        return found

    def needs(self) -> Iterable[Spec[Any]]:
        return [*self.observations().values(), *chain.from_iterable(self._of_out_models().values())]

    def observations(self) -> dict[str, Spec[Any]]:
        """What is observed for the score, by the field of `ScoreInputs` that it fills, but for the out-models."""
        score, model, corpus, limit = self.score, self.model, self.corpus, self.max_tokens
        if score.asks is not None:
            return {"tokens": AnswerProbabilities(model, corpus, score.asks, limit)}
        views = [TokenStatistics(model, corpus, view, limit) for view in score.views]
        specs: dict[str, Spec[Any]] = dict(zip(("tokens", "other_view"), views, strict=False))
        if score.needs_reference and self.reference is not None:
            specs["reference"] = TokenStatistics(self.reference, corpus, "original", limit)
        if score.shots and self.prefix is not None:
            specs["behind_prefix"] = BehindPrefix(model, corpus, self.prefix, score.shots, limit)
        if score.needs_population and self.prefix is not None:
            specs["population"] = TokenStatistics(model, self.prefix, "original", limit)
        return specs

    def _of_out_models(self) -> dict[str, list[Spec[Any]]]:
        """As `observations`, a list for each field."""
        if not self.score.needs_out_models:
            return {}
        corpora = {"out_models": self.corpus}
        if self.score.needs_population and self.prefix is not None:
            corpora["population_out_models"] = self.prefix
        return {
            field: [TokenStatistics(model, corpus, "original", self.max_tokens) for model in self._others()]
            for field, corpus in corpora.items()
        }

    def _others(self) -> list[ModelSpec]:
        """The out-models but the model itself."""
        return [model for model in self.out_models if model != self.model]

    def general(self) -> CorpusSpec | None:
        return self.counted_in if self.score.needs_counts else None

    def further_corpora(self) -> Mapping[str, CorpusSpec]:
        return {"prefix": self.prefix} if "unseen" in self.score.requirements.inputs and self.prefix is not None else {}

    def measure(self, builder: Builder) -> Measured:
        inputs = self.inputs(builder)
        scores = self.scores(inputs)
        if len(scores.doc_ids) - len(reasons := scores.reasons) < min(2, len(scores.doc_ids)):
            why = ", ".join(sorted(set(reasons.values())))
            remedy = "longer texts, or another score" if self.score.compares_tokens else "longer texts"
            raise ValueError(
                f"{len(reasons)} of {len(scores.doc_ids)} documents could not be scored ({why}). Give {remedy}."
            )
        if self.score.asks is not None:  # the table is of answers and not of the text
            return Measured(scores)
        tokens = inputs.tokens
        return Measured(scores, nll=float(np.nanmean(nll(tokens))), num_tokens=int(tokens.num_tokens.sum()))

    def scores(self, inputs: ScoreInputs) -> DocumentScores:
        """The score, with the reason of a table that has no rows of a document in place of the score's own."""
        scores = returned(self.score(inputs), self.score, "DocumentScores")
        if scores.doc_ids != inputs.tokens.doc_ids:
            raise ValueError(f"The score {self.score.name} is of other documents than it was given, or reordered them.")
        tables = (inputs.tokens, inputs.other_view, inputs.reference)
        missing = {doc_id: why for table in tables if table is not None for doc_id, why in table.reasons.items()}
        return replace(scores, reasons={doc_id: missing.get(doc_id, why) for doc_id, why in scores.reasons.items()})

    def inputs(self, builder: Builder) -> ScoreInputs:
        """The observations that the score declares it needs."""
        self.model.require(builder, self.access, f"The score {self.score.name}")
        if self.score.needs_reference and self.reference is None:
            raise ValueError(
                f"The score {self.score.name} compares with a reference model; name one (model@reference=...)."
            )
        if self.score.needs_counts and self.counted_in is None:
            raise ValueError(f"The score {self.score.name} counts tokens in general text; name a corpus for it.")
        if (self.score.shots or self.score.needs_population) and self.prefix is None:
            ranks, reads = "ranks documents among unread texts of their kind", "reads unread texts before each document"
            raise ValueError(
                f"The score {self.score.name} {reads if self.score.shots else ranks}; name them: data.unseen in an "
                "audit (+data@data.unseen=documents data.unseen.path=FILE), prefix.path=FILE of nonmember score."
            )
        if self.score.needs_out_models and not self._others():
            given = "the only one given is the target itself" if self.out_models else "none is given"
            raise ValueError(
                f"The score {self.score.name} compares with other models that have not read the documents; {given}. "
                "Name some: out_models=named out_models.paths=[FOLDER,FOLDER], or out_models=controls for those of the "
                "dose meter."
            )
        if self.score.needs_out_models:
            models = [self.model, *self._others()]
            keys = [key_hash(model.key(builder)) for model in models]
            if twice := [model for index, model in enumerate(models) if keys[index] in keys[:index]]:
                raise ValueError(
                    f"Out-models must differ from the target and from one another; {twice[0].readable} is given twice, "
                    "by two paths. Name each model once."
                )
        observed = {field: builder.get(spec) for field, spec in self.observations().items()}
        observed |= {field: tuple(map(builder.get, specs)) for field, specs in self._of_out_models().items()}
        counts = None
        if self.score.needs_counts and self.counted_in is not None:
            limit = getattr(self.score, "max_counted_tokens", None)
            counts = token_counts_in(builder, self.model, self.counted_in, limit)
        texts = self._texts(builder) if self.score.needs_texts else None
        return ScoreInputs(texts=texts, counts=counts, **observed)

    def _texts(self, builder: Builder) -> Sequence[str]:
        """Of a model whose tokenizer is elsewhere nobody knows how far it reads: whole."""
        texts = [document.scored_text for document in builder.get(self.corpus).documents]
        if not self.scored_text or not self.model.has_weights:
            return texts
        return builder.get(Read(self.model, self.corpus, self.max_tokens)).parts


def access_of(score: Score) -> Access:
    """What a model must offer to be scored here: no client collects the largest log-probabilities of every place."""
    access = score.requirements.access
    assert access is not None
    return access if score.asks is not None else max(access, Access.PROMPT_LOGPROBS)


@dataclass(frozen=True)
class BehindPrefix(Observation[TokenTable]):
    """One row per token of the first `max_tokens` tokens of each document, behind the first `num_shots` texts of
    `prefix`, or as many of these as the model reads before its longest document: all documents have the same.

    Texts are joined without anything between, as in the authors' program; what a tokenizer puts before a text stands
    once, before the prefix. Texts of the prefix that are documents of the corpus are left out. Raises ValueError where
    no text of it is left or fits.
    """

    prefix: CorpusSpec
    num_shots: int
    max_tokens: int

    suffix = "behind-prefix"
    table = TokenTable

    def settings(self, builder: Builder) -> dict[str, Any]:
        prefix = {"fingerprint": self.prefix.fingerprint(builder), "num_shots": self.num_shots}
        return {"prefix": prefix, "max_tokens": self.max_tokens}

    def observe(self, builder: Builder, loaded: LoadedModel, folder: Path) -> dict[str, int]:
        from nonmember.models.encoding import encode_pieces
        from nonmember.observations.passes.tokens import observe

        documents = builder.get(self.corpus)
        own = set(texts_of(documents))
        shots = [text for text in texts_of(builder.get(self.prefix)) if text not in own][: self.num_shots]
        if not shots:
            raise ValueError("Every text of the prefix is one of the documents. Give other unread texts.")
        with naming([*("of the prefix" for _ in shots), *documents.doc_ids]):
            front, pieces = encode_pieces(loaded.tokenizer, [*shots, *texts_of(documents)])
        front = [] if documents.has_conversations else front  # their template writes the special tokens
        texts = [ids[: self.max_tokens] for ids in pieces[len(shots) :]]
        most = position_limit(loaded.model.config)
        kept = shots_that_fit(front, pieces[: len(shots)], max(map(len, texts)), most)
        before = [*front, *chain.from_iterable(kept)]
        whole = {  # a text of one token has no loss alone
            doc_id: [*before, *ids] if len(ids) > 1 else []
            for doc_id, ids in zip(documents.doc_ids, texts, strict=True)
        }
        reading = self.reading(builder, folder, f"scoring by {self.model.readable} behind {len(kept)} texts")
        scored = scored_by_id(loaded, documents, self.max_tokens)
        if scored is not None:
            scored = {doc_id: [*(False for _ in before), *scored[doc_id]] for doc_id in whole}
        model, num_context = builder.model_for_trainer(loaded.model), dict.fromkeys(whole, len(before))
        return observe(model, whole, reading, num_context=num_context, scored=scored)


def shots_that_fit(
    front: Sequence[int], shots: Sequence[Sequence[int]], longest: int, most: int | None
) -> list[Sequence[int]]:
    """The first texts that can be read before the longest document. (The authors reckon with the mean length.)"""
    kept: list[Sequence[int]] = []
    room = float("inf") if most is None else most - longest - len(front)
    for ids in filter(len, shots):
        if len(ids) > room:
            break
        room -= len(ids)
        kept.append(ids)
    if not kept:
        raise ValueError(
            f"No text of the prefix fits before a document of {longest} tokens: the model reads {most}. Give shorter "
            "unread texts first, or lower max_tokens."
        )
    return kept
