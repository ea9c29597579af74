"""What is taken from Hydra's inner parts does what is expected of it."""

from __future__ import annotations

import contextlib

from omegaconf import OmegaConf

from nonmember.config.compose import cells_of
from nonmember.config.hydra_compat import options_first


def test_options_come_first():
    options = ["-m", "--config-dir", "x", "--config-name=y", "-cn", "z", "--cfg", "job", "-p", "a.b"]
    assert options_first(["seed=1", *options[:3], "~x", *options[3:], "x=2"]) == [*options, "seed=1", "~x", "x=2"]


def test_a_sweep_composes_the_same_without_the_files_that_its_cells_share(monkeypatch):
    """Cells that differ in values, in a group, and in what another file looks up."""
    words = ["world=micro", "data.half=a,b", "trainer=cpu,gpu", "+world.more=1,2"]

    def cells() -> list[dict]:
        return [OmegaConf.to_container(config, resolve=False) for config, _ in cells_of("audit", words)]

    quick = cells()
    monkeypatch.setattr("nonmember.config.compose.shared_files", lambda kept: contextlib.nullcontext())
    assert cells() == quick
    assert len({repr(cell) for cell in quick}) == 8
