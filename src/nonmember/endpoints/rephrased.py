"""Texts that a model writes for each document of a corpus, and the usable rephrasings among them."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from nonmember.artifacts import Builder
from nonmember.artifacts.store import Entry
from nonmember.checks import Count, Number, require_seed
from nonmember.corpora.specs import DOCUMENTS, FORMAT, CorpusSpec, Transform
from nonmember.corpora.transforms.cleaning import normalise
from nonmember.endpoints.questions import requests_about
from nonmember.models import ModelSpec
from nonmember.observations.tokens import prompts_about
from nonmember.records import Corpus, Document, Prompt
from nonmember.records.answers import Completion
from nonmember.runtime.compute import MIB
from nonmember.runtime.files import write_text_atomically
from nonmember.runtime.processes import process_rank

log = logging.getLogger(__name__)

CUT = "cut.json"  # beside the documents: ids of those whose text was cut


@dataclass(frozen=True)
class Written(CorpusSpec):
    """What `model` writes on `prompt` about each document of `base`; ids, clusters and domains are the base's."""

    base: CorpusSpec
    model: ModelSpec
    prompt: Prompt
    temperature: Annotated[float, Number("[0, 10)")]  # 0 takes the likeliest token
    max_new_tokens: Annotated[int, Count(1)]  # of each text
    max_tokens: Annotated[int, Count(1)]  # a longer document is cut before it is shown
    seed: Annotated[int, require_seed]  # with the document's id, that of its draws
    whole: bool = False  # whether what was written about a document that was cut before it was shown is dropped too

    resumable: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    pool: ClassVar[str] = ""  # of one audit

    @property
    def stored(self) -> bool:  # type: ignore[override]
        """What an endpoint or a record answers is kept by that kind of model, answer by answer."""
        return self.model.has_weights

    @property
    def readable(self) -> str:
        return "written"

    def key(self, builder: Builder) -> dict[str, Any]:
        """What determines the texts, without a model having to write them."""
        return {
            "written": self.settings(),
            "base": self.base.content(builder),
            "model": self.model.key(builder),
            "precision": builder.compute.precision,
        }

    def lookup_key(self, builder: Builder) -> dict[str, Any]:
        return {"format": FORMAT, "corpus": self.key(builder)}

    def parents(self) -> Iterable[ModelSpec]:
        return (self.model,)

    def make(self, builder: Builder, folder: Path) -> dict[str, Any]:
        """Resumable: a stopped run continues where it was."""
        from nonmember.observations.passes.writing import Writing, write

        base, loaded = builder.get(self.base), builder.get(self.model)
        try:
            prompts = prompts_about(loaded, base, self.prompt, self.max_tokens, num_new_tokens=self.max_new_tokens)
            written = write(
                builder.model_for_trainer(loaded.model),
                loaded.tokenizer,
                prompts,
                {doc_id: f"{self.seed}\0{doc_id}" for doc_id in prompts},
                folder,
                builder.compute.trainer,
                Writing(self.temperature, self.max_new_tokens, builder.compute.cache_mib * MIB),
                description=f"writing with {self.model.readable}",
            )
        except ValueError as error:
            raise ValueError(f"{self.model.readable} cannot write. {error}") from error
        corpus = Corpus(tuple(replace(document, text=written[document.doc_id].text) for document in base.documents))
        if process_rank() == 0:
            corpus.save(folder / DOCUMENTS)
            cut = [doc_id for doc_id, item in written.items() if not item.finished]
            write_text_atomically(folder / CUT, json.dumps(cut))
        return {"num_documents": len(corpus), "dropped": {}, "model": self.model.readable}

    def shown(self, builder: Builder) -> list[str]:
        """What the model is shown of each document of `base`: all of it by a model that can only be asked."""
        texts = [document.text for document in builder.get(self.base).documents]
        if not self.stored:
            return texts
        from nonmember.models.prompting import shortened

        return shortened(self.model.load_tokenizer(builder), texts, self.max_tokens)

    def load(self, builder: Builder, entry: Entry) -> Corpus:
        written = Corpus.load(entry.path / DOCUMENTS)
        reasons = dict.fromkeys(json.loads((entry.path / CUT).read_text()), self._is_cut)
        if self.whole:
            both = zip(builder.get(self.base).documents, self.shown(builder), strict=True)
            too_long = f"longer than max_tokens={self.max_tokens}"
            reasons |= {document.doc_id: too_long for document, text in both if document.text != text}
        kept = tuple(document for document in written.documents if document.doc_id not in reasons)
        return self._without(kept, len(written), Counter(reasons.values()))

    def build(self, builder: Builder) -> Corpus:
        """By a model that can only be asked; its table of completions is what is kept."""
        base, model = builder.get(self.base), self.model.readable
        decoding = {"max_new_tokens": self.max_new_tokens, "temperature": self.temperature, "seed": self.seed}
        requests = requests_about(base, self.prompt, model, self.max_tokens, name="written", **decoding)
        both = list(zip(base.documents, self.model.complete(builder, requests), strict=True))
        kept = tuple(replace(document, text=answer.text) for document, answer in both if not self._missing(answer))
        reasons = Counter(reason for _, answer in both if (reason := self._missing(answer)))
        return self._without(kept, len(both), reasons)

    def _without(self, kept: tuple[Document, ...], number: int, reasons: Counter[str]) -> Corpus:
        dropped = {f"written: {reason}": count for reason, count in sorted(reasons.items())}
        if dropped:
            listed = ", ".join(f"{reason}: {count}" for reason, count in dropped.items())
            log.warning("%s: of %d texts some are left out (%s).", self.model.readable, number, listed)
        return Corpus(kept, dropped)

    def _missing(self, answer: Completion) -> str:
        """Why an answer is no text, empty where it is one: a truncated rephrasing is no match for a whole original."""
        if answer.outcome != "answered":
            return answer.outcome
        return self._is_cut if answer.finish_reason == "length" else ""

    @property
    def _is_cut(self) -> str:
        return f"cut at max_new_tokens={self.max_new_tokens}"

    def identity(self) -> dict[str, Any]:
        return {"kind": "written", "base": self.base.identity(), "model": self.model.recipe(), **self.settings()}

    def settings(self) -> dict[str, Any]:
        """All but the documents and the model."""
        names = ("temperature", "max_new_tokens", "max_tokens", "seed")
        return {"prompt": asdict(self.prompt), **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class Rephrasings(Transform):
    """The usable ones among `texts`, which rephrase the documents of `base` of the same ids, in the base's order.

    White space is made the same as in cleaned documents. Dropped, by reason: no text of that id, an empty one, one
    equal to the original, one shorter or longer than `min_length_ratio` or `max_length_ratio` times it, in characters.
    The original is as much of the document as was rephrased.
    Raises ValueError where fewer than two are left.
    """

    base: CorpusSpec
    texts: CorpusSpec
    min_length_ratio: Annotated[float, Number("[0, 1]")]
    max_length_ratio: Annotated[float, Number("[1, inf)")]

    name: ClassVar[str] = "rephrasings"

    def key(self, builder: Builder) -> dict[str, Any]:
        parts = {"base": self.base.fingerprint(builder), "texts": dict(self.texts.key(builder))}
        return parts | {"length_ratios": [self.min_length_ratio, self.max_length_ratio]}

    def content(self, builder: Builder) -> Mapping[str, Any]:
        """By its recipe: a model would have to write it to know its content."""
        return self.key(builder)

    def build(self, builder: Builder) -> Corpus:
        originals = builder.get(self.base).documents
        shown = self.texts.shown(builder) if isinstance(self.texts, Written) else [item.text for item in originals]
        texts = builder.get(self.texts)
        given = {document.doc_id: normalise(document.text) for document in texts.documents}
        dropped: Counter[str] = Counter()
        kept = []
        for document, original in zip(originals, shown, strict=True):
            text = given.get(document.doc_id)
            if reason := self._rejected(normalise(original), text):
                dropped[reason] += 1
            elif text is not None:
                kept.append(replace(document, text=text))
        if len(kept) < 2:
            counted = sorted([*dropped.items(), *texts.dropped.items()])
            reasons = ", ".join(f"{reason}: {number}" for reason, number in counted)
            raise ValueError(
                f"Of the rephrasings of {len(originals)} documents {len(kept) or 'none'} can be used ({reasons}). "
                "Choose a model that follows instructions (method.rephraser), or give rephrasings with the documents' "
                "ids (method.rephrasings)."
            )
        return Corpus(tuple(kept), dict(sorted(dropped.items())))

    def _rejected(self, original: str, text: str | None) -> str | None:
        if text is None:
            return "no rephrasing given"
        if not text:
            return "empty"
        if text == original:
            return "equal to the original"
        ratio = len(text) / max(1, len(original))
        if ratio < self.min_length_ratio:
            return "too short"
        return "too long" if ratio > self.max_length_ratio else None
