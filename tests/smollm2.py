"""SmolLM2-135M-Instruct for tests, where it is installed."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from nonmember.models import PackagedGguf

CONFIG = Path(__file__).parent.parent / "conf/model/smollm2.yaml"


def model() -> PackagedGguf:
    """Skips the test where the model is not installed."""
    pytest.importorskip("gguf", reason="the model is in the GGUF format: make setup EXTRAS=real")
    made: PackagedGguf = instantiate(OmegaConf.load(CONFIG))
    try:
        _ = [importlib.metadata.distribution(package) for package in made.pieces]
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("SmolLM2 is not installed: make setup EXTRAS=real")
    return made
