"""`nm.audit`: the same question as on the command line, hence the same answer, found by either."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from omegaconf import OmegaConf

import nonmember as nm
from api.conftest import SHORT, SHORT_READING
from command_line import only, rows_of, write_rows
from nonmember import corpora
from nonmember import models as kinds

BLANK = ["", " \n", "\u200b\ufeff", float("nan")]


@pytest.fixture
def question(make_model, texts) -> dict[str, object]:
    path = write_rows(Path("novels.jsonl"), rows_of(texts))
    return {"target": make_model(0), "reference": make_model(1), "documents": path}


@pytest.fixture
def words(question) -> list[str]:
    """The same question on the command line."""
    places = {"target": "target.path", "reference": "reference.path", "documents": "data.path"}
    return [
        "audit",
        "method=prism",
        "logger=none",
        *(f"{places[key]}={value}" for key, value in question.items()),
        *(f"{key}={value}" for key, value in SHORT.items()),
    ]


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("answered") / "outputs"


@pytest.fixture
def answered(question, kept) -> nm.FinishedAudit:
    """The question has its answer here, made once for all tests."""
    if kept.exists():
        shutil.copytree(kept, "outputs")
        return nm.audit("prism", **question, overrides=SHORT)
    found = nm.audit("prism", **question, overrides=SHORT)
    assert "models_trained" in made(found)
    shutil.copytree("outputs", kept)
    return found


def made(found: nm.FinishedAudit) -> set[str]:
    return {name for name, number in found.result.provenance.made.items() if number}


@pytest.mark.slow
def test_what_the_command_line_made_is_found(nonmember, question, words):
    assert nonmember(*words).status == 0
    path = only(Path("outputs/audits/mine"), "*/result.json")
    before = path.stat().st_mtime_ns
    found = nm.audit("prism", **question, overrides=SHORT)
    assert found.folder == path.parent.absolute()
    assert (path.stat().st_mtime_ns, made(found)) == (before, set())
    assert found.verdict == json.loads(path.read_text())["verdict"]["decision"]


@pytest.mark.slow
@pytest.mark.usefixtures("answered")
def test_the_command_line_finds_what_was_made(nonmember, words):
    said = nonmember(*words)
    assert ("found" in said.out, said.status) == (True, 0), said.err
    assert "models trained: 0" in said.out


def test_models_and_texts_in_memory(answered, models, texts):
    """The store knows them by content: a second call trains nothing, and the same texts are the same corpus."""
    target, reference = models(0), models(1)
    before = {name: value.clone() for name, value in target[0].state_dict().items()}
    frame = pd.DataFrame(rows_of(texts))
    asked = {"target": target, "reference": reference, "overrides": SHORT}
    first = nm.audit("prism", documents=frame, **asked)
    assert first.result.provenance.keys["corpus"] == answered.result.provenance.keys["corpus"]
    # The same weights and texts give the same scores, whatever they are called.
    pd.testing.assert_frame_equal(first.scores(), answered.scores())
    assert (first.p_value, first.statistic) == (answered.p_value, answered.statistic)
    again = nm.audit("prism", documents=pa.Table.from_pandas(frame), **asked)
    assert (again.folder, made(again)) == (first.folder, set())
    elsewhere = nm.audit("prism", documents=frame, **asked, name="elsewhere")
    assert "models_trained" not in made(elsewhere)
    assert all(torch.equal(before[name], value) for name, value in target[0].state_dict().items())
    # Nothing of the given models is on the disk.
    assert len(list(Path("outputs/store/models").glob("[!.]*"))) == 2, "the two distilled references alone"


@pytest.mark.slow
def test_blank_rows_change_no_number_and_are_named(answered, question, texts):
    rows = [*rows_of(texts[:20]), *({"id": f"blank{index}", "text": text} for index, text in enumerate(BLANK))]
    found = nm.audit("prism", **question | {"documents": pd.DataFrame([*rows, *rows_of(texts)[20:]])}, overrides=SHORT)
    assert found.result.provenance.keys == answered.result.provenance.keys
    assert (found.p_value, found.statistic) == (answered.p_value, answered.statistic)
    assert found.result.exclusions.dropped == {"blank": 4}
    warning = "Blank documents of the suspect text were left out (4): blank0, blank1, blank2, blank3."
    assert set(found.warnings) == {*answered.warnings, warning}


@pytest.mark.slow
def test_blank_rows_of_what_is_compared_with(texts):
    alike = [f"{text} " for text in texts]  # equal but for a blank
    found = nm.audit("blind", documents=texts, heldout=[*alike, "", None], overrides={"max_layout_auc": None})
    assert found.warnings[0] == "Blank documents of the held-out text were left out (2): 40, 41."
    assert found.warnings[1].startswith("40 texts of the suspect set are in the held-out set too")


def test_documents_that_are_given_twice_are_told(models, texts):
    asked = {"target": models(0), "reference": models(1), "heldout": [f"fern {text}" for text in texts]}
    found = nm.audit("difference_in_differences_loss", **asked, documents=[*texts, texts[0]], overrides=SHORT_READING)
    assert any(text.startswith("1 of 41 documents of the suspect set are near copies") for text in found.warnings)
    prefix = {"unseen": ["pine lark", *asked["heldout"][:2]], "overrides": {"method.max_tokens": 30}}
    found = nm.audit("levels_costly", **asked, **prefix, documents=texts)
    assert any(text.startswith("2 texts of the held-out set are in the unseen set too") for text in found.warnings)


@pytest.mark.slow
def test_weights_that_changed_are_another_model(models, texts):
    model, tokenizer = models(0)
    asked = {"documents": texts, "reference": models(1), "overrides": SHORT_READING}
    first = nm.audit("rank_agreement", target=(model, tokenizer), **asked)
    with torch.no_grad():
        next(model.parameters()).mul_(1.5)
    second = nm.audit("rank_agreement", target=(model, tokenizer), **asked)
    assert first.folder != second.folder
    assert first.result.provenance.keys["target"] != second.result.provenance.keys["target"]
    tokenizer("a text", truncation=True, max_length=3)  # which leaves a mark in the tokenizer
    assert nm.audit("rank_agreement", target=(model, tokenizer), **asked).folder == second.folder


@pytest.mark.slow
def test_a_list_is_numbered_from_0(models, texts):
    """So that JSON lines with these ids are the same corpus."""
    path = write_rows(Path("numbered.jsonl"), [{"id": str(index), "text": text} for index, text in enumerate(texts)])
    asked = {"target": models(0), "reference": models(1), "overrides": SHORT_READING}
    item = nm.audit("rank_agreement", documents=texts, **asked)
    other = nm.audit("rank_agreement", documents=path, **asked)
    assert item.result.provenance.keys["corpus"] == other.result.provenance.keys["corpus"]
    assert item.scores()["doc_id"].tolist() == [str(index) for index in range(len(texts))]


def test_the_test_on_its_own_gives_the_audits_numbers(answered):
    found = answered
    for shown in (*found.answer.lines(), found.folder.name, f"{found.p_value:.4g}", *found.warnings):
        assert shown in repr(found)
    scores = found.scores()
    test = nm.prism_test(scores["reference"], scores["target"], scores["distilled"], num_resamples=200)
    assert (test.statistic, test.p_value) == (found.statistic, found.p_value)
    assert (test.ci_low, test.ci_high) == found.interval
    np.testing.assert_array_equal(test.distribution, found.distribution())
    arrays, number = (scores["reference"], scores["target"], scores["distilled"]), len(scores)
    pairs = nm.prism_test(*arrays, num_resamples=200, clusters=[f"work{index // 2}" for index in range(number)])
    assert pairs.statistic == test.statistic
    assert not np.array_equal(pairs.distribution, test.distribution)
    with pytest.raises(ValueError, match="2 clusters of documents are left"):
        nm.prism_test(*arrays, clusters=[f"work{index % 2}" for index in range(number)])


@pytest.mark.slow
def test_nothing_is_left_behind(question, capfd):
    """Neither of Hydra nor of OmegaConf, and nothing is printed that a program did not ask for."""
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.hydra_config import HydraConfig
    from omegaconf.resolvers import oc

    HydraConfig.instance().cfg = None  # of commands that ran in this process before
    OmegaConf.clear_resolvers()
    OmegaConf.register_new_resolver("oc.env", oc.env, replace=True)
    theirs = OmegaConf.create({"home": "${oc.env:HOME}"})
    nm.audit("rank_agreement", **question, overrides=SHORT_READING)
    assert not GlobalHydra.instance().is_initialized()
    assert not HydraConfig.initialized()
    assert not OmegaConf.has_resolver("cell_name")
    assert theirs.home == os.environ["HOME"]
    assert capfd.readouterr().out == ""


@pytest.mark.slow
def test_in_a_thread(question):
    found = []

    def ask() -> None:
        found.append(nm.audit("rank_agreement", **question, overrides=SHORT_READING))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    ask()
    assert found[0].folder == found[1].folder


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"reference": None}, "prism needs a reference model that has not read the documents; pass reference=..."),
        (
            {"documents": None, "target": None},
            "prism needs a target model and documents; pass target=..., documents=...",
        ),
        ({"target": "nowhere/at/all"}, "'nowhere/at/all' is not a folder on this machine"),
        ({"target": 3}, "target must be a path, a name on the Hugging Face hub, or (model, tokenizer)"),
        (
            {"documents": 3},
            "documents must be a path, a list of texts, a pandas DataFrame or an Arrow table; got an int",
        ),
        ({"documents": [1, 2]}, "got a list of int"),
        ({"documents": [{"a": "x y", "b": "y z"}] * 30}, 'Name it: overrides=["data.text_field=a"]'),
        ({"target": {"url": "http://127.0.0.1:9/v1"}}, "prism needs a value for target.model"),
        ({"overrides": ["sed=1"]}, "There is no key sed; did you mean seed?"),
        ({"seed": "one"}, "seed cannot be that"),
        ({"trainer": "ddp"}, "A call from Python runs in one process"),
        ({"method": "prsm"}, "There is no method=prsm; did you mean prism"),
        ({"logger": ["csv", "wnadb"]}, "There is no logger=wnadb; did you mean wandb? logger can be csv, mlflow"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(question, changed, sentence):
    with pytest.raises(ValueError) as error:
        nm.audit(**{"method": "prism", **question, **changed})
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_what_another_program_has_in_memory(tmp_path):
    """Of a config that was kept: it can be composed, and says what it lacks when that is needed."""
    from tiny import builder

    for spec in (corpora.InMemory("digest"), kinds.InMemory("content", "a model")):
        with pytest.raises(ValueError, match="in the memory of another program"):
            builder(tmp_path).get(spec)
