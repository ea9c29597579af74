"""`nm.score`: the table of `nonmember score`, of texts and models of the calling program."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from tokenizers.normalizers import Replace

import nonmember as nm
from command_line import rows_of, write_rows
from nonmember.models.kinds.pretrained import load_folder


def observations() -> set[str]:
    return {path.name for path in Path("outputs/store/observations").iterdir()}


def test_a_row_per_text(make_model):
    table = nm.score(["moss fern reed pine", "a", "\u200b \u200b", None, "lark"], make_model(0), k=[0.2, 0.5])
    assert table["doc_id"].tolist() == ["0", "1", "2", "3", "4"]
    assert {"log_likelihood", "zlib", "min_k_0.2", "min_k_plus_plus_0.5", "num_tokens", "reason"} <= set(table)
    assert table["log_likelihood"].notna().tolist()[:4] == [True, False, False, False]
    assert "fewer than two tokens" in table["reason"][1]
    assert all(reason.startswith("the text is blank") for reason in table["reason"][2:4])
    assert table.attrs["nonmember"]["k"] == [0.2, 0.5]
    assert table.attrs["nonmember"]["tokens"] == {"model": {"bos": None, "eos": None}}


def test_a_beginning_of_text_token_has_the_first_token_scored(make_model):
    text, loaded = ["moss fern reed pine"], load_folder(make_model(0))
    loaded.tokenizer.bos_token = loaded.tokenizer.eos_token
    given = (loaded.model, loaded.tokenizer)
    plain, marked = nm.score(text, given), nm.score(text, given, tokens={"bos": "always"})
    assert marked["num_tokens"][0] == plain["num_tokens"][0] + 1
    assert marked.attrs["nonmember"]["tokens"] == {"model": {"bos": "<|endoftext|>", "eos": None}}
    ids = torch.tensor([[0, *loaded.tokenizer(text)["input_ids"][0]]])
    log_probs = loaded.model(ids).logits[0, :-1].double().log_softmax(-1)
    assert marked["log_likelihood"][0] == pytest.approx(log_probs.gather(-1, ids[0, 1:, None]).mean().item(), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["中文 (1)", "${oc.env:HOME}"])
def test_any_name_of_a_file_and_of_a_model(nonmember, make_model, texts, name):
    path = write_rows(Path(f"{name}.jsonl"), rows_of(texts[:3]))
    Path(name).symlink_to(make_model(0))
    table = nm.score(path, {"path": name, "dtype": "auto"}, max_tokens=64)
    assert len(table) == 3
    said = nonmember("score", f"target.path={name}", f"data.path={path}", "max_tokens=64")
    assert pq.read_table(said.last_line).num_rows == 3, said.err


def test_the_target_by_another_path_is_no_out_model(make_model):
    settings = {"out_models": "named", "out_models.paths": [f"{make_model(0)}/."]}
    with pytest.raises(ValueError, match="is given twice, by two paths"):
        nm.score(["moss fern reed", "pine lark wren"], make_model(0), scores=["lira"], overrides=settings)


def test_documents_given_as_unread_are_reported(make_model, caplog):
    texts = ["moss fern reed", "pine lark wren", "fern pine moss"]
    settings = {"scores": ["rmia"], "overrides": {"out_models": "named", "out_models.paths": [make_model(1)]}}
    for unread, reported in ((["wren reed lark"], False), (["wren reed lark", *texts[:2]], True)):
        caplog.clear()
        nm.score(texts, make_model(0), prefix=unread, **settings)
        assert ("2 of the 3 unread texts (prefix) are documents" in caplog.text) == reported


@pytest.mark.slow
def test_the_command_line_and_the_program_find_each_others_passes(nonmember, make_model, texts):
    path = write_rows(Path("documents.jsonl"), [{"id": str(index), "text": text} for index, text in enumerate(texts)])
    said = nonmember("score", f"target.path={make_model(0)}", f"data.path={path}", "max_tokens=64")
    assert said.status == 0, said.err
    made = observations()
    table = nm.score(path, make_model(0), max_tokens=64)
    pd.testing.assert_frame_equal(table, pq.read_table(said.last_line).to_pandas())
    nm.score(texts, make_model(0), max_tokens=64, k=0.7)
    assert observations() == made
    nm.score(texts, make_model(1), max_tokens=64)
    now = observations()
    assert now > made
    assert nonmember("score", f"target.path={make_model(1)}", f"data.path={path}", "max_tokens=64").status == 0
    assert observations() == now


def test_a_model_in_memory_scores_as_from_its_folder(make_model, models, texts):
    asked = {"reference": make_model(1), "general": ["moss fern"] * 3, "prefix": ["hare"], "max_tokens": 64}
    table, (model, tokenizer) = nm.score(texts, make_model(0), **asked), models(0)
    assert {"ref_diff", "dc_pdd", "recall"} <= {*table.columns}, "texts of the program are no missing path"
    pd.testing.assert_frame_equal(nm.score(texts, (model, tokenizer), **asked), table)
    pd.testing.assert_frame_equal(nm.score(texts, models(0), **asked | {"reference": models(1)}), table)
    tokenizer.backend_tokenizer.normalizer = Replace("moss", "fern moss")
    assert not nm.score(texts, (model, tokenizer), max_tokens=64)["log_likelihood"].equals(table["log_likelihood"])


def test_what_the_program_has_set_in_torch_moves_no_number(make_model):
    texts = ["moss fern reed pine", "lark wren hare"]
    table = nm.score(texts, make_model(0), outputs="as_torch_begins")
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode(), torch.device("meta"):
        torch.set_default_dtype(torch.float64)
        found = nm.score(texts, make_model(0), outputs="as_it_was_set")
        assert torch.get_default_dtype() == torch.float64
        torch.set_default_dtype(torch.float32)
    pd.testing.assert_frame_equal(found, table)


def _hooked(model):
    model.get_input_embeddings().register_forward_hook(lambda module, given, made: made + 1)


def _with_history(model):
    model.kept = model.get_input_embeddings()(torch.tensor([0]))


def _with_packed_weights(model):
    model.state_dict = lambda: {"packed": (1, 2)}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_hooked, "model must be a model without forward hooks.*got one with hooks at gpt_neox.embed_in"),
        (_with_history, "is read as a copy, and this one cannot be copied"),
        (_with_packed_weights, "packed is no tensor but a tuple"),
    ],
)
def test_models_in_memory_that_are_not_read(make_model, change, sentence):
    loaded = load_folder(make_model(0))
    change(loaded.model)
    with pytest.raises(ValueError, match=sentence):
        nm.score(["moss fern"], (loaded.model, loaded.tokenizer))
    wrapper = torch.nn.ModuleList([loaded.model])
    wrapper.config = loaded.model.config
    with pytest.raises(ValueError, match="got a tuple of ModuleList"):
        nm.score(["moss fern"], (wrapper, loaded.tokenizer))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("documents", "ids"),
    [
        (pd.DataFrame({"text": ["moss fern", "reed pine"]}, index=["x", "y"]), ["x", "y"]),
        (pd.DataFrame({"text": ["moss", "moss fern", "reed pine"]})[1:], ["1", "2"]),
        (pd.Series(["moss fern", "reed pine"], index=[7, 3]), ["7", "3"]),
        (pd.DataFrame({"doc_id": [5, 6], "text": ["moss fern", "reed pine"]}, index=["x", "y"]), ["5", "6"]),
        (pd.DataFrame({"text": ["moss fern", "reed pine"]}), ["0", "1"]),
    ],
    ids=["index", "filtered", "series", "column", "numbered"],
)
def test_ids_are_kept(make_model, documents, ids):
    assert nm.score(documents, make_model(0))["doc_id"].tolist() == ids


@pytest.mark.slow
def test_ids_that_name_several_texts_are_reported(make_model, caplog):
    texts = ["moss", "fern", "reed", "pine"]
    by_index = pd.DataFrame({"text": texts}, index=["x", "y", "x", float("nan")])
    in_rows = [{"id": name, "text": text} for name, text in zip("xyx", texts, strict=False)]
    for given in (in_rows, by_index[:3], by_index["text"]):
        caplog.clear()
        ids = nm.score(given, make_model(0))["doc_id"].tolist()
        assert ids == ["x", "y", "x~2", "row 3"][: len(given)]
        assert "'x' (2 rows)" in caplog.text


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"documents": []}, "documents must have at least one text; got none"),
        ({"documents": pd.DataFrame({"text": []})}, "documents must have at least one text"),
        ({"documents": "The cat sat on the mat."}, r"documents must be a list of texts, or a path; got one text"),
        ({"documents": "The cat sat.\n" * 99}, r"documents must be a list of texts, or a path; got one text"),
        ({"documents": "my file.jsonl"}, "Expected a file, or a pattern that matches files, at my file.jsonl"),
        ({"documents": pd.DataFrame({"text": [float("nan")] * 2})}, r'none holds text. Name it: overrides=\["data.t'),
        ({"model": None}, "No value was given for target.path"),
        ({"model": 3}, "model must be a path, a name on the Hugging Face hub, or"),
    ],
)
def test_messages_speak_of_python(make_model, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        nm.score(**{"documents": ["moss fern"], "model": make_model(0)} | given)
