"""Models trained here: continued pretraining, distillation, adapters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry
from nonmember.checks import require_seed
from nonmember.corpora import Component, CorpusSpec
from nonmember.corpora.transforms.mixtures import components_of
from nonmember.models.base import FORMAT, LOADED_MODELS, ModelSpec, Whole
from nonmember.models.kinds.pretrained import load_folder
from nonmember.models.reading import expected_tokens
from nonmember.models.tokenizing import require_shared_vocabulary
from nonmember.records import Stream
from nonmember.records.curves import CURVES
from nonmember.records.requirements import Access
from nonmember.runtime.processes import process_rank
from nonmember.training.recipes import AdapterTuning, Distillation, Pretraining, TrainingRecipe

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel
    from nonmember.training.run import Teacher, TrainingRun

LOADED_ADAPTERS = 4  # kept in memory, with the weights of one of the loaded models


@dataclass(frozen=True)
class Trained(ModelSpec):
    """`base` trained on `corpus` by `training`, with a teacher where the recipe wants one."""

    base: ModelSpec
    training: TrainingRecipe
    corpus: CorpusSpec
    seed: Annotated[int, require_seed]
    teacher: ModelSpec | None = None
    # How people call it (in tables, run names, progress bars); not part of the key.
    label: str = field(default="", compare=False, repr=False)  # a plan counts by it what cannot be looked up yet

    resumable = True
    joint = True
    stored: ClassVar[bool] = True

    @property
    def adapts(self) -> bool:
        return self.training.adapts

    @property
    def readable(self) -> str:
        return self.label or f"{self.base.readable}-trained"

    @property
    def pool(self) -> str:  # type: ignore[override]
        return "adapted" if self.adapts else ModelSpec.pool

    @property
    def max_in_memory(self) -> int:  # type: ignore[override]
        return LOADED_ADAPTERS if self.adapts else LOADED_MODELS

    def rests_on(self) -> Spec[Any] | None:
        return Whole(self.base) if self.adapts else None

    # Identity ------------------------------------------------------------------------------------------------------

    def _recipe_of_training(self) -> dict[str, Any]:
        return {"kind": type(self.training).__name__, **asdict(self.training)}

    def recipe(self) -> dict[str, Any]:
        return {
            "base": self.base.recipe(),
            "recipe": self._recipe_of_training(),
            "corpus": self.corpus.identity(),
            "teacher": self.teacher.recipe() if self.teacher else None,
            "seed": self.seed,
        }

    def key(self, builder: Builder) -> dict[str, Any]:
        base = Whole(self.base) if self.adapts else self.base
        return {
            "format": FORMAT,
            "base": base.key(builder),
            "recipe": self._recipe_of_training(),
            "corpus": self.corpus.fingerprint(builder),
            "teacher": self.teacher.key(builder) if self.teacher else None,
            "seed": self.seed,
            "precision": builder.compute.precision,
        }

    def parents(self) -> Iterable[ModelSpec]:
        return (self.base, self.teacher) if self.teacher else (self.base,)

    def made_of(self) -> Iterable[tuple[Access, ModelSpec]]:
        yield Access.WEIGHTS, self.base
        if self.teacher is not None:
            yield Access.FULL_LOGITS, self.teacher

    def corpora_read(self) -> tuple[tuple[Component, ...], bool]:
        before, is_all = self.base.corpora_read()
        epochs = self.training.optimization.epochs
        read = [Component(item.corpus, item.exposures * epochs) for item in components_of(self.corpus)]
        return (*before, *read), is_all

    def expected_tokens(self, builder: Builder) -> int | None:
        tokens = expected_tokens(builder, self.base, self.corpus, self.training.max_tokens)
        if tokens is None:
            return None
        if isinstance(self.training, Distillation) and self.training.num_steps is not None:
            sequences = self.training.num_steps * self.training.optimization.batch_size
            return round(tokens * sequences / len(builder.get(self.corpus)))
        return tokens * self.training.optimization.epochs

    def alike(self) -> str:
        by = f" by {self.teacher.shape}" if self.teacher else ""
        adapter = f" {type(self.training.adapter).__name__}" if isinstance(self.training, AdapterTuning) else ""
        return f"{type(self.training).__name__}{adapter} of {self.base.shape}{by}"

    def continued_from(self) -> ModelSpec:
        return self.base

    def num_parameters(self, builder: Builder) -> int:
        """Kept with the entry."""
        return int(builder.entry(self).facts["num_parameters"])

    def load_tokenizer(self, builder: Builder) -> Any:
        return self.base.load_tokenizer(builder)

    def kept_curves(self, builder: Builder) -> Path | None:
        if builder.has_made(self) or not builder.store.has(self.kind, self.lookup_key(builder)):
            return None
        entry = builder.store.find(self.kind, self.readable, self.lookup_key(builder))
        return None if entry is None or CURVES not in entry.files else entry.path / CURVES

    # Loading -------------------------------------------------------------------------------------------------------

    def load(self, builder: Builder, entry: Entry) -> LoadedModel:
        """With an adapter: beside the weights of its base, which can be used as well."""
        if not self.adapts:
            return self._loaded(builder, entry)
        from nonmember.training.adapters import load_adapter

        base = builder.get(Whole(self.base))
        return replace(base, model=load_adapter(base.model, entry.path))

    def weights(self, builder: Builder) -> LoadedModel:
        entry = builder.entry(self)
        if not self.adapts:
            return self._loaded(builder, entry)
        from nonmember.training.adapters import load_adapter, merge_adapter

        self.base.require_changeable()
        base = self.base.weights(builder)
        return replace(base, model=merge_adapter(load_adapter(base.model.float(), entry.path)))

    def _loaded(self, builder: Builder, entry: Entry) -> LoadedModel:
        """With the tokenizer that it was trained with: some, saved and loaded, put other tokens before a text."""
        return replace(load_folder(entry.path), tokenizer=self.load_tokenizer(builder))

    # Training ------------------------------------------------------------------------------------------------------

    def make(self, builder: Builder, folder: Path) -> dict[str, Any]:
        """Train it. Curves are logged as train/... in the role `distilled`, else as train_<role>/..."""
        if isinstance(self.training, AdapterTuning):
            return self._tune(builder, self.training, folder)
        from nonmember.models.encoding import encode_corpus, scored_tokens
        from nonmember.models.loading import save
        from nonmember.training.run import train
        from nonmember.training.tokens import documents_of, end_of_text_id

        self.base.require_changeable()
        builder.make_room(ModelSpec.pool, self.teacher)
        base = self.base.weights(builder)  # to be trained in place
        base.model.float()  # master weights; the precision of the arithmetic is the trainer's
        corpus, teacher = builder.get(self.corpus), None
        documents: Any
        scored = scored_tokens(base, corpus, self.training.max_tokens)
        if isinstance(corpus, Stream) and isinstance(self.training, Pretraining):
            documents, num_dropped = documents_of(builder, self.base, corpus), 0
        else:
            documents = encode_corpus(base, corpus, self.training.max_tokens)
            if self.teacher is not None:
                teacher, documents, scored = self.as_teacher(builder, base, documents, scored)
            num_dropped = len(corpus) - len(documents)
        is_packed = isinstance(self.training, Pretraining)  # else it is padding, which nothing reads
        end_of_text = end_of_text_id(base.tokenizer) if is_packed else base.tokenizer.eos_token_id or 0
        with self._run(builder, folder) as run:
            facts = train(
                base.model, documents, self.training, run, end_of_text=end_of_text, teacher=teacher, scored=scored
            )
        facts["num_dropped_documents"] = num_dropped
        if process_rank() == 0:
            save(base, folder)
        return {"label": self.readable, "num_parameters": base.num_parameters, **facts}

    def as_teacher(
        self, builder: Builder, student: LoadedModel, documents: list[list[int]], scored: list[list[bool]] | None
    ) -> tuple[Teacher, list[list[int]], list[list[bool]] | None]:
        """The teacher, and the documents it reads in the very tokens of the student: it is shown the student's ids. And
        which of these are scored; None where all are."""
        from nonmember.models.encoding import encode_corpus, read_alike, shared_ids
        from nonmember.training.run import Teacher

        assert self.teacher is not None
        teacher = builder.get(self.teacher)
        shared = shared_ids(student.tokenizer, teacher.tokenizer)
        theirs = encode_corpus(teacher, builder.get(self.corpus), self.training.max_tokens)
        alike, share = read_alike(documents, theirs, shared[0])
        require_shared_vocabulary(share, self.base.readable, self.teacher.readable, "distillation needs")
        if scored is not None:
            scored = [mask for mask, ids, other in zip(scored, documents, theirs, strict=True) if ids == other]
        return Teacher(teacher.model, shared), alike, scored

    def _tune(self, builder: Builder, recipe: AdapterTuning, folder: Path) -> dict[str, Any]:
        from nonmember.models.encoding import encode_corpus, scored_tokens
        from nonmember.training.adapters import save_adapter
        from nonmember.training.run import tune

        self.base.require_trainable()
        base, corpus = builder.get(Whole(self.base)), builder.get(self.corpus)
        documents = encode_corpus(base, corpus, recipe.max_tokens)
        scored = scored_tokens(base, corpus, recipe.max_tokens)
        with self._run(builder, folder) as run:
            try:
                tuned, facts = tune(base.model, documents, recipe, run, scored=scored)
            except ValueError as error:
                raise ValueError(f"{self.readable} cannot be tuned. {error}") from error
        if process_rank() == 0:
            save_adapter(tuned, folder)
        facts["num_dropped_documents"] = len(corpus) - facts["num_sequences"]
        num_parameters = base.num_parameters + facts["num_tuned_parameters"]
        return {"label": self.readable, "num_parameters": num_parameters, **facts}

    @contextmanager
    def _run(self, builder: Builder, folder: Path) -> Iterator[TrainingRun]:
        """With the tracker's loggers, and one that keeps the curves with the model, for audits that find it stored."""
        from nonmember.tracking.curves import KeptCurves
        from nonmember.training.run import TrainingRun

        with builder.tracker.training(builder.role(self)) as loggers:
            kept = [KeptCurves(folder / CURVES)] if process_rank() == 0 else []
            yield TrainingRun(self.seed, folder, builder.compute, [*loggers, *kept], f"training {self.readable}")
