"""Rows of the presets are options of their groups, for Hydra, for `nonmember list` and for messages."""

from __future__ import annotations

import pytest

from nonmember.config.choices import descriptions, groups, options
from nonmember.config.presets import load_presets

TABLE = """
# What the table is.
model:
  # The first. And more.
  one: {defaults: [pretrained, _self_], path: a/b}
  two: {path: a/c}
"""


def test_a_table_is_read_as_it_is_written(tmp_path):
    (tmp_path / "a.yaml").write_text(TABLE)
    assert load_presets(tmp_path)["model"]["one"] == {"defaults": ["pretrained", "_self_"], "path": "a/b"}


def test_a_name_is_given_once(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(TABLE)
    with pytest.raises(ValueError, match=r"b\.yaml must give new names; got model=one, which another file has"):
        load_presets(tmp_path)


def test_rows_and_files_are_options_alike():
    assert {"experiment", "model", "data"} <= set(groups())
    assert "presets" not in groups()
    assert {"pretrained", "micro_target", "pythia_70m"} <= set(options("model"))


def test_a_comment_describes_the_rows_below_it():
    what = descriptions("model")
    assert what["pythia_160m"] == what["pythia_70m"] == "Pythia: the paper's targets"
    assert what["pretrained"].startswith("Any Hugging Face causal language model")
