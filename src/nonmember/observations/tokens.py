"""Token statistics: log-probability and moments for every token of a corpus or a view of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nonmember.artifacts import Builder
from nonmember.artifacts.store import Entry, key_hash
from nonmember.corpora.specs import CorpusSpec
from nonmember.corpora.views import BEHIND_END_OF_TEXT, apply_view
from nonmember.models.base import ModelSpec
from nonmember.models.tokenizing import naming
from nonmember.observations.base import Observation, require_plain, scored_by_id, texts_of
from nonmember.records import Corpus, Prompt, Question, TokenTable
from nonmember.scores import token_counts

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel

NOT_REACHED = "no scored token: the assistant says nothing within the tokens that are read"


@dataclass(frozen=True)
class TokenStatistics(Observation[TokenTable]):
    """One row per scored token of `view` of the corpus, of the first `max_tokens` tokens of each document."""

    view: str
    max_tokens: int

    table = TokenTable

    @property
    def readable(self) -> str:
        return f"{self.model.readable}-{self.view}"

    def settings(self, builder: Builder) -> dict[str, Any]:
        return {"view": self.view, "max_tokens": self.max_tokens}

    def observe(self, builder: Builder, loaded: LoadedModel, folder: Path) -> dict[str, int]:
        from nonmember.models.encoding import encode_behind_end_of_text, encode_corpus
        from nonmember.observations.passes.tokens import observe

        shown = apply_view(builder.get(self.corpus), self.view)
        encode = encode_behind_end_of_text if self.view == BEHIND_END_OF_TEXT else encode_corpus
        if self.view == BEHIND_END_OF_TEXT:
            require_plain(shown, "An end-of-text token is put before")
        return observe(
            builder.model_for_trainer(loaded.model),
            dict(zip(shown.doc_ids, encode(loaded, shown, self.max_tokens), strict=True)),
            self.reading(builder, folder, f"scoring by {self.model.readable}"),
            scored=scored_by_id(loaded, shown, self.max_tokens),
        )

    def load(self, builder: Builder, entry: Entry) -> TokenTable:
        table, corpus = super().load(builder, entry), builder.get(self.corpus)
        if not corpus.has_conversations:
            return table
        empty = np.flatnonzero(table.num_tokens == 0)
        return replace(table, reasons={corpus.doc_ids[index]: NOT_REACHED for index in empty})

    def build(self, builder: Builder) -> TokenTable:
        shown = apply_view(builder.get(self.corpus), self.view)
        require_plain(shown, f"{self.model.readable} gives log-probabilities of")
        return self.model.token_table(builder, shown, self.max_tokens)


@dataclass(frozen=True)
class AnswerProbabilities(Observation[TokenTable]):
    """How probable the model finds each of a question's answers about each document: one row per answer.

    max_tokens: of a document, without the prompt around it.
    """

    question: Question
    max_tokens: int

    suffix, cannot = "answers", "be asked"
    table = TokenTable

    def settings(self, builder: Builder) -> dict[str, Any]:
        return {"question": asdict(self.question), "max_tokens": self.max_tokens}

    def observe(self, builder: Builder, loaded: LoadedModel, folder: Path) -> dict[str, int]:
        from nonmember.models.prompting import answer_ids
        from nonmember.observations.passes.tokens import observe_answers

        prompts = prompts_about(loaded, builder.get(self.corpus), self.question, self.max_tokens, num_new_tokens=1)
        return observe_answers(
            builder.model_for_trainer(loaded.model),
            prompts,
            answer_ids(loaded.tokenizer, self.question),
            self.reading(builder, folder, f"asking {self.model.readable}"),
        )

    def build(self, builder: Builder) -> TokenTable:
        return self.model.answer_table(builder, builder.get(self.corpus), self.question, self.max_tokens)


def prompts_about(
    loaded: LoadedModel, corpus: Corpus, prompt: Prompt, max_tokens: int, *, num_new_tokens: int
) -> Mapping[str, list[int]]:
    """Document id -> ids of the prompt about it. Texts are cut, never the prompt around them."""
    from nonmember.models.prompting import prompt_ids, room_for_text, shortened

    require_plain(corpus, "Questions are asked about")
    tokenizer = loaded.tokenizer
    room = room_for_text(tokenizer, loaded.model, prompt, num_new_tokens=num_new_tokens)
    limit = max_tokens if room is None else min(max_tokens, room)
    with naming(corpus.doc_ids):
        texts = shortened(tokenizer, texts_of(corpus), limit)
        return dict(zip(corpus.doc_ids, prompt_ids(tokenizer, prompt, texts), strict=True))


def token_counts_in(
    builder: Builder, model: ModelSpec, corpus: CorpusSpec, max_tokens: int | None = None
) -> npt.NDArray[np.int64]:
    """[V] how often each of the model's token ids occurs in a general corpus, among the first `max_tokens` of each
    document. Models with one tokenizer share it in memory, and so do the parts of a streamed corpus."""
    from nonmember.models.encoding import encode_corpus

    loaded = builder.get(model)
    vocab_size = loaded.model.config.get_text_config().vocab_size

    def counted() -> npt.NDArray[np.int64]:
        return token_counts(encode_corpus(loaded, builder.get(corpus), max_tokens), vocab_size)

    backend = getattr(loaded.tokenizer, "backend_tokenizer", None)
    if backend is None:
        return counted()
    counts = {"tokenizer": backend.to_str(), "vocab_size": vocab_size, "max_tokens": max_tokens}
    name = key_hash(counts | {"corpus": corpus.fingerprint(builder)})
    kept = builder.memory
    return builder.resource(("token counts", name), lambda: kept.get("token counts", name, counted, at_most=4))
