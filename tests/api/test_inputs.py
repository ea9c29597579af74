"""What a program hands over, as the command line would say it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from omegaconf import OmegaConf

from nonmember.api.inputs import Inputs
from nonmember.config.compose import composed
from nonmember.config.words import override, with_literal_paths

# What Hydra's grammar or OmegaConf give a meaning, or cannot read.
ODD = [
    *("café", "中文", "e\u0301", "\u200b", "😀", "a=b", "=", "a b", " a ", "tab\t", "line\nbreak", "(a)", "[a,b]"),
    *("{a: b}", "#a", "it's", 'a"b', "'a'", "!a", "&a", ";a", "~a", "~", "a,b", "a:b", "@a", "$a", "50%", "^a", "`a`"),
    *("<a>", "a|b", "*", "?", "\\", "a\\", "\\'", "${a}", "${oc.env:HOME}", "\\${a}", "\\\\${a}", "$${a}", "${a", "}"),
    *("glob(*)", "range(1,3)", "--a", "+a", "\udcff"),
]
NUMBERS = ["null", "true", "nan", "007", "1e5", "1_0"]


def test_no_value_is_read_by_a_grammar():
    """All at once, as composing takes a while."""
    words = [override(f"+odd.a{index}", value) for index, value in enumerate(ODD + NUMBERS)]
    nested = {"a b": ODD, "é=": {"k:": [None, True, 0.5]}}
    inputs = Inputs.of(
        {"+odd.nested": nested, "data.label": "${x}"}, {"k": (0.1, np.float64(0.5)), "outputs": Path("o")}
    )
    with composed("score", [*words, *inputs.overrides]) as (config, _):
        found = OmegaConf.to_container(config.odd, resolve=True)
        assert (config.k, config.outputs, config.data.label) == ([0.1, 0.5], "o", "${x}")
    assert found.pop("nested") == nested
    assert list(found.values()) == ODD + NUMBERS


def test_what_stands_behind_the_sign_and_is_there_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ODD + NUMBERS:
        Path(name).write_text("a")
    words = with_literal_paths([f"+odd.a{index}={name}" for index, name in enumerate(ODD)])
    with composed("score", words) as (config, _):
        assert list(config.odd.values()) == ODD
    others = ["seed=007", "costly=true", "data.path=[a.jsonl,b.jsonl]", "data.path=gone/é", "--cfg", "k"]
    assert with_literal_paths(others) == others
    assert with_literal_paths(["data.path=007"]) == ["data.path='007'"]


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


def test_scores_that_differ_have_folders_of_their_own():
    named = "out_models=named out_models.paths="
    differing = ["", "scores=[zlib]", "scores=[wbc]", "scores=[wbc] wbc.widest=20", "prefix.path=unread.txt"]

    def folder(words: str) -> Path:
        with composed("score", ["target.path=model", "data.path=own.jsonl", *words.split()]) as (_, found):
            return found

    assert len({folder(words) for words in (*differing, f"{named}[a]", f"{named}[b]")}) == len(differing) + 2
    assert folder("scores=[one_pass]") == folder("")


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
def test_conversations_in_any_list(kind):
    """Also where the first one has no turn, of which the sentence about that row then tells."""
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    inputs = Inputs([])
    inputs.add_texts("documents", pd.Series([[], kind(turns)]) if kind is not list else [[], turns])
    assert "data=chat" in inputs.overrides
    with pytest.raises(ValueError, match="got a set"):
        inputs.add_texts("documents", {"texts", "without an order"})


def test_no_column_of_a_table_is_lost():
    texts = [["a", "b"], ["c", "d"]]
    for table in (pd.DataFrame(texts, columns=["text"] * 2), pa.table(texts, names=["text"] * 2)):
        with pytest.raises(ValueError, match="documents must have columns of different names; 'text' occurs twice"):
            Inputs([]).add_texts("documents", table)
    with pytest.raises(ValueError, match=r"list of texts, a pandas DataFrame or an Arrow table; got an? \w+"):
        Inputs([]).add_texts("documents", pa.array(["a"]))
    Inputs([]).add_texts("documents", [{"text": "a", None: ["what csv.DictReader has no name for"]}])


def test_a_model_with_an_adapter_is_refused():
    model = SimpleNamespace(state_dict=dict, get_input_embeddings=list, config=None, peft_config={})
    with pytest.raises(ValueError, match=r"target must be a model without an adapter; .* Pass model\.merge_and_unload"):
        Inputs([]).add_model("target", (model, str))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        *((None, "null"), (True, "true"), (0.5, "0.5"), ([1, {"b": [False]}], "[1,{b:[false]}]"), ("plain", "plain")),
        *((np.int64(3), "3"), (np.array([0.1, 0.5]), "[0.1,0.5]"), (np.array(["a"]), "[a]")),
    ],
)
def test_values_as_hydra_reads_them(value, written):
    assert override("a.b", value) == f"a.b={written}"
