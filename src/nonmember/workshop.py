"""Recipes in, artifacts out: found in the store or made, parents first.

The four arrows of the architecture are methods here: corpus, model, observations; results are made by the pipeline.
"""

from __future__ import annotations

import copy
import functools
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from transformers import AutoTokenizer

from nonmember.asking import Access, AskedDocuments, Completion, Limits, Probe, Request
from nonmember.asking import questions as of_endpoints
from nonmember.asking.capabilities import only_answers, require
from nonmember.asking.endpoint import EndpointClient, Session
from nonmember.asking.exchange import judged_answers
from nonmember.asking.local import complete_locally, load_completions, request_key, save_completions
from nonmember.asking.masked import fill_blanks
from nonmember.asking.recorded import recorded_completions, recorded_identity
from nonmember.compute import MIB, Compute
from nonmember.corpora import CorpusSpec, Sharded, View, apply_view
from nonmember.corpora.answered import Answered
from nonmember.corpora.ordered import line, random_orders
from nonmember.corpora.paraphrases import Paraphrases
from nonmember.corpora.picked import Picked
from nonmember.corpora.rephrased import Rephrasings, Written
from nonmember.models.adapters import load_adapter, merge_adapter, save_adapter
from nonmember.models.loading import (
    LoadedModel,
    add_noise,
    encode,
    encode_pieces,
    from_scratch,
    load_folder,
    load_pretrained,
    load_tokenizer,
    pretrained_identity,
    read_alike,
    save,
    shared_ids,
    token_spans,
    train_tokenizer,
)
from nonmember.models.prompting import answer_ids, prompt_ids, room_for_text, shortened
from nonmember.models.serving import serve
from nonmember.models.specs import (
    Endpoint,
    MaskedModel,
    ModelSpec,
    Noised,
    Pretrained,
    Recorded,
    Scratch,
    Served,
    Trained,
    TrainedTokenizer,
    label_of,
)
from nonmember.observing.answers import observe_answers
from nonmember.observing.divergence import load_divergences, observe_divergence
from nonmember.observing.embedding import embed
from nonmember.observing.observer import observe
from nonmember.observing.orders import Shard, observe_orders
from nonmember.observing.writing import write_texts
from nonmember.processes import process_rank
from nonmember.records import Corpus, Embeddings, OrderTable, Prompt, Question, TokenTable
from nonmember.scores import DocumentScores, ScoreInputs, token_counts
from nonmember.store import Entry, Store, canonical_json, key_hash
from nonmember.training.recipes import AdapterTuning, Pretraining, settings_of
from nonmember.training.run import Teacher, train, tune

if TYPE_CHECKING:
    from nonmember.tracking import Tracker

log = logging.getLogger(__name__)

T = TypeVar("T")

# Raise one of these when a change of code moves what the kind of artifact holds: older entries are then left alone.
FORMAT = {"corpora": 1, "tokenizers": 1, "models": 1, "observations": 1}
LOADED_MODELS = 3  # kept in memory: target, reference, and what is being made of them
LOADED_ADAPTERS = 4  # which have the weights of one of these
SMALLEST_SHARED_VOCABULARY = 0.99  # of the tokens of the suspect set (methods, section 3.2)


@dataclass
class Counters:
    """What a run had to make, and what it found."""

    models_trained: int = 0
    models_found: int = 0
    tokens_observed: int = 0
    observations_found: int = 0
    answers_asked: int = 0
    answers_found: int = 0


@dataclass
class Memory:
    """What a process need not read twice: the cells of a sweep share it. By content, so nothing in it grows stale.

    loaded: models with weights of their own.   adapted: (their name, name of an adapted model) -> theirs with it on.
    session: what was spent on endpoints, and found out about them.
    """

    corpora: dict[str, Corpus] = field(default_factory=dict)
    fingerprints: dict[str, str] = field(default_factory=dict)
    loaded: OrderedDict[str, LoadedModel] = field(default_factory=OrderedDict)
    adapted: OrderedDict[tuple[str, str], LoadedModel] = field(default_factory=OrderedDict)
    session: Session = field(default_factory=Session)

    def model(self, name: str, load: Callable[[], LoadedModel]) -> LoadedModel:
        if name not in self.loaded:
            self.loaded[name] = load()
            while len(self.loaded) > LOADED_MODELS:
                gone, _ = self.loaded.popitem(last=False)
                for both in [both for both in self.adapted if both[0] == gone]:
                    del self.adapted[both]  # else its weights would stay, and be loaded beside once more
        self.loaded.move_to_end(name)
        return self.loaded[name]

    def with_adapter(self, names: tuple[str, str], load: Callable[[], LoadedModel]) -> LoadedModel:
        if names not in self.adapted:
            self.adapted[names] = load()
            while len(self.adapted) > LOADED_ADAPTERS:
                self.adapted.popitem(last=False)
        self.adapted.move_to_end(names)
        return self.adapted[names]


