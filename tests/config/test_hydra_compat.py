"""What is taken from Hydra's inner parts does what is expected of it."""

from __future__ import annotations

from nonmember.config.hydra_compat import options_first


def test_options_come_first():
    options = ["-m", "--config-dir", "x", "--config-name=y", "-cn", "z", "--cfg", "job", "-p", "a.b"]
    assert options_first(["seed=1", *options[:3], "~x", *options[3:], "x=2"]) == [*options, "seed=1", "~x", "x=2"]
