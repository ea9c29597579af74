"""Answers: the model's own next-token distribution after each prompt, however it is batched."""

from __future__ import annotations

import functools

import lightning
import numpy as np
import torch

import tiny
from nonmember.observations.base import Reading
from nonmember.observations.passes.tokens import observe_answers
from nonmember.records import TokenTable

ANSWERS = [7, 3, 7]
one_process = functools.partial(lightning.Trainer, accelerator="cpu", devices=1)


def asked(model, prompts, folder, make_trainer=one_process, max_batch_tokens=64):
    reading = Reading(folder, make_trainer, max_batch_tokens, block_bytes=4096)
    counts = observe_answers(model, prompts, ANSWERS, reading)
    return counts, TokenTable.load(sorted(folder.glob("part-*.parquet")), list(prompts))


def prompts() -> dict[str, list[int]]:
    return {f"d{index}": ids for index, ids in enumerate(tiny.sequences_of_ids(23))}


def test_answers_are_those_of_the_models_own_logits(tmp_path):
    model, given = tiny.model(0), prompts()
    counts, table = asked(model, given, tmp_path)
    assert (counts.num_tokens, counts.num_documents) == (3 * 23, 23)
    assert table.doc_ids == tuple(given)
    for index, ids in enumerate(given.values()):
        with torch.no_grad():
            log_probs = model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
        rows = table.rows(index)
        assert table.token_id[rows].tolist() == ANSWERS
        assert table.position[rows].tolist() == [len(ids)] * 3
        np.testing.assert_allclose(table.log_prob[rows], log_probs[ANSWERS], rtol=0, atol=1e-5)


def test_batches_and_processes_do_not_matter(tmp_path):
    model, given = tiny.model(0), prompts()
    _, alone = asked(model, given, tmp_path / "alone", max_batch_tokens=1)
    two = functools.partial(lightning.Trainer, accelerator="cpu", devices=2, strategy="ddp_fork")
    _, shared = asked(model, given, tmp_path / "shared", two)
    np.testing.assert_allclose(alone.log_prob, shared.log_prob, rtol=0, atol=1e-5)
    assert np.array_equal(alone.token_id, shared.token_id)
