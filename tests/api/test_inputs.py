"""What a program hands over, as the command line would say it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from nonmember.api.inputs import Inputs
from nonmember.config.compose import override


def test_in_a_world_with_models_and_documents_of_its_own_ours_take_their_place():
    inputs = Inputs.of({"world": "micro"}, {"seed": 1, "name": None})
    inputs.default("seed", 2)
    inputs.default("name", "audits")
    inputs.add_model("target", {"path": "folder", "dtype": "bfloat16"})
    inputs.add_texts("documents", "suspect.jsonl")
    inputs.add_texts("general", "general.jsonl")
    assert inputs.overrides == [
        *("world=micro", "seed=1", "name=audits", "model@target=pretrained", "target.path=folder"),
        *("target.dtype=bfloat16", "data=documents", "data.path=suspect.jsonl"),
        *("+data@general=documents", "general.path=general.jsonl"),
    ]
    inputs.add_model("reference", node := {"_target_": "nonmember.models.Pretrained", "path": "other"})
    assert inputs.replaced == {"reference": node}


def test_a_model_with_an_adapter_is_refused():
    model = SimpleNamespace(state_dict=dict, config=None, peft_config={})
    with pytest.raises(ValueError, match=r"target must be a model without an adapter; .* Pass model\.merge_and_unload"):
        Inputs([]).add_model("target", (model, str))


@pytest.mark.parametrize(
    ("value", "written"),
    [(None, "null"), (True, "true"), (0.5, "0.5"), ([1, {"b": [False]}], "[1,{b:[false]}]"), ("plain", "plain")],
)
def test_values_as_hydra_reads_them(value, written):
    assert override("a.b", value) == f"a.b={written}"
