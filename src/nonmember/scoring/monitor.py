"""Watches documents while any Lightning module trains: contamination is seen as it happens."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import lightning
import numpy as np
import torch
from lightning.pytorch.utilities.rank_zero import rank_zero_warn
from lightning.pytorch.utilities.seed import isolate_rng
from torch import Tensor

from nonmember.checks import require_count
from nonmember.models.forward import SplitForward, evaluation_mode, split_forward
from nonmember.models.reading import encode_beginnings, position_limit
from nonmember.observations.passes.tokens import PaddedBatches, check_readable, length_buckets
from nonmember.observations.passes.vocabulary import token_statistics
from nonmember.records import FloatArray, TokenTable
from nonmember.records.groups import HELDOUT
from nonmember.scores import Loss, MinKPlusPlus, Score, ScoreInputs
from nonmember.stats import mean_difference

Texts = Sequence[str] | Sequence[Sequence[int]]


class MembershipMonitor(lightning.Callback):
    """Logs how likely sets of documents become while a model trains, beside held-out ones.

    At the start, every so many optimizer steps and at the end, each set is read in evaluation mode. Logged to all
    loggers of the trainer, and to `trainer.callback_metrics`, are `membership/SET/SCORE`, the mean over the set's
    documents; for each set but the held-out one `membership/SET/SCORE_gain`, the difference in differences: by how much
    more than on held-out documents the mean has risen since the start; and `membership/SET/SCORE_t`, Welch's t of that.
    A rise on both sets is what the model learns of texts of this kind; one on a set alone is the set being read.
    t near or above 3 is worth a look; it is no test of a hypothesis, since it is looked at many times.

    Training is not changed by it, bit for bit: modes, gradients and all random states are left as they were. Every
    process reads all of the sets. A training that is resumed from a checkpoint goes on from the same start.

    Args:
        sets: Name -> documents, as texts or as token ids; for example `{"suspect": [...], "canaries": [...]}`. At least
            two documents each, of two tokens or more.
        heldout: Documents of the same kind that are certainly not trained on.
        tokenizer: Of transformers; needed for texts.
        every_n_steps: Optimizer steps between two readings.
        scores: Name -> score of one forward pass; None: log_likelihood and min_k_plus_plus with K = 20%.
        model: Where the language model is in the trained module, as its attribute; "" where it is that module.
        max_tokens: Documents are cut to so many; None: not at all.
        max_batch_tokens: Most tokens read at once, padding included.

    Attributes:
        history: A mapping for each reading: "step" and the logged values by name.

    Raises:
        ValueError: For sets that are too small or hold documents of a single token, texts without a tokenizer, and
            scores that need more than one forward pass; when the training starts, where there is no language model
            at `model`, or a document is longer than it reads; for a checkpoint that has watched other documents.

    Source: Ours; the difference in differences is that of docs/methods/difference_in_differences.md, with the model at
    the start as the reference.
    """

    def __init__(
        self,
        sets: Mapping[str, Texts],
        heldout: Texts,
        *,
        tokenizer: Any = None,
        every_n_steps: int = 100,
        scores: Mapping[str, Score] | None = None,
        model: str = "model",
        max_tokens: int | None = None,
        max_batch_tokens: int = 4096,
    ) -> None:
        require_count(every_n_steps, 1, "every_n_steps")
        require_count(max_batch_tokens, 1, "max_batch_tokens")
        if not sets or HELDOUT in sets:
            raise ValueError(f"sets must name one set or more, none of them {HELDOUT!r}; got {list(sets)}.")
        self._scores = dict(scores or {"log_likelihood": Loss(), "min_k_plus_plus": MinKPlusPlus(0.2)})
        for name, score in self._scores.items():
            if not _takes_one_pass(score):
                raise ValueError(
                    f"scores must be of one forward pass, without texts or a reference; {name} needs more."
                )
        self._ids = {
            name: _token_ids(texts, name, tokenizer, max_tokens) for name, texts in {**sets, HELDOUT: heldout}.items()
        }
        self._every, self._path, self._max_batch_tokens = every_n_steps, model, max_batch_tokens
        self._start: dict[str, dict[str, FloatArray]] | None = None
        self._split: SplitForward | None = None
        self.history: list[dict[str, float]] = []

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        model = _language_model(pl_module, self._path)
        most, longest = position_limit(model.config), max(len(ids) for of in self._ids.values() for ids in of)
        if most is not None and longest > most:
            raise ValueError(
                f"Documents must fit into the model, which reads at most {most} tokens; the longest has {longest}. "
                f"Pass max_tokens={most} to have their beginnings read."
            )
        with isolate_rng():
            self._split = split_forward(model)
        for name, documents in self._ids.items():
            check_readable(self._split, {f"{name} {index}": ids for index, ids in enumerate(documents)})
        if not trainer.global_step:  # another training than the one that the callback may have watched before
            self._start, self.history = None, []
        if self._start is None:
            self._read(trainer)

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        step = trainer.global_step
        if step % self._every == 0 and step != self._last_step:  # with accumulation a step has several batches
            self._read(trainer)

    def on_train_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        if trainer.global_step != self._last_step:
            self._read(trainer)
        self._split = None

    def state_dict(self) -> dict[str, Any]:
        start = {
            name: {key: torch.from_numpy(item) for key, item in of.items()} for name, of in (self._start or {}).items()
        }
        return {"start": start, "history": self.history, "sets": self._fingerprints()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        kept, watched, sets = state_dict["start"], state_dict["sets"], self._fingerprints()
        if other := [name for name in {**watched, **sets} if watched.get(name) != sets.get(name)]:
            raise ValueError(
                "Expected the documents and max_tokens that the checkpoint has watched; "
                f"got others for {', '.join(other)}. Give the same, or train from the start."
            )
        self._start = {name: {key: item.numpy() for key, item in of.items()} for name, of in kept.items()} or None
        self.history = [dict(row) for row in state_dict["history"]]

    def _fingerprints(self) -> dict[str, str]:
        return {name: hashlib.sha256(repr(ids).encode()).hexdigest() for name, ids in self._ids.items()}

    @property
    def _last_step(self) -> float | None:
        return self.history[-1]["step"] if self.history else None

    def _read(self, trainer: lightning.Trainer) -> None:
        assert self._split is not None
        with isolate_rng(), evaluation_mode(self._split.model), torch.no_grad():
            try:
                tables = {name: self._table(ids, trainer.strategy.root_device) for name, ids in self._ids.items()}
            except ValueError as error:  # whether a training with such logits goes on is not for us to say
                rank_zero_warn(f"Step {trainer.global_step} has no membership scores. {error}")
                return
        now = {
            name: {key: score(ScoreInputs(table)).values for key, score in self._scores.items()}
            for name, table in tables.items()
        }
        self._start = self._start or now
        values = self._values(now, self._start)
        self.history.append({"step": trainer.global_step, **values})
        for logger in trainer.loggers:
            logger.log_metrics(values, step=trainer.global_step)
        trainer.callback_metrics.update({name: torch.tensor(value) for name, value in values.items()})

    def _values(
        self, now: Mapping[str, Mapping[str, FloatArray]], start: Mapping[str, Mapping[str, FloatArray]]
    ) -> dict[str, float]:
        values = {
            f"membership/{name}/{key}": float(item.mean()) for name, of in now.items() for key, item in of.items()
        }
        for name in now.keys() - {HELDOUT}:
            for key in self._scores:
                gain, heldout = (now[group][key] - start[group][key] for group in (name, HELDOUT))
                found = mean_difference(gain, heldout, range(len(gain)), range(len(heldout)), alpha=0.05)
                values[f"membership/{name}/{key}_gain"] = found.difference
                if np.isfinite(found.t):  # at the start nothing has changed yet
                    values[f"membership/{name}/{key}_t"] = found.t
        return dict(sorted(values.items()))

    def _table(self, documents: Sequence[Sequence[int]], device: torch.device) -> TokenTable:
        """What the model says now about every token behind a document's first."""
        assert self._split is not None
        lengths = [len(ids) for ids in documents]
        columns: dict[int, tuple[Tensor, ...]] = {}
        for batch in PaddedBatches(
            documents, length_buckets(lengths, self._max_batch_tokens, self._split.lengths.group)
        ):
            ids_BT, lengths_B = batch["input_ids"].to(device), batch["lengths"].to(device)
            scored_BT = torch.arange(1, ids_BT.shape[1], device=device) < lengths_B[:, None]
            features_ND = self._split.body(ids_BT)[:, :-1][scored_BT]
            found = token_statistics(features_ND, self._split.head, ids_BT[:, 1:][scored_BT])
            sizes = (batch["lengths"] - 1).tolist()
            parts = (part.cpu().split(sizes) for part in (found.log_prob, found.mean, found.std))
            columns |= dict(zip(batch["doc_index"].tolist(), zip(*parts, strict=True), strict=True))
        log_prob, mean, std = (
            torch.cat([columns[index][column] for index in range(len(documents))]).numpy() for column in range(3)
        )
        return TokenTable(
            tuple(map(str, range(len(documents)))),
            np.cumsum([0, *(length - 1 for length in lengths)], dtype=np.int64),
            np.concatenate([np.arange(1, length, dtype=np.int32) for length in lengths]),
            np.concatenate([np.asarray(ids[1:], dtype=np.int32) for ids in documents]),
            log_prob,
            mean,
            std,
        )


