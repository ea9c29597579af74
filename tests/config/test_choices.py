"""What `nonmember list` and messages say there is to choose from."""

from __future__ import annotations

from nonmember.config.choices import descriptions, groups, options


def test_each_folder_is_a_group_and_each_file_an_option():
    assert {"experiment", "model", "data"} <= set(groups())
    assert {"pretrained", "micro_target", "pythia_70m"} <= set(options("model"))


def test_what_one_brings_oneself_is_listed_first_and_then_world_by_world():
    (first, own), *others = descriptions("model").items()
    assert first.startswith("For models and documents of your own")
    assert own["pretrained"].startswith("Any Hugging Face causal language model")
    assert {"own_target", "endpoint"} <= own.keys()
    micro = next(rows for title, rows in others if "micro_target" in rows)
    assert micro["micro_s"].startswith("GPT-NeoX")
    assert not micro.keys() & own.keys()
