"""A score of every document under a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry, key_hash
from nonmember.corpora.specs import CorpusSpec
from nonmember.models.base import ModelSpec
from nonmember.models.neighbours import neighbours_of
from nonmember.models.reading import Read, length_of_windows, position_limit
from nonmember.models.tokenizing import naming
from nonmember.observations.base import Measured, Measurement, Observation, parts_of, scored_by_id, texts_of
from nonmember.observations.documents import Gradients
from nonmember.observations.tokens import AnswerProbabilities, TokenStatistics, token_counts_in
from nonmember.records import Document, TokenTable
from nonmember.records.neighbours import name_of_neighbour, text_of_neighbour
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
        if score.reads_whole:
            return {"tokens": WholeTexts(model, corpus)}
        views = [TokenStatistics(model, corpus, view, limit) for view in score.views]
        specs: dict[str, Spec[Any]] = dict(zip(("tokens", "other_view"), views, strict=False))
        if score.needs_reference and self.reference is not None:
            specs["reference"] = TokenStatistics(self.reference, corpus, "original", limit)
        if score.neighbours is not None:
            specs["neighbours"] = TokenStatistics(model, neighbours_of(corpus, score.neighbours), "original", limit)
        if score.shots and self.prefix is not None:
            specs["behind_prefix"] = BehindPrefix(model, corpus, self.prefix, score.shots, limit)
        if score.needs_population and self.prefix is not None:
            specs["population"] = TokenStatistics(model, self.prefix, "original", limit)
        if score.contexts:
            specs["behind_another"] = BehindAnother(model, corpus, score.contexts, limit)
        if score.needs_gradients:
            specs["gradients"] = Gradients(model, corpus, limit)
        return specs

    def _of_out_models(self) -> dict[str, list[Spec[Any]]]:
        """As `observations`, a list for each field."""
        if not self.score.needs_out_models:
            return {}
        models = self._others()
        corpora = {"out_models": self.corpus}
        if self.score.needs_population and self.prefix is not None:
            corpora["population_out_models"] = self.prefix
        return {
            field: [TokenStatistics(model, corpus, "original", self.max_tokens) for model in models]
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
        if len(scores.doc_ids) - len(reasons := scores.reasons) < 2:
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
        scores = self.score(inputs)
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
        if self.score.shots and self.prefix is None:
            raise ValueError(
                f"The score {self.score.name} reads unread texts before each document; name them: data.unseen in an "
                "audit (+data@data.unseen=documents data.unseen.path=FILE), prefix.path=FILE of nonmember score."
            )
        if self.score.needs_population and self.prefix is None:
            raise ValueError(
                f"The score {self.score.name} ranks documents among unread texts of their kind; name them: data.unseen "
                "in an audit (+data@data.unseen=documents data.unseen.path=FILE), prefix.path=FILE of nonmember score."
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
        if not self.scored_text or self.score.reads_whole or not self.model.has_weights:
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

    def observe(self, builder: Builder, loaded: LoadedModel, folder: Path) -> Any:
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
        reading = self.reading(builder, folder, f"observing {self.model.readable} behind {len(kept)} texts")
        scored = _scored_behind(scored_by_id(loaded, documents, self.max_tokens), dict.fromkeys(whole, before))
        model, num_context = builder.model_for_trainer(loaded.model), dict.fromkeys(whole, len(before))
        return observe(model, whole, reading, num_context=num_context, scored=scored)


def _scored_behind(
    scored: Mapping[str, list[bool]] | None, before: Mapping[str, Sequence[int]]
) -> Mapping[str, list[bool]] | None:
    """Of texts that are read behind others. before: name of the whole, which begins with that of the text -> ids."""
    if scored is None:
        return None
    return {name: [*(False for _ in ids), *scored[text_of_neighbour(name)]] for name, ids in before.items()}


@dataclass(frozen=True)
class BehindAnother(Observation[TokenTable]):
    """One row for each token that is scored of a document alone, behind another one of the corpus, which is cut alike;
    for `num_contexts` other ones, one at a time. Pairs are named by `name_of_neighbour`.

    Texts are joined as in `BehindPrefix`. Raises ValueError where there are not two documents, or where the two longest
    do not fit into what the model reads.
    """

    num_contexts: int
    max_tokens: int

    suffix = "behind-another"

    def settings(self, builder: Builder) -> dict[str, Any]:
        return {"behind_another": self.num_contexts, "max_tokens": self.max_tokens}

    def load(self, builder: Builder, entry: Entry) -> TokenTable:
        contexts = contexts_of(builder.get(self.corpus).documents, self.num_contexts)
        return TokenTable.load(parts_of(entry), list(contexts))

    def observe(self, builder: Builder, loaded: LoadedModel, folder: Path) -> Any:
        from nonmember.models.encoding import encode_pieces
        from nonmember.observations.passes.tokens import observe

        documents = builder.get(self.corpus)
        contexts = contexts_of(documents.documents, self.num_contexts)
        with naming(documents.doc_ids):
            front, pieces = encode_pieces(loaded.tokenizer, texts_of(documents))
        front = [] if documents.has_conversations else front
        room = self.max_tokens - len(front)
        ids = {doc_id: piece[:room] for doc_id, piece in zip(documents.doc_ids, pieces, strict=True)}
        most = position_limit(loaded.model.config)
        longest = len(front) + sum(sorted(map(len, ids.values()))[-2:])
        if most is not None and longest > most:
            raise ValueError(
                f"A document behind another takes up to {longest} tokens, and the model reads {most}. Set max_tokens "
                f"to {(most + len(front)) // 2} or less."
            )
        before = {name: [*front, *ids[context]] for name, context in contexts.items()}
        whole = {name: [*items, *ids[text_of_neighbour(name)]] for name, items in before.items()}
        unscored = 0 if front else 1  # alone the first token has nothing before it
        for name, context in contexts.items():
            if len(ids[text_of_neighbour(name)]) <= unscored or not ids[context]:
                whole[name] = []  # no rows
        num_context = {name: len(items) + unscored for name, items in before.items()}
        what = f"observing {self.model.readable} behind {self.num_contexts} other documents each"
        reading = self.reading(builder, folder, what)
        scored = _scored_behind(scored_by_id(loaded, documents, room), before)
        model = builder.model_for_trainer(loaded.model)
        return observe(model, whole, reading, num_context=num_context, scored=scored)

    def expected_tokens(self, builder: Builder) -> int | None:
        alone = super().expected_tokens(builder)
        return None if alone is None else 2 * self.num_contexts * alone


def contexts_of(documents: Sequence[Document], number: int) -> dict[str, str]:
    """Name of a pair -> the document that stands before it: the next one in an order that depends on the ids alone,
    drawn anew for every pair of a document, and of another cluster where documents have clusters. A blank one is none.
    """
    found: dict[str, str] = {}
    for draw in range(number):
        order = sorted(documents, key=lambda item: hashlib.sha256(f"{draw}/{item.doc_id}".encode()).digest())
        for index, document in enumerate(order):
            others = (order[(index + step) % len(order)] for step in range(1, len(order)))
            context = next((item for item in others if _is_context(item, document)), None)
            if context is None:
                raise ValueError(
                    f"There is no document of another work to put before {document.doc_id!r}; the score codec needs "
                    "two or more. Give more documents."
                )
            found[name_of_neighbour(document.doc_id, draw)] = context.doc_id
    return found


def _is_context(item: Document, other: Document) -> bool:
    is_of_one_work = bool(item.cluster_id) and item.cluster_id == other.cluster_id
    return bool(item.text.strip()) and item.text != other.text and not is_of_one_work


def shots_that_fit(
    front: Sequence[int], shots: Sequence[Sequence[int]], longest: int, most: int | None
) -> list[Sequence[int]]:
    """The first texts that can be read before the longest document. (The authors reckon with the mean length.)"""
    kept: list[Sequence[int]] = []
    room = float("inf") if most is None else most - longest - len(front)
    for ids in _not_empty(shots):
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


def _not_empty(shots: Iterable[Sequence[int]]) -> Iterable[Sequence[int]]:
    return (ids for ids in shots if len(ids))


@dataclass(frozen=True)
class WholeTexts(Observation[TokenTable]):
    """One row per token of each document, its first one included, behind a prefix token: the tokenizer's
    beginning-of-text token, else its end-of-text token. Longer documents are read in windows of the model's length
    (`passes.rolling.windows`). Prefix, windows and ids are those of lm-eval 0.4.13 (`loglikelihood_rolling`).
    """

    suffix = "whole"
    table = TokenTable

    def settings(self, builder: Builder) -> dict[str, Any]:
        return {"whole": True}

    def observe(self, builder: Builder, loaded: LoadedModel, folder: Path) -> Any:
        from nonmember.models.encoding import encode_whole
        from nonmember.observations.passes.rolling import observe_windows

        documents = builder.get(self.corpus)
        prefix, sequences = encode_whole(loaded, documents)
        return observe_windows(
            builder.model_for_trainer(loaded.model),
            dict(zip(documents.doc_ids, sequences, strict=True)),
            prefix,
            length_of_windows(loaded.model.config, loaded.tokenizer),
            self.reading(builder, folder, f"observing whole texts under {self.model.readable}"),
        )
