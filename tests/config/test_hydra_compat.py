"""What is replaced in Hydra and OmegaConf is there, and does what is taken from it."""

from __future__ import annotations

import inspect

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository, IConfigRepository
from hydra.plugins.config_source import ConfigResult, ConfigSource
from omegaconf import Container, OmegaConf

from nonmember.config import hydra_compat
from nonmember.config.hydra_compat import checked_options, interpolations
from nonmember.config.roots import register

NEEDED = [
    (ConfigRepository, "load_config", "self config_path"),  # reads every file
    (ConfigRepository, "_find_object_source", "self config_path object_type"),  # says where it is from
    (IConfigRepository, "load_config", "self config_path"),
    (ConfigLoaderImpl, "_load_single_config", "self default repo"),  # puts it below its package
    (ConfigSource, "_normalize_file_name", "filename"),  # adds .yaml
    (Container, "resolve_parse_tree", "self parse_tree node memo key"),  # follows every ${...}
]


@pytest.mark.parametrize(("owner", "name", "parameters"), NEEDED)
def test_what_is_needed_of_hydra(owner, name, parameters):
    function = inspect.unwrap(inspect.getattr_static(owner, name))
    function = getattr(function, "__func__", function)
    if owner is Container or "quick_configs" not in function.__code__.co_filename:  # which itself stands in between
        assert " ".join(inspect.signature(function).parameters) == parameters
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
