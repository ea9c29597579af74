"""Damaged and hostile model folders: one sentence each, from the small files, before a weight is read."""

from __future__ import annotations

import json
import os
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


def weights(content: bytes) -> Callable[[Path], None]:
    return lambda folder: write(folder / "model.safetensors", content)


def header(tensors: object) -> bytes:
    """A safetensors file's, without what it speaks of."""
    text = json.dumps(tensors).encode()
    return len(text).to_bytes(8, "little") + text


def shards(named: dict[str, str], **files: list[str]) -> Callable[[Path], None]:
    """Weights in several files with tensors of nothing, and an index that names further ones."""

    def change(folder: Path) -> None:
        places = {name: file for file, names in files.items() for name in names} | named
        index({"weight_map": {name: f"{file}.safetensors" for name, file in places.items()}})(folder)
        for file, names in files.items():
            empty = {name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for name in names}
            write(folder / f"{file}.safetensors", header(empty))

    return change


def device(name: str, make) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

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
    (config(hidden_size=500_000), "states a width of 500000, 2 layers and 280 tokens, for which the weights ("),
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
    (config(quantization_config={"quant_method": "magic"}), "must be one of aqlm, auto-round, "),
    (config(quantization_config={"bits": 4}), "quant_method of quantization_config in config.json must be one of"),
    (config(quantization_config={"load_in_4bit": True}), "quantised by bitsandbytes, which needs the package"),
    (config(text_config={"quantization_config": {"quant_method": 7}}), "; got 7. Nothing here reads"),
    (config(compression_config={"quant_method": "magic"}), "quant_method of compression_config in config.json"),
    (config(transformers_weights="weights.bin"), "There is no weights.bin."),
    (weights(b""), "model.safetensors (0 bytes) is not a safetensors file"),
    (weights(b"x" * 64), "model.safetensors (64 bytes) is not a safetensors file"),
    (weights(header({})[:-1]), "is not a safetensors file"),
    (weights(header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})), "by its header; it has"),
    (weights(header({"a": {"dtype": "F32"}})), "is not a safetensors file"),
    (weights(header([])), "is not a safetensors file"),
    (lambda folder: (folder / "gone.json").symlink_to(folder / "nowhere"), "gone.json is a broken link."),
    (lambda folder: (folder / "vocab.json").mkdir(), "vocab.json must be a file; it is a folder, a pipe or a device."),
    (lambda folder: os.mkfifo(folder / "tokens"), "tokens must be a file; it is a folder, a pipe or a device."),
    (device("config.json", os.mkfifo), "config.json must be a file; it is a folder, a pipe or a device."),
    (device("config.json", lambda path: path.symlink_to("/dev/zero")), "config.json must be a file; it is"),
    (device("config.json", lambda path: path.mkdir()), "config.json must be a file; it is"),
    (device("config.json", lambda path: path.open("wb").truncate(2**40)), "config.json must have at most 268,435,456"),
    (config(num_labels=10**9), "num_labels in config.json must be a whole number from -1 to 1000000; got 1000000000"),
    (lambda folder: write(folder / INDEX, '{"weight_map": {"a": "b.safetensors"}}'), "which may be two models."),
    (shards({"a": "one"}, one=["a"], two=["a", "b"]), "a is in one.safetensors and in two.safetensors, which may be"),
    (shards({"b": "one"}, one=["a"], two=["c"]), "says that b lies in one.safetensors, and it does not."),
    (
        index({"weight_map": {"a": "pytorch_model-1.bin"}}),
        "names pytorch_model-1.bin, which is not a safetensors file.",
    ),
    (index({"weight_map": {"a": "m-1.safetensors"}}), f"{INDEX} names m-1.safetensors, which is not there."),
    (index({"weight_map": []}), f"{INDEX} must have a weight_map"),
    (index([]), f"{INDEX} must be one JSON object; got a list."),
    (pickles("pytorch_model.bin"), "Its weights are pickles (pytorch_model.bin). Pickles can run code"),
    (pickles("pytorch_model.bin.index.json"), "Its weights are pickles (pytorch_model.bin.index.json)."),
]


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("name", "content"),
    [("config.json", '{"model_type": "gpt_neox", "hidden_act": 7}'), ("tokenizer.json", "{}"), ("tokenizer.json", "[")],
)
def test_whatever_else_is_wrong_is_one_sentence_too(folder, name, content):
    write(folder / name, content)
    with pytest.raises(ValueError, match=r"could be loaded from .*a-model: .*Expected") as caught:
        load_pretrained(Pretrained(str(folder)))
    assert "\n" not in str(caught.value)
