"""A cell that is looked at before its sweep is run as it would be otherwise."""

from __future__ import annotations

import sys

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from nonmember.config.roots import run_with_hydra


class Watching:
    def __init__(self) -> None:
        self.seen = []

    def begin(self, launcher):
        pass

    def see(self, place, config, folder):
        self.seen.append((place, OmegaConf.to_yaml(config), folder))

    def hands_out(self, launcher):
        return False

    def launcher(self, launcher):
        return launcher


@pytest.mark.parametrize("most_kept", [64, 1])
def test_what_is_seen_is_what_is_run_and_composed_no_second_time(tmp_path, monkeypatch, most_kept):
    composed, ran, watching = [], [], Watching()
    compose = ConfigLoaderImpl.load_sweep_config

    def counted(self, master_config, sweep_overrides):
        composed.append(tuple(sweep_overrides))
        return compose(self, master_config, sweep_overrides)

    def task(config, folder):
        place = HydraConfig.get().job.num
        ran.append((place, OmegaConf.to_yaml(config), folder))
        assert HydraConfig.get().runtime.output_dir == str(folder)

    monkeypatch.setattr(ConfigLoaderImpl, "load_sweep_config", counted)
    monkeypatch.setattr("nonmember.config.sweeping.MOST_KEPT", most_kept)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    monkeypatch.setattr(sys, "argv", ["nonmember", "-m", "world=micro", "seed=1,2,3"])
    run_with_hydra("audit", task, watching)
    assert ran == watching.seen
    assert len({folder for _, _, folder in ran}) == 3
    assert len(composed) == 3 + max(0, 3 - most_kept)
