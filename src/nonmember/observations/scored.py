"""A score of every document under a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonmember.artifacts import Builder, Spec
from nonmember.corpora.specs import CorpusSpec
from nonmember.models.access import Access
from nonmember.models.base import ModelSpec
from nonmember.models.neighbours import neighbours_of
from nonmember.models.reading import Read
from nonmember.observations.base import Measured, Measurement, texts_of
from nonmember.observations.gradients import Gradients
from nonmember.observations.prefixes import BehindPrefix
from nonmember.observations.tokens import AnswerProbabilities, TokenStatistics, token_counts_in
from nonmember.scores import Score, ScoreInputs
from nonmember.scores.base import nll


@dataclass(frozen=True)
class Scored(Measurement):
    """`score` of every document of `corpus` under `model`.

    max_tokens: documents are cut to so many ids.   reference: the model that scores such as ref_ratio compare with.
    counted_in: general text in which DC-PDD counts tokens.   scored_text: a score that reads texts (zlib) is given them
    as far as the model reads them, and not whole.   prefix: texts that the model has certainly not read, which ReCaLL
    puts before each document.
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

    @property
    def access(self) -> Access:
        return access_of(self.score)

    def compared_with(self) -> Iterable[ModelSpec]:
        return (self.reference,) if self.score.needs_reference and self.reference is not None else ()

    def needs(self) -> Iterable[Spec[Any]]:
        if self.score.asks is not None:
            yield AnswerProbabilities(self.model, self.corpus, self.score.asks, self.max_tokens)
            return
        for view in self.score.views:
            yield TokenStatistics(self.model, self.corpus, view, self.max_tokens)
        for model in self.compared_with():
            yield TokenStatistics(model, self.corpus, "original", self.max_tokens)

    def general(self) -> CorpusSpec | None:
        return self.counted_in if self.score.needs_counts else None

    def further_corpora(self) -> Mapping[str, CorpusSpec]:
        return {"prefix": self.prefix} if self.score.shots and self.prefix is not None else {}

    def measure(self, builder: Builder) -> Measured:
        inputs = self.inputs(builder)
        scores = self.score(inputs)
        if len(scores.doc_ids) - len(reasons := scores.reasons) < 2:
            why = ", ".join(sorted(set(reasons.values())))
            raise ValueError(
                f"{len(reasons)} of {len(scores.doc_ids)} documents could not be scored ({why}). Give longer texts."
            )
        if self.score.asks is not None:  # the table is of answers and not of the text
            return Measured(scores)
        tokens = inputs.tokens
        return Measured(scores, nll=float(np.nanmean(nll(tokens))), num_tokens=int(tokens.num_tokens.sum()))

    def inputs(self, builder: Builder) -> ScoreInputs:
        """The observations that the score declares it needs."""
        self.model.require(builder, self.access, f"The score {self.score.name}")
        if (question := self.score.asks) is not None:
            return ScoreInputs(builder.get(AnswerProbabilities(self.model, self.corpus, question, self.max_tokens)))
        if self.score.needs_reference and self.reference is None:
            raise ValueError(
                f"The score {self.score.name} compares with a reference model; name one (model@reference=...)."
            )
        if self.score.needs_counts and self.counted_in is None:
            raise ValueError(f"The score {self.score.name} counts tokens in general text; name a corpus for it.")
        if self.score.shots and self.prefix is None:
            raise ValueError(
                f"The score {self.score.name} reads unread texts before each document; name them: data.unseen in an "
                "audit (+data@data.unseen=documents data.unseen.path=FILE), prefix.path=FILE of nonmember score."
            )
        tables = [
            builder.get(TokenStatistics(self.model, self.corpus, view, self.max_tokens)) for view in self.score.views
        ]
        reference, counts = None, None
        if self.score.needs_reference and self.reference is not None:
            reference = builder.get(TokenStatistics(self.reference, self.corpus, "original", self.max_tokens))
        if self.score.needs_counts and self.counted_in is not None:
            limit = getattr(self.score, "max_counted_tokens", None)
            counts = token_counts_in(builder, self.model, self.counted_in, limit)
        return ScoreInputs(
            tokens=tables[0],
            other_view=tables[1] if len(tables) > 1 else None,
            reference=reference,
            texts=self._texts(builder) if self.score.needs_texts else None,
            counts=counts,
            **self._further(builder),
        )

    def _further(self, builder: Builder) -> dict[str, Any]:
        """What few scores need: further passes of their own."""
        score, model, limit = self.score, self.model, self.max_tokens
        further: dict[str, Any] = {}
        if score.neighbours is not None:
            neighbours = neighbours_of(self.corpus, score.neighbours)
            further["neighbours"] = builder.get(TokenStatistics(model, neighbours, "original", limit))
        if score.shots and self.prefix is not None:
            further["behind_prefix"] = builder.get(BehindPrefix(model, self.corpus, self.prefix, score.shots, limit))
        if score.needs_gradients:
            further["gradients"] = builder.get(Gradients(model, self.corpus, limit))
        return further

    def _texts(self, builder: Builder) -> Sequence[str]:
        """Of a model whose tokenizer is elsewhere nobody knows how far it reads: whole."""
        texts = texts_of(builder.get(self.corpus))
        if not self.scored_text or not self.model.has_weights:
            return texts
        return builder.get(Read(self.model, self.corpus, self.max_tokens)).parts


def access_of(score: Score) -> Access:
    """What a model must offer to be scored."""
    if score.asks is not None:
        return Access.TOP_LOGPROBS
    if score.needs_counts or score.shots or score.needs_gradients:
        return Access.WEIGHTS  # its tokenizer, or its gradients
    return Access.FULL_LOGITS if score.needs_distribution else Access.PROMPT_LOGPROBS
