"""Cells run side by side, by other processes: same results, one closing table, failures carried home."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import tiny
from command_line import question, rows_of, write_rows
from nonmember.results.result import AuditResult


def model_folder(folder: Path, seed: int) -> Path:
    words = {"<|endoftext|>": 0, **{word: place for place, word in enumerate(tiny.WORDS, start=1)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<|endoftext|>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>").save_pretrained(folder)
    tiny.model(seed, vocab_size=len(words)).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("launcher", ["joblib", pytest.param("submitit_local", marks=pytest.mark.slow)])
def test_two_cells_side_by_side(launcher, tmp_path):
    pytest.importorskip(f"hydra_plugins.hydra_{launcher.partition('_')[0]}_launcher")
    texts = tiny.random_texts(32, seed=3)
    sound = write_rows(tmp_path / "sound.jsonl", rows_of(texts))
    broken = write_rows(tmp_path / "broken.jsonl", [{"id": "a", "txt": "moss"}])
    target, reference = (model_folder(tmp_path / f"tiny{seed}", seed) for seed in (0, 1))
    command, *arguments = question(target, reference, Path(f"{sound},{broken}"), f"launcher={launcher}", "name=beside")
    done = subprocess.run(
        [sys.executable, "-m", "nonmember.cli", command, "-m", *arguments],
        cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    folder = tmp_path / "outputs" / "audits" / "beside"
    (path,) = folder.glob("*/result.json")
    result = AuditResult.load(path)
    assert (result.question.sweep, result.statistics.num_documents) == ("beside", 32)
    assert len(list(folder.glob("*/error.json"))) == 1
    # The closing table is shown by the process that was started, though it ran neither cell.
    assert "models trained: 1, models found: 0" in done.stdout
    assert "failed" in done.stdout
    assert "has no column 'text'" in done.stdout
    assert "nonmember audit: " in done.stderr
    assert not list(folder.glob(".cells-*")), "the workers' notes are gone"
