"""The model that a command is about has one spelling in all commands, and the others work too."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from nonmember.config.compose import composed
from nonmember.config.words import override

GIVEN = ["world=micro", "model@target=micro_target_high", "target.label=ours"]
OTHER = ["world=micro", "model=micro_target_high", "model.label=ours"]


@pytest.mark.parametrize(("command", "key"), [("audit", "target"), ("score", "target"), ("train", "model")])
def test_both_spellings_are_the_same(command, key):
    models = []
    for words in (GIVEN, OTHER, [*OTHER[:2], override("model.label", "ours")]):
        with composed(command, words) as (config, _):
            models.append(OmegaConf.to_container(config[key], resolve=True))
    assert models[0] == models[1] == models[2]
    assert models[0]["label"] == "ours"


def test_a_value_is_taken_as_it_is():
    name = "a ${b} 'c' [1]"
    for key in ("model.path", "target.path"):
        with composed("score", [override(key, name), "data.path=x"]) as (config, _):
            assert config.target.path == name


def test_the_sign_of_a_home_is_followed(monkeypatch):
    """Shells leave the ~ of outputs=~/large, and a folder of that name would be made."""
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("NONMEMBER_OUTPUTS", "~/mine")
    for words, outputs in (([], "mine"), (["outputs=~/large"], "large"), ([override("outputs", "~/a b")], "a b")):
        with composed("audit", ["world=micro", *words]) as (config, folder):
            assert config.store == f"/home/me/{outputs}/store"
            assert folder.is_relative_to(f"/home/me/{outputs}/audits")
