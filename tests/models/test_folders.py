"""Damaged model folders: one sentence each."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import tiny
from nonmember.models import Pretrained
from nonmember.models.folders import check_folder
from nonmember.models.loading import LoadedModel, load_pretrained, save, train_tokenizer


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


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    write(folder / "pytorch_model.bin", pickle.dumps({}))


DAMAGES = [
    (lambda folder: write(folder / "config.json", "[1]"), "it has no config.json that is a JSON object"),
    (lambda folder: (folder / "config.json").unlink(), "it has no config.json that is a JSON object"),
    (pickled, "its weights are pickles (pytorch_model.bin). Pickles can run code"),
]


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES)
def test_what_is_no_model_is_refused_before_anything_is_read(folder, damage, sentence):
    damage(folder)
    with pytest.raises(ValueError, match=r"No model could be loaded from .*a-model: .* safetensors") as caught:
        check_folder(str(folder))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", '{"model_type": "gpt_neox", "hidden_act": 7}'),
        ("tokenizer.json", "{}"),
        ("model.safetensors", ""),
    ],
)
def test_whatever_else_is_wrong_is_one_sentence_too(folder, name, content):
    write(folder / name, content)
    with pytest.raises(ValueError, match=r"could be loaded from .*a-model: .*Expected") as caught:
        load_pretrained(Pretrained(str(folder)))
    assert "\n" not in str(caught.value)
