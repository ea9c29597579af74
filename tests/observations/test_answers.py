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


def test_answers_are_those_of_the_models_own_logits(tmp_path):
    model, given = tiny.model(0), {f"d{index}": ids for index, ids in enumerate(tiny.sequences_of_ids(23))}
    counts = observe_answers(model, given, ANSWERS, Reading(tmp_path, one_process, 64, block_bytes=4096))
    table = TokenTable.load([tmp_path / "part-0.parquet"], list(given))
    assert (counts["num_tokens"], counts["num_documents"]) == (3 * 23, 23)
    assert table.doc_ids == tuple(given)
    for index, ids in enumerate(given.values()):
        with torch.no_grad():
            log_probs = model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
        rows = table.rows(index)
        assert table.token_id[rows].tolist() == ANSWERS
        assert table.position[rows].tolist() == [len(ids)] * 3
        np.testing.assert_allclose(table.log_prob[rows], log_probs[ANSWERS], rtol=0, atol=1e-5)
