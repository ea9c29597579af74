"""Processes of a run that wait for others: not for ever, and not in silence."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
from lightning.fabric.utilities.rank_zero import rank_zero_only

import tiny
from nonmember.config.explain import explain, is_for_the_user


@pytest.mark.slow
def test_torch_waits_for_the_other_processes_as_long_as_we_do(tmp_path, monkeypatch):
    names = {"LOCAL_RANK": "1", "RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for name, value in {**names, "NODE_RANK": "0", "NONMEMBER_WAIT_MINUTES": "0.001"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(rank_zero_only, "rank", 0, raising=False)  # which a trainer sets
    compute = tiny.builder(tmp_path).compute
    make = functools.partial(compute.make_trainer, accelerator="cpu", devices=2, strategy="ddp")
    trainer = replace(compute, make_trainer=make).trainer(logger=False, enable_checkpointing=False)
    with pytest.raises(RuntimeError) as error:
        trainer.strategy.setup_environment()
    assert is_for_the_user(error.value)
    assert explain(error.value).startswith("The processes of this run did not find one another (")
    assert "RANK=1" in explain(error.value)
