"""What is replaced in Hydra and OmegaConf is there, and does what is taken from it."""

from __future__ import annotations

import pytest
from hydra._internal.config_repository import ConfigRepository
from hydra.plugins.config_source import ConfigResult
from omegaconf import OmegaConf

from nonmember.config import hydra_compat
from nonmember.config.hydra_compat import checked_options, interpolations
from nonmember.config.roots import register


@pytest.mark.parametrize(
    "needed", [("load_config", "self path"), ("load_it", "self config_path"), ("load_attribute", None)]
)
def test_another_hydra_is_named(needed):
    with pytest.raises(
        ImportError, match=r"^hydra-core 1\.\d.* is not what .*: ConfigRepository\.load_.*Install hydra-core"
    ):
        hydra_compat.require_known([(ConfigRepository, *needed)])


def test_what_hydra_keeps_of_a_file():
    assert {"config", "path", "provider"} <= set(ConfigResult.__dataclass_fields__)


@pytest.mark.parametrize("word", ["--exp", "--experimental-re", "--e=x.pickle", "--config-na", "--mult", "--nosuch"])
def test_no_option_can_be_shortened(word):
    with pytest.raises(ValueError, match=r"^Unrecognized arguments: .*none can be shortened"):
        checked_options(["seed=1", word])


@pytest.mark.parametrize("words", [["--experimental-rerun", "x.pickle"], ["--experimental-rerun=x.pickle"]])
def test_no_pickle_is_read(words):
    with pytest.raises(ValueError, match="reads a pickle"):
        checked_options(words)


def test_other_options_are_left_to_hydra():
    options = ["-m", "--config-dir", "x", "--config-name=y", "-cn", "z", "--cfg", "job", "-p", "a.b"]
    assert checked_options(["seed=1", *options[:3], "~x", *options[3:], "x=2"]) == [*options, "seed=1", "~x", "x=2"]


def test_following_interpolations_costs_little(monkeypatch):
    register()
    monkeypatch.setattr(hydra_compat.Interpolations, "MOST", 1000)
    doubling = {chr(code): f"${{{chr(code + 1)}}}" * 9 for code in range(ord("a"), ord("h"))} | {"h": "x"}
    in_lists = {chr(code): [f"${{{chr(code + 1)}}}"] * 9 for code in range(ord("a"), ord("h"))} | {"h": "x"}
    long = {"a": "${b}" * 9, "b": "x" * 100_000}
    for config in (doubling, in_lists, long):
        interpolations.renew()
        with pytest.raises(Exception, match="stand for too much"):
            OmegaConf.to_container(OmegaConf.create({"all": config["a"], **config}), resolve=True)
    interpolations.renew()
    assert OmegaConf.create({"a": "${b}${b}", "b": "x"}).a == "xx"
    interpolations._left = 10**9  # of this process's other tests