def _language_model(module: lightning.LightningModule, path: str) -> Any:
    """The submodule of that path. Raises ValueError where that is no language model, and says which one is."""
    modules = dict(module.named_modules())
    if _is_language_model(found := modules.get(path)):
        return found
    models = [name for name, item in modules.items() if _is_language_model(item)]
    outermost = [name for name in models if not any(name.startswith(f"{other}.") for other in models)]
    there = "nothing is there" if found is None else f"a {type(found).__name__} is there"
    advice = f"Pass {' or '.join(f'model={name!r}' for name in outermost)}." if outermost else "There is none in it."
    raise ValueError(
        f"{type(module).__name__} must have a causal language model of Transformers at model={path!r}; {there}. "
        f"{advice}"
    )


def _is_language_model(module: Any) -> bool:
    return hasattr(module, "config") and callable(getattr(module, "generate", None))


def _takes_one_pass(score: Score) -> bool:
    more = score.needs_more_passes or score.needs_reference or score.needs_texts or score.needs_counts
    return not more and score.views == ("original",) and score.asks is None


def _token_ids(texts: Texts, name: str, tokenizer: Any, max_tokens: int | None) -> list[list[int]]:
    if texts is None or isinstance(texts, str) or len(texts) < 2:
        without = (
            " Without them a rise cannot be distinguished from what all such text gains." if name == HELDOUT else ""
        )
        raise ValueError(f"{name} must be a list of two documents or more; got {texts!r}.{without}")
    items: list[Any] = list(texts)
    if any(isinstance(item, str) for item in items):
        if not callable(tokenizer):
            raise ValueError(
                f"{name} holds texts, which need a tokenizer of Transformers; got {tokenizer!r}. Pass tokenizer=..., "
                "or lists of token ids."
            )
        ids = encode_beginnings(tokenizer, items, max_tokens)
    else:
        ids = [[int(token) for token in item][:max_tokens] for item in items]
    if short := [index for index, item in enumerate(ids) if len(item) < 2]:
        raise ValueError(
            f"{name} must hold documents of two tokens or more; number {short[0]} (from 0) has fewer. Leave it out."
        )
    return ids
