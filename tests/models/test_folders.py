"""Damaged and hostile model folders: one sentence each, from the small files, before a weight is read."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tiny
from nonmember.models import Pretrained
from nonmember.models.folders import check_folder
from nonmember.models.loading import LoadedModel, load_pretrained, save, train_tokenizer

INDEX = "model.safetensors.index.json"


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "sound"
    tokenizer = train_tokenizer(tiny.texts(*tiny.WORDS).build(lambda spec: spec), tiny.VOCAB_SIZE)
    save(LoadedModel(tiny.model(1, tiny.VOCAB_SIZE), tokenizer), folder)
    return folder


@pytest.fixture
def folder(sound, tmp_path) -> Path:
    """A folder of links to the files of the sound one."""
    (tmp_path / "a-model").mkdir()
    for path in sound.iterdir():
        (tmp_path / "a-model" / path.name).symlink_to(path)
    return tmp_path / "a-model"


def write(path: Path, content: str | bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def config(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        write(path, json.dumps(json.loads(path.read_text()) | changes))

    return change


def text(content: str | bytes) -> Callable[[Path], None]:
    return lambda folder: write(folder / "config.json", content)


def index(content: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        write(folder / INDEX, json.dumps(content))

    return change


def pickles(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        write(folder / name, pickle.dumps({}))

    return change


DAMAGES = [
    (text("null"), "config.json must be one JSON object; got null."),
    (text("[1]"), "config.json must be one JSON object; got a list."),
    (text("{"), "config.json must be one JSON object; it cannot be read ("),
    (text("[" * 100_000), "config.json must be one JSON object; it cannot be read ("),
    (text(b"\xff\xfe"), "config.json must be one JSON object; it cannot be read ("),
    (lambda folder: (folder / "model.safetensors").unlink(), "There is no model.safetensors."),
    (config(hidden_size=-16), "hidden_size in config.json must be a whole number of at least 1; got -16."),
    (config(hidden_size=10**12), "hidden_size in config.json must be a whole number from 1 to 1000000; got 1000000000"),
    (config(hidden_size=500_000), "speaks of a width of 500000, 2 layers and 280 tokens, for which the weights ("),
    (config(num_hidden_layers=9_999, hidden_size=4096), "for which the weights ("),
    (
        config(num_hidden_layers=True),
        "num_hidden_layers in config.json must be a whole number of at least 1; got true.",
    ),
    (config(num_attention_heads="two"), "must be a whole number of at least 1; got 'two'."),
    (config(vocab_size=0), "vocab_size in config.json must be"),
    (config(text_config={"hidden_size": 0}), "hidden_size in config.json must be"),
    (config(quantization_config={"quant_method": "aqlm"}), "quantised by aqlm, which needs the package aqlm, which is"),
    (config(quantization_config=[]), "quantization_config in config.json must be one JSON object."),
    (config(transformers_weights="weights.bin"), "There is no weights.bin."),
    (index({"weight_map": {"a": "pytorch_model-1.bin"}}), "names pytorch_model-1.bin, which is no safetensors file."),
    (index({"weight_map": {"a": "m-1.safetensors"}}), f"{INDEX} names m-1.safetensors, which is not there."),
    (index({"weight_map": []}), f"{INDEX} must have a weight_map"),
    (index([]), f"{INDEX} must be one JSON object; got a list."),
    (pickles("pytorch_model.bin"), "Its weights are pickles (pytorch_model.bin). Pickles can run code"),
    (pickles("pytorch_model.bin.index.json"), "Its weights are pickles (pytorch_model.bin.index.json)."),
]


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES, ids=[sentence for _, sentence in DAMAGES])
def test_a_damaged_folder_is_one_sentence(folder, damage, sentence):
    damage(folder)
    for refuse in (check_folder, lambda path: Pretrained(path).key(None)):
        with pytest.raises(
            ValueError, match=r"No model could be loaded from .*a-model: .* Expected a folder"
        ) as caught:
            refuse(str(folder))
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_sound_folder_and_a_name_of_the_hub_pass(folder):
    check_folder(str(folder))
    check_folder("some/name")
    config(hidden_size=None, quantization_config=None, text_config=None)(folder)
    check_folder(str(folder))


def test_an_adapter_needs_no_configuration_of_a_model(folder):
    (folder / "config.json").unlink()
    write(folder / "adapter_config.json", "{}")
    with pytest.raises(ValueError, match=r"There is no adapter_model\.safetensors"):
        check_folder(str(folder))
    write(folder / "adapter_model.safetensors", b"")
    check_folder(str(folder))


@pytest.mark.parametrize(
    ("name", "content"),
    [("config.json", '{"model_type": "gpt_neox", "hidden_act": 7}'), ("tokenizer.json", "{}"), ("tokenizer.json", "[")],
)
def test_whatever_else_is_wrong_is_one_sentence_too(folder, name, content):
    write(folder / name, content)
    with pytest.raises(ValueError, match=r"could be loaded from .*a-model: .*Expected") as caught:
        load_pretrained(Pretrained(str(folder)))
    assert "\n" not in str(caught.value)
