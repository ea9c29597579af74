"""Rows of the presets are options of their groups, for Hydra, for `nonmember list` and for messages."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from nonmember.config.choices import descriptions, groups, options
from nonmember.config.compose import composed, explained
from nonmember.config.presets import described_rows, load_presets

TABLE = """
# What the table is. And more.
model:
  one: &one {description: "The first: of two", defaults: [pretrained, _self_], path: a/b}
  two: {<<: *one, path: a/c}
  three: {<<: *one, defaults: [one, _self_], path: null, label: c}
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


def test_a_row_has_its_own_description_or_its_content(tmp_path):
    (tmp_path / "a.yaml").write_text(TABLE)
    rows = [(name, what) for _, name, what in described_rows(tmp_path / "a.yaml")]
    assert rows == [("one", "The first: of two"), ("two", "a/c"), ("three", "as one with label=c")]


def test_what_one_brings_oneself_is_listed_first():
    (first, own), *others = descriptions("model").items()
    assert first.startswith("For models and documents of your own")
    assert own["pretrained"].startswith("Any Hugging Face causal language model")
    assert {"own_target", "endpoint"} <= own.keys()
    assert dict(others)["The micro world: models of about a million parameters, trained here, and what they need"]


WORLD = """
# Mine.
defaults: [base/known_truth@_here_, _self_]
name: mini
like: {like}
"""


def overridden(folder, *words):
    return composed("audit", [f"hydra.searchpath=[file://{folder}]", *words])


@pytest.fixture
def mini(tmp_path):
    """mini(like): the folder of a user's configs with a world of that name."""
    (tmp_path / "world").mkdir()

    def write(like):
        (tmp_path / "world" / "mini.yaml").write_text(WORLD.format(like=like))
        return tmp_path

    return write


def test_tables_of_another_folder_are_refused_and_not_passed_over(mini):
    folder = mini("own")
    (folder / "presets").mkdir()
    sentence = r"presets is not read: .* Write each row as a file, GROUP/NAME\.yaml"
    with pytest.raises(ValueError, match=sentence), overridden(folder, "world=mini"):
        pass


def test_a_world_takes_the_presets_of_the_one_it_is_like(mini):
    with composed("audit", ["world=micro", "method=kds"]) as (config, _):
        wanted = OmegaConf.to_container(config.method)
    with overridden(mini("pile"), "world=mini", "method=kds") as (config, _):  # pile is like micro
        assert OmegaConf.to_container(config.method) == wanted


@pytest.mark.parametrize("like", ["mini", "nowhere"])
def test_where_there_are_none_the_option_is_missed(mini, like):
    with (
        pytest.raises(ValueError, match=r"There is no training=mini_distillation"),
        explained(),
        overridden(mini(like), "world=mini"),
    ):
        pass
