"""Cells side by side give the numbers of cells one after the other, which depend on the number of threads."""

from __future__ import annotations

import pytest
import torch
from omegaconf import OmegaConf

from nonmember.config.roots import FOLDER_VARIABLE, THREADS, WORDS_VARIABLE, RememberSweepFolder

backends = pytest.importorskip("joblib._parallel_backends")


@pytest.mark.parametrize("given", [None, "7"])
def test_workers_of_joblib_use_as_many_threads_as_one_process(given, monkeypatch, tmp_path):
    for variable in (*THREADS, FOLDER_VARIABLE, WORDS_VARIABLE):  # so that all are taken back
        monkeypatch.setenv(variable, given or "")
        if given is None:
            monkeypatch.delenv(variable)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    launcher = "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher"
    config = {"sweep": {"dir": str(tmp_path)}, "launcher": {"_target_": launcher}, "overrides": {"task": []}}
    RememberSweepFolder().on_multirun_start(OmegaConf.create({"hydra": config}))
    environment = backends.LokyBackend()._prepare_worker_env(n_jobs=2)
    assert {environment[variable] for variable in THREADS} == {given or "3"}