@dataclass
class Workshop:
    """Makes artifacts. `tracker` hears the training curves of what is trained on the way. `asking`: how endpoints may
    be used, needed where there is one."""

    store: Store
    compute: Compute
    tracker: Tracker
    memory: Memory = field(default_factory=Memory)
    counters: Counters = field(default_factory=Counters)
    asking: Limits | None = None
    _clients: dict[Endpoint, EndpointClient] = field(default_factory=dict)
    _trained: dict[str, Entry] = field(default_factory=dict)
    _tables: dict[str, TokenTable] = field(default_factory=dict)
    _orders: dict[str, OrderTable] = field(default_factory=dict)
    _texts: dict[str, Corpus] = field(default_factory=dict)

    # Corpora -----------------------------------------------------------------------------------------------------

    def corpus(self, spec: CorpusSpec) -> Corpus:
        if isinstance(spec, Written):
            return self._written(spec)
        identity = spec.identity()
        name = canonical_json(identity)
        if name not in self.memory.corpora:
            self.memory.corpora[name] = self._made_corpus(spec, identity)
        return self.memory.corpora[name]

    def _made_corpus(self, spec: CorpusSpec, identity: Mapping[str, Any]) -> Corpus:
        if isinstance(spec, Picked):
            return self._picked(spec)
        return self._stored_corpus(spec, identity) if spec.stored else spec.build(self.corpus)

    def _picked(self, spec: Picked) -> Corpus:
        scores = [
            spec.score(ScoreInputs(self.observations(model, spec.base, view="original", max_tokens=spec.max_tokens)))
            for model in (spec.target, spec.reference)
        ]
        return spec.pick(self.corpus(spec.base), *(one.values for one in scores))

    def fingerprint(self, spec: CorpusSpec) -> str:
        name = canonical_json(spec.identity())
        if name not in self.memory.fingerprints:
            self.memory.fingerprints[name] = self.corpus(spec).fingerprint
        return self.memory.fingerprints[name]

    def corpus_key(self, spec: CorpusSpec) -> dict[str, Any]:
        """What determines the documents, without a model having to write them."""
        match spec:
            case Written():
                return {
                    "written": spec.settings(),
                    "base": self._base_key(spec.base),
                    "model": self.model_key(spec.model),
                    "precision": self.compute.precision,
                }
            case Rephrasings():
                parts = {"base": self.fingerprint(spec.base), "texts": self.corpus_key(spec.texts)}
                return parts | {"length_ratios": [spec.min_length_ratio, spec.max_length_ratio]}
            case Paraphrases():
                return {"paraphrased": self.fingerprint(spec.base), "texts": self.corpus_key(spec.texts)}
            case Answered():
                return {"answered": self.corpus_key(spec.questions), "answers": self.corpus_key(spec.answers)}
            case _:
                return {"fingerprint": self.fingerprint(spec)}

    def _base_key(self, spec: CorpusSpec) -> str | dict[str, Any]:
        """By content, unless a model would have to write it for that."""
        return self.corpus_key(spec) if isinstance(spec, Rephrasings) else self.fingerprint(spec)

    def _written(self, spec: Written) -> Corpus:
        """A corpus that a model writes: kept by the content of what it is made of, gone on with after a stop."""
        base = self.corpus(spec.base)
        if isinstance(spec.model, Endpoint | Recorded):
            return self._written_elsewhere(spec, base)

        def make(folder: Path) -> dict[str, Any]:
            loaded = self.load(spec.model)
            try:
                prompts = self._shown(loaded, base, spec.prompt, spec.max_tokens, num_new_tokens=spec.max_new_tokens)
                written = write_texts(
                    self._model_to_use(loaded), loaded.tokenizer, prompts, folder, self.compute.trainer,
                    temperature=spec.temperature, max_new_tokens=spec.max_new_tokens, seed=spec.seed,
                    max_batch_tokens=self.compute.max_batch_tokens, description=f"writing with {label_of(spec.model)}",
                )  # fmt: skip
            except ValueError as error:
                raise ValueError(f"{label_of(spec.model)} cannot write. {error}") from error
            corpus = Corpus(tuple(replace(document, text=written[document.doc_id]) for document in base.documents))
            if process_rank() == 0:
                corpus.save(folder / "documents.parquet")
            return {"num_documents": len(corpus), "model": label_of(spec.model)}

        if isinstance(spec.model, Trained):
            self.trained(spec.model)
        key = {"format": FORMAT["corpora"], "corpus": self.corpus_key(spec)}
        name = canonical_json(key)
        if name not in self._texts:
            entry = self.store.get_or_make("corpora", "written", key, make, resumable=True, joint=True)
            self._texts[name] = Corpus.load(entry.path / "documents.parquet")
        return self._texts[name]

    def _written_elsewhere(self, spec: Written, base: Corpus) -> Corpus:
        """By a model that can only be asked; its table of completions is what is kept."""
        name = canonical_json(self.corpus_key(spec))
        if name not in self._texts:
            answers = self.completions(spec.model, of_endpoints.writing_requests(spec, base))
            self._texts[name] = of_endpoints.written_corpus(base, answers)
        return self._texts[name]

    def _shown(
        self, loaded: LoadedModel, corpus: Corpus, prompt: Prompt, max_tokens: int, *, num_new_tokens: int
    ) -> dict[str, list[int]]:
        """Document id -> ids of the prompt about it. Texts are cut, never the prompt around them."""
        tokenizer = loaded.tokenizer
        room = room_for_text(tokenizer, loaded.model, prompt, num_new_tokens=num_new_tokens)
        limit = max_tokens if room is None else min(max_tokens, room)
        texts = shortened(tokenizer, [document.text for document in corpus.documents], limit)
        return dict(zip(corpus.doc_ids, prompt_ids(tokenizer, prompt, texts), strict=True))

    def _stored_corpus(self, spec: CorpusSpec, identity: Mapping[str, Any]) -> Corpus:
        def make(folder: Path) -> dict[str, Any]:
            log.info("Making the corpus %s.", type(spec).__name__)
            corpus = spec.build(self.corpus)
            corpus.save(folder / "documents.parquet")
            return {"num_documents": len(corpus), "dropped": dict(corpus.dropped), "fingerprint": corpus.fingerprint}

        key = {"format": FORMAT["corpora"], "corpus": identity}
        entry = self.store.get_or_make("corpora", type(spec).__name__.lower(), key, make)
        return Corpus.load(entry.path / "documents.parquet", entry.facts["dropped"])

    # Models ------------------------------------------------------------------------------------------------------

    def model_key(self, spec: ModelSpec) -> dict[str, Any]:
        """Everything that determines the weights, as JSON: corpora by content, parents by their own keys."""
        match spec:
            case Pretrained():
                return {"pretrained": pretrained_identity(spec)}
            case Scratch():
                return {
                    "scratch": spec.model_type,
                    "architecture": dict(spec.architecture),
                    "tokenizer": self._tokenizer_key(spec.tokenizer),
                    "seed": spec.seed,
                }
            case Endpoint():
                return {"endpoint": {"url": spec.url.rstrip("/"), "model": spec.model, "form": spec.form}}
            case Recorded():
                return {"recorded": recorded_identity(spec)}
            case MaskedModel():
                return {"masked": pretrained_identity(Pretrained(spec.path, spec.revision))}
            case Noised():
                return {"noised": self.model_key(spec.base), "scale": spec.scale, "seed": spec.seed}
            case Served():
                answers = {"noise": spec.noise, "decimals": spec.decimals, "seed": spec.seed}
                return {"served": self.model_key(spec.base), **answers}
            case Trained():
                return {
                    "format": FORMAT["models"],
                    "base": self.model_key(spec.base),
                    "recipe": {"kind": type(spec.training).__name__, **settings_of(spec.training)},
                    "corpus": self.fingerprint(spec.corpus),
                    "teacher": self.model_key(spec.teacher) if spec.teacher else None,
                    "seed": spec.seed,
                    "precision": self.compute.precision,
                }

    def load(self, spec: ModelSpec) -> LoadedModel:
        """The model, ready to use; trained first where it is a recipe the store does not have yet.

        One with an adapter has the weights of its base, which can be used beside it.
        """
        if isinstance(spec, Trained) and spec.adapts:
            entry = self.trained(spec)
            base_name, base = self._whole(spec.base)
            names = (base_name, canonical_json(self.model_key(spec)))
            return self.memory.with_adapter(
                names, lambda: LoadedModel(load_adapter(base.model, entry.path), base.tokenizer)
            )
        return self._whole(spec)[1]

    def _whole(self, spec: ModelSpec) -> tuple[str, LoadedModel]:
        """A model of which all weights are its own, an adapter merged into them; and its name in memory."""
        name = canonical_json(self.model_key(spec))
        return name, self.memory.model(name, lambda: self._load(spec))

    def _load(self, spec: ModelSpec) -> LoadedModel:
        """A copy of its own, of which all weights can be changed."""
        match spec:
            case Endpoint() | Recorded() | MaskedModel():
                raise ValueError(f"{label_of(spec)} can only be asked: its weights are not at hand.")
            case Pretrained():
                return load_pretrained(spec)
            case Scratch():
                return from_scratch(spec, self._tokenizer(spec.tokenizer))
            case Noised():
                noised = self._load(_changeable(spec.base))
                add_noise(noised.model, spec.scale, spec.seed)
                return noised
            case Served():
                served = self._load(spec.base)
                serve(served.model, noise=spec.noise, decimals=spec.decimals, seed=spec.seed)
                return served
            case Trained() if spec.adapts:
                entry, base = self.trained(spec), self._load(_changeable(spec.base))
                return LoadedModel(merge_adapter(load_adapter(base.model.float(), entry.path)), base.tokenizer)
            case Trained():
                return load_folder(self.trained(spec).path)

    def export_merged(self, spec: ModelSpec, folder: Path) -> None:
        """Weights and tokenizer of a model with an adapter, as one that needs none."""
        save(self._load(spec), folder)

    def trained(self, spec: Trained, role: str | None = None) -> Entry:
        """The store's entry of a trained model. Its training curves are train/... in the role `distilled`, else
        train_<role>/..., by its label where it has no role."""
        label = label_of(spec)

        def make(folder: Path) -> dict[str, Any]:
            if isinstance(spec.training, AdapterTuning):
                return self._tuned(spec, spec.training, folder, role or label)
            base = self._load(_changeable(spec.base))  # to be trained in place
            base.model.float()  # master weights; the precision of the arithmetic is the trainer's
            corpus = self.corpus(spec.corpus)
            documents = encode_corpus(base, corpus, _token_limit(spec))
            teacher = None
            if spec.teacher is not None:
                teacher, documents = self._teacher(spec, base, documents)
            with self.tracker.training(role or label) as loggers:
                facts = train(
                    base.model, documents, spec.training, seed=spec.seed,
                    end_of_text=end_of_text_id(base.tokenizer), teacher=teacher,
                    folder=folder, compute=self.compute, loggers=loggers, description=f"training {label}",
                )  # fmt: skip
            facts["num_dropped_documents"] = len(corpus) - len(documents)
            if process_rank() == 0:
                save(base, folder)
            return {"label": label, "num_parameters": base.num_parameters, **facts}

        key = self.model_key(spec)
        name = canonical_json(key)
        if name not in self._trained:
            for parent in (spec.base, spec.teacher):
                while isinstance(parent, Noised | Served):
                    parent = parent.base
                if isinstance(parent, Trained):
                    self.trained(parent)
            entry = self.store.get_or_make("models", label, key, make, resumable=True, joint=True)
            self.counters.models_trained += entry.made_now
            self.counters.models_found += not entry.made_now
            self._trained[name] = entry
        return self._trained[name]

    def _tuned(self, spec: Trained, recipe: AdapterTuning, folder: Path, role: str) -> dict[str, Any]:
        _, base = self._whole(_with_weights(spec.base))
        corpus, label = self.corpus(spec.corpus), label_of(spec)
        documents = encode_corpus(base, corpus, recipe.max_tokens)
        with self.tracker.training(role) as loggers:
            try:
                tuned, facts = tune(
                    base.model, documents, recipe, seed=spec.seed, folder=folder, compute=self.compute,
                    loggers=loggers, description=f"training {label}",
                )  # fmt: skip
            except ValueError as error:
                raise ValueError(f"{label} cannot be tuned. {error}") from error
        if process_rank() == 0:
            save_adapter(tuned, folder)
        facts["num_dropped_documents"] = len(corpus) - facts["num_sequences"]
        return {"label": label, "num_parameters": base.num_parameters + facts["num_tuned_parameters"], **facts}

    def _teacher(
        self, spec: Trained, student: LoadedModel, documents: list[list[int]]
    ) -> tuple[Teacher, list[list[int]]]:
        """The teacher, and the documents it reads in the very tokens of the student: it is shown the student's ids."""
        assert spec.teacher is not None
        teacher = self.load(spec.teacher)
        shared = shared_ids(student.tokenizer, teacher.tokenizer)
        theirs = encode_corpus(teacher, self.corpus(spec.corpus), _token_limit(spec))
        alike, share = read_alike(documents, theirs, shared[0])
        _check_alike(share, label_of(spec.base), label_of(spec.teacher), "distillation needs")
        return Teacher(teacher.model, shared), alike

    def _tokenizer_key(self, spec: TrainedTokenizer) -> dict[str, Any]:
        return {
            "format": FORMAT["tokenizers"],
            "corpus": self.fingerprint(spec.corpus),
            "vocab_size": spec.vocab_size,
        }

    def tokenizer(self, spec: ModelSpec) -> Any:
        """A model's tokenizer, without its weights."""
        match spec:
            case Pretrained():
                return load_tokenizer(spec)
            case Scratch():
                return self._tokenizer(spec.tokenizer)
            case Noised() | Served() | Trained():
                return self.tokenizer(spec.base)
            case _:
                raise ValueError(f"{label_of(spec)} can only be asked: its tokenizer is not at hand.")

    def _tokenizer(self, spec: TrainedTokenizer) -> Any:
        def make(folder: Path) -> None:
            train_tokenizer(self.corpus(spec.corpus), spec.vocab_size).save_pretrained(folder)

        name = f"bpe-{spec.vocab_size}"
        return AutoTokenizer.from_pretrained(
            self.store.get_or_make("tokenizers", name, self._tokenizer_key(spec), make).path
        )

    def num_parameters(self, spec: ModelSpec) -> int:
        """Number of parameters; kept with a trained model's entry."""
        if isinstance(spec, Trained):
            return int(self.trained(spec).facts["num_parameters"])
        return self.load(spec).num_parameters

    def truth(self, target: ModelSpec, suspect: CorpusSpec) -> str | None:
        """member where the recipes of the target say that it has read all the documents; non_member where they say all
        it has read, and none of these are among it; None elsewhere."""
        read, is_all = self._texts_read(target)
        known = [document.text in read for document in self.corpus(suspect).documents]
        if all(known):
            return "member"
        return "non_member" if is_all and not any(known) else None

    def _texts_read(self, spec: ModelSpec) -> tuple[set[str], bool]:
        """The texts the recipes name, and whether there are no others."""
        match spec:
            case Pretrained() | Endpoint() | Recorded() | MaskedModel():
                return set(), False
            case Scratch():
                return set(), True
            case Noised() | Served():
                return self._texts_read(spec.base)
            case Trained():
                before, is_all = self._texts_read(spec.base)
                return before | set(_texts_and_lines(self.corpus(spec.corpus))), is_all

    def token_counts(self, model: ModelSpec, corpus: CorpusSpec) -> npt.NDArray[np.int64]:
        """[V] how often each of the model's ids occurs in a general corpus."""
        loaded = self.load(model)
        return token_counts(encode_corpus(loaded, self.corpus(corpus), None), loaded.model.config.vocab_size)

    # Observations ------------------------------------------------------------------------------------------------

    def observations(self, model: ModelSpec, corpus: CorpusSpec, *, view: View, max_tokens: int) -> TokenTable:
        """What the model says about every token of a view of the corpus."""
        documents = self.corpus(corpus)
        if isinstance(model, Endpoint):
            shown = apply_view(documents, view)
            return self._asked_table(model, shown, max_tokens, of_endpoints.observations)

        def make(folder: Path) -> dict[str, Any]:
            loaded = self.load(model)
            shown = apply_view(documents, view)
            texts = [document.text for document in shown.documents]
            token_ids = dict(zip(shown.doc_ids, encode(loaded.tokenizer, texts, max_tokens), strict=True))
            try:
                counts = observe(
                    self._model_to_use(loaded), token_ids, folder, self.compute.trainer,
                    max_batch_tokens=self.compute.max_batch_tokens, block_bytes=self.compute.block_mib * MIB,
                    description=f"observing {label_of(model)}",
                )  # fmt: skip
            except ValueError as error:
                raise ValueError(f"{label_of(model)} cannot be observed. {error}") from error
            self.counters.tokens_observed += counts.num_tokens
            return asdict(counts)

        key = {
            "format": FORMAT["observations"],
            "model": self.model_key(model),
            "corpus": self.fingerprint(corpus),
            "view": view,
            "max_tokens": max_tokens,
            "precision": self.compute.precision,
        }
        return self._table(key, f"{label_of(model)}-{view}", make, documents)

    def answers(self, model: ModelSpec, corpus: CorpusSpec, question: Question, *, max_tokens: int) -> TokenTable:
        """How probable the model finds each of a question's answers about each document: one row per answer.

        max_tokens: of a document, without the prompt around it.
        """
        documents = self.corpus(corpus)
        if isinstance(model, Endpoint):
            ask = functools.partial(of_endpoints.answer_probabilities, question=question)
            return self._asked_table(model, documents, max_tokens, ask, question)

        def make(folder: Path) -> dict[str, Any]:
            loaded = self.load(model)
            try:
                prompts = self._shown(loaded, documents, question, max_tokens, num_new_tokens=1)
                counts = observe_answers(
                    self._model_to_use(loaded), prompts, answer_ids(loaded.tokenizer, question), folder,
                    self.compute.trainer, max_batch_tokens=self.compute.max_batch_tokens,
                    block_bytes=self.compute.block_mib * MIB, description=f"asking {label_of(model)}",
                )  # fmt: skip
            except ValueError as error:
                raise ValueError(f"{label_of(model)} cannot be asked. {error}") from error
            self.counters.tokens_observed += counts.num_tokens
            return asdict(counts)

        key = {
            "format": FORMAT["observations"],
            "model": self.model_key(model),
            "corpus": self.fingerprint(corpus),
            "question": asdict(question),
            "max_tokens": max_tokens,
            "precision": self.compute.precision,
        }
        return self._table(key, f"{label_of(model)}-answers", make, documents)

    def embeddings(
        self, model: ModelSpec, corpus: CorpusSpec, *, layer: int, max_tokens: int, dropout_seed: int | None = None
    ) -> Embeddings:
        """The hidden state at each document's last token, of length 1, by an entry of the tuple of hidden states.

        dropout_seed: None for evaluation mode; see `observing.embedding.embed`.
        """
        documents = self.corpus(corpus)

        def make(folder: Path) -> dict[str, Any]:
            loaded = self.load(model)
            token_ids = dict(zip(documents.doc_ids, encode_corpus(loaded, documents, max_tokens), strict=True))
            try:
                counts = embed(
                    self._model_to_use(loaded), token_ids, folder, self.compute.trainer, layer=layer,
                    dropout_seed=dropout_seed, max_batch_tokens=self.compute.max_batch_tokens,
                    description=f"embedding by {label_of(model)}",
                )  # fmt: skip
            except ValueError as error:
                raise ValueError(f"{label_of(model)} cannot embed. {error}") from error
            self.counters.tokens_observed += counts.num_tokens
            return asdict(counts)

        key = {
            "format": FORMAT["observations"],
            "model": self.model_key(model),
            "corpus": self.fingerprint(corpus),
            "embedding": {"layer": layer, "dropout_seed": dropout_seed},
            "max_tokens": max_tokens,
            "precision": self.compute.precision,
        }
        return Embeddings.load(self._parts(key, f"{label_of(model)}-embeddings", make), documents.doc_ids)

    def orders(
        self, model: ModelSpec, file: Sharded, *, num_orders: int, window: int, stride: int, seed: int
    ) -> OrderTable:
        """How likely the model finds each shard of an ordered file in its own order and in random ones."""
        shards = file.shards(self.corpus(file.base))
        examples = Corpus(tuple(one for shard in shards.values() for one in shard))

        def make(folder: Path) -> dict[str, Any]:
            loaded = self.load(model)
            try:
                front, ids = encode_pieces(loaded.tokenizer, [line(one.text) for one in examples.documents])
                ids_of = dict(zip(examples.doc_ids, ids, strict=True))
                observed = {
                    name: Shard([ids_of[one.doc_id] for one in shard], random_orders(shard, num_orders, seed))
                    for name, shard in shards.items()
                }
                counts = observe_orders(
                    self._model_to_use(loaded), observed, front, folder, self.compute.trainer, window=window,
                    stride=stride, max_batch_tokens=self.compute.max_batch_tokens,
                    block_bytes=self.compute.block_mib * MIB, description=f"reordering for {label_of(model)}",
                )  # fmt: skip
            except ValueError as error:
                raise ValueError(f"{label_of(model)} cannot be observed. {error}") from error
            self.counters.tokens_observed += counts.num_read
            return asdict(counts)

        key = {
            "format": FORMAT["observations"],
            "model": self.model_key(model),
            "corpus": examples.fingerprint,
            "orders": {"shards": file.num_shards, "number": num_orders, "seed": seed},
            "windows": {"tokens": window, "stride": stride},
            "precision": self.compute.precision,
        }
        name = canonical_json(key)
        if name not in self._orders:
            parts = self._parts(key, f"{label_of(model)}-orders", make)
            self._orders[name] = OrderTable.load(parts, tuple(shards))
        return self._orders[name]

    def asked(self, model: ModelSpec, corpus: CorpusSpec, probe: Probe) -> AskedDocuments:
        """What the model answers to the probe's questions about each document."""
        documents = self.corpus(corpus)
        if probe.tokenizer is not None:
            probe = probe.counting_by(token_spans(self.tokenizer(probe.tokenizer)))
        questions = probe.ask(documents, {name: self.corpus(other) for name, other in probe.corpora.items()})
        if isinstance(model, MaskedModel):
            completions = fill_blanks(model, questions.requests, self.compute.device)
        else:
            completions = self.completions(model, questions.requests)
        return judged_answers(probe, documents.doc_ids, questions, completions)

    def completions(self, model: ModelSpec, requests: Sequence[Request]) -> list[Completion]:
        """One per request, found in the table of what this model has been asked or asked now."""
        match model:
            case Endpoint():
                return self._by_endpoint(model, lambda client: of_endpoints.completions(client, requests))
            case Recorded():
                return recorded_completions(model, requests)
            case _:
                return self._completed_here(model, requests)

    def require(self, model: ModelSpec, access: Access, what: str) -> None:
        """Refuses a model that does not offer what `what` needs, before anything is made or paid for."""
        if isinstance(model, Endpoint):
            self._by_endpoint(model, lambda client: require(client, access, what))
        elif isinstance(model, Recorded) and access >= Access.PROMPT_LOGPROBS:
            raise only_answers(access, what, label_of(model))

    def warnings(self) -> list[str]:
        """What a reader of a result has to know of the answers that it rests on."""
        return [warning for client in self._clients.values() for warning in client.warnings()]

    def _asked_table(
        self, endpoint: Endpoint, shown: Corpus, max_tokens: int,
        ask: Callable[[EndpointClient, Corpus, int], TokenTable], question: Question | None = None,
    ) -> TokenTable:  # fmt: skip
        """What an endpoint says about documents; its table of completions is what is kept."""
        asked = None if question is None else asdict(question)
        name = canonical_json([self.model_key(endpoint), shown.fingerprint, max_tokens, asked])
        if name not in self._tables:
            self._tables[name] = self._by_endpoint(endpoint, lambda client: ask(client, shown, max_tokens))
        return self._tables[name]

    def _by_endpoint(self, endpoint: Endpoint, ask: Callable[[EndpointClient], T]) -> T:
        if endpoint not in self._clients:
            self._clients[endpoint] = EndpointClient(endpoint, self.store, self.asking, self.memory.session)
        client = self._clients[endpoint]
        asked, found = client.num_asked, client.num_found
        try:
            return ask(client)
        finally:
            self.counters.answers_asked += client.num_asked - asked
            self.counters.answers_found += client.num_found - found

    def _completed_here(self, model: ModelSpec, requests: Sequence[Request]) -> list[Completion]:
        """By a model whose weights are at hand; all together are an observation of it."""

        def make(folder: Path) -> dict[str, Any]:
            loaded = self.load(model)
            in_use = LoadedModel(self._model_to_use(loaded), loaded.tokenizer)
            try:
                completions = complete_locally(in_use, requests, self.compute, folder, f"asking {label_of(model)}")
            except ValueError as error:
                raise ValueError(f"{label_of(model)} cannot be asked. {error}") from error
            if process_rank() == 0:
                save_completions(requests, completions, folder / "part-0.parquet")
            self.counters.tokens_observed += sum(one.prompt_tokens + one.completion_tokens for one in completions)
            return {"num_requests": len(requests), "model": label_of(model)}

        key = {
            "format": FORMAT["observations"],
            "model": self.model_key(model),
            "requests": key_hash([request_key(request) for request in requests]),
            "precision": self.compute.precision,
        }
        (part,) = self._parts(key, f"{label_of(model)}-completions", make, resumable=True)
        return load_completions(part)

    def divergences(self, model: ModelSpec, other: ModelSpec, corpus: CorpusSpec, *, max_tokens: int) -> DocumentScores:
        """KL(other || model) of the next-token distributions, mean over each document's tokens, both models reading the
        first one's ids."""
        documents = self.corpus(corpus)

        def make(folder: Path) -> dict[str, Any]:
            ours, theirs = self.load(model), self.load(other)
            token_ids = dict(zip(documents.doc_ids, encode_corpus(ours, documents, max_tokens), strict=True))
            their_ids = encode_corpus(theirs, documents, max_tokens)
            shared = shared_ids(ours.tokenizer, theirs.tokenizer)
            _, share = read_alike(list(token_ids.values()), their_ids, shared[0])
            _check_alike(share, label_of(model), label_of(other), "a comparison needs")
            try:
                counts = observe_divergence(
                    self._model_to_use(ours), theirs.model, token_ids, folder, self.compute.trainer, shared_ids=shared,
                    max_batch_tokens=self.compute.max_batch_tokens, block_bytes=self.compute.block_mib * MIB,
                    description=f"comparing {label_of(model)} with {label_of(other)}",
                )  # fmt: skip
            except ValueError as error:
                raise ValueError(f"{label_of(model)} cannot be compared with {label_of(other)}. {error}") from error
            self.counters.tokens_observed += counts.num_tokens
            return asdict(counts)

        key = {
            "format": FORMAT["observations"],
            "model": self.model_key(model),
            "divergence_from": self.model_key(other),
            "corpus": self.fingerprint(corpus),
            "max_tokens": max_tokens,
            "precision": self.compute.precision,
        }
        return load_divergences(self._parts(key, f"{label_of(model)}-divergence", make), documents.doc_ids)

    def _table(
        self, key: dict[str, Any], readable: str, make: Callable[[Path], dict[str, Any]], documents: Corpus
    ) -> TokenTable:
        name = canonical_json(key)
        if name not in self._tables:
            self._tables[name] = TokenTable.load(self._parts(key, readable, make), documents.doc_ids)
        return self._tables[name]

    def _parts(
        self, key: dict[str, Any], readable: str, make: Callable[[Path], dict[str, Any]], *, resumable: bool = False
    ) -> list[Path]:
        """The files of an observation, found or made."""
        entry = self.store.get_or_make("observations", readable, key, make, resumable=resumable, joint=True)
        self.counters.observations_found += not entry.made_now
        return sorted(entry.path.glob("part-*.parquet"))

    def _model_to_use(self, loaded: LoadedModel) -> Any:
        """For a trainer; a copy where it would change the model for good."""
        return copy.deepcopy(loaded.model) if self.compute.alters_models else loaded.model


