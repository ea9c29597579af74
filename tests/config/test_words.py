"""How values are written as words of the command line."""

from __future__ import annotations

from nonmember.config.compose import composed
from nonmember.config.words import override


def test_a_value_is_taken_as_it_is():
    name = "a ${b} 'c' [1]"
    with composed("score", [override("target.path", name), "data.path=x"]) as (config, _):
        assert config.target.path == name


def test_the_sign_of_a_home_is_followed(monkeypatch):
    """Shells leave the ~ of outputs=~/large, and a folder of that name would be made."""
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("NONMEMBER_OUTPUTS", "~/mine")
    for words, outputs in (([], "mine"), (["outputs=~/large"], "large"), ([override("outputs", "~/a b")], "a b")):
        with composed("audit", ["world=micro", *words]) as (config, folder):
            assert config.store == f"/home/me/{outputs}/store"
            assert folder.is_relative_to(f"/home/me/{outputs}/audits")
