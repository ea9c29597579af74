"""A cell that is looked at before its sweep is run as it would be otherwise."""

from __future__ import annotations

import sys

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.hydra_config import HydraConfig
from hydra.errors import ConfigCompositionException, MissingConfigException
from hydra.types import RunMode
from omegaconf import OmegaConf

from nonmember.config.choices import config_directory
from nonmember.config.hydra_compat import shared_files
from nonmember.config.roots import register, run_with_hydra


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


@pytest.mark.slow
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


BY_HYDRA_ALONE = [
    ["seed=1", "method=prism", "method.distillation.lambda_=0.3"],
    ["seed=2", "method=prism", "method.distillation.lambda_=0.7", "+data.note={a: 1}"],
    ["seed=2", "method=llm_di", "~method.alpha"],
    ["seed=3", "method=prism", "data.domain=sympy", "method.distillation.lambda_=0.7"],
]


@pytest.mark.slow
def test_cells_that_share_files_are_composed_as_hydra_alone_composes_them():
    def composed(cells: list[list[str]]) -> list[str]:
        loader = ConfigLoaderImpl(create_config_search_path(str(config_directory())))
        found = []
        for words in cells:
            config = loader.load_configuration("audit", ["world=micro", *words], RunMode.RUN, from_shell=False)
            config.hydra.job.name = "audit"
            found.append(OmegaConf.to_yaml(config))
            OmegaConf.update(config, "method", {"name": "changed"}, merge=False)  # must stay with this cell
        return found

    register()
    alone = [composed([cell])[0] for cell in BY_HYDRA_ALONE]
    with shared_files():
        assert composed(BY_HYDRA_ALONE) == alone
        with pytest.raises(ConfigCompositionException, match=r"Could not override 'method\.lambda'"):
            composed([["method=prism", "method.lambda=1"]])
        with pytest.raises(MissingConfigException, match="prismm"):
            composed([["method=prismm"]])