def _check_alike(share: float, label: str, other: str, purpose: str) -> None:
    if share < SMALLEST_SHARED_VOCABULARY:
        raise ValueError(
            f"Only {share:.1%} of the documents' tokens are the same in the tokenizers of both {label} and {other}; "
            f"{purpose} {SMALLEST_SHARED_VOCABULARY:.0%}. Choose a reference with the target's tokenizer."
        )


def encode_corpus(loaded: LoadedModel, corpus: Corpus, max_tokens: int | None) -> list[list[int]]:
    return encode(loaded.tokenizer, [document.text for document in corpus.documents], max_tokens)


def _texts_and_lines(corpus: Corpus) -> Iterator[str]:
    """What one has read who has read the documents: an ordered file is read as one of them, its examples as lines."""
    for document in corpus.documents:
        yield document.text
        yield from document.text.splitlines()


def end_of_text_id(tokenizer: Any) -> int:
    if tokenizer.eos_token_id is None:
        raise ValueError("The tokenizer has no end-of-text token, which training puts between documents; give it one.")
    return int(tokenizer.eos_token_id)


def _token_limit(spec: Trained) -> int | None:
    return None if isinstance(spec.training, Pretraining) else spec.training.max_tokens


def _with_weights(spec: ModelSpec) -> ModelSpec:
    """Refuses a model of which only the answers can be had."""
    if isinstance(spec, Served):
        raise ValueError(f"{label_of(spec)} can only be asked; train or change the model behind it.")
    return spec


def _changeable(spec: ModelSpec) -> ModelSpec:
    """Refuses also a model whose weights are too coarse to be changed."""
    if isinstance(spec, Pretrained) and spec.quantization != "none":
        raise ValueError(
            f"{label_of(spec)} is loaded in {spec.quantization}: an adapter can be tuned beside such weights, but they "
            "cannot be trained or merged with one. Use quantization=none."
        )
    return _with_weights(spec)
