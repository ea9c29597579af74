"""A GGUF file is read as the model it was written from, converted once, and known by its hash."""

from __future__ import annotations

import importlib.metadata
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from transformers import LlamaConfig, LlamaForCausalLM

import tiny
from command_line import rows_of
from nonmember.artifacts import Builder
from nonmember.corpora.specs import digest_file
from nonmember.models import Gguf, PackagedGguf
from nonmember.models.kinds.pretrained import load_folder
from nonmember.models.loading import train_tokenizer
from nonmember.records import Corpus, Document

gguf = pytest.importorskip("gguf", reason="GGUF files are read with the package gguf: make setup EXTRAS=real")


def write_gguf(folder: Path, file: Path, num_blocks: int | None = None, way: str = "gpt-2") -> Path:
    """A tiny Llama of transformers in the names, shapes and row order of llama.cpp, unquantised."""
    loaded = load_folder(folder)
    config, weights = loaded.model.config, loaded.model.state_dict()
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_block_count(num_blocks or config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config.vocab_size)
    _add_tokenizer(writer, loaded.tokenizer)
    writer.add_tokenizer_pre(way)
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    parts = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    for layer in range(config.num_hidden_layers):
        names |= {f"model.layers.{layer}.{ours}": f"blk.{layer}.{theirs}" for ours, theirs in parts.items()}
    for ours, theirs in names.items():
        values = weights[f"{ours}.weight"].float().numpy()
        if theirs.endswith(("attn_q", "attn_k")):  # llama.cpp rotates neighbouring rows, transformers the two halves
            heads = config.num_attention_heads if theirs.endswith("q") else config.num_key_value_heads
            rows, width = values.shape
            values = values.reshape(heads, 2, rows // heads // 2, width).swapaxes(1, 2).reshape(rows, width)
        writer.add_tensor(f"{theirs}.weight", np.ascontiguousarray(values, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _add_tokenizer(writer: Any, tokenizer: Any) -> None:
    state = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    tokens = [token for token, _ in sorted(state["vocab"].items(), key=lambda pair: pair[1])]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in tokenizer.all_special_tokens else 1 for token in tokens])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in state["merges"]])
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_bos_token_id(tokenizer.eos_token_id)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Folder of a tiny Llama, and the same as a GGUF file."""
    folder = tmp_path_factory.mktemp("llama")
    corpus = Corpus(tuple(Document(row["id"], row["text"]) for row in rows_of(tiny.random_texts(50, seed=1))))
    tokenizer = train_tokenizer(corpus, tiny.VOCAB_SIZE)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        tie_word_embeddings=False,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return folder / "model", write_gguf(folder / "model", folder / "model.gguf")


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return tiny.builder(tmp_path / "store")


def test_it_is_the_model_it_was_written_from(llama, builder):
    folder, file = llama
    expected, read = load_folder(folder), builder.get(Gguf(str(file)))
    ids = expected.tokenizer("lark fern hare flint", return_tensors="pt")["input_ids"]
    assert read.tokenizer("lark fern hare flint", return_tensors="pt")["input_ids"].tolist() == ids.tolist()
    with torch.no_grad():
        torch.testing.assert_close(read.model(ids).logits, expected.model(ids).logits)


def test_it_is_converted_once_and_known_by_content(llama, builder, tmp_path):
    _, file = llama
    copy = tmp_path / "renamed.gguf"
    copy.write_bytes(file.read_bytes())
    assert Gguf(str(copy)).key(builder) == Gguf(str(file)).key(builder)
    builder.get(Gguf(str(file)))
    builder.get(Gguf(str(copy), dtype="bfloat16"))
    assert len(list(builder.store.root.glob("dequantized/*/model.safetensors"))) == 1


@pytest.mark.parametrize(("num_blocks", "sentence"), [(1, "scores would be those"), (3, "lacks 9 tensors")])
def test_other_blocks_than_it_speaks_of_are_refused(llama, builder, tmp_path, num_blocks, sentence):
    file = write_gguf(llama[0], tmp_path / "model.gguf", num_blocks)
    with pytest.raises(ValueError, match=sentence):
        builder.get(Gguf(str(file)))


@pytest.mark.parametrize(("way", "told"), [("gpt-2", False), ("qwen2", False), ("deepseek-llm", True)])
def test_a_way_of_splitting_texts_that_is_not_known_is_told(llama, builder, tmp_path, caplog, way, told):
    builder.get(Gguf(str(write_gguf(llama[0], tmp_path / "m.gguf", way=way))))
    assert ("split in a way that it calls deepseek-llm" in caplog.text) is told


def test_what_is_no_such_file(nonmember, tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"not one")
    said = nonmember("score", "target.path=model.gguf", "data.path=.")
    assert said.status == 1
    assert "it is not a GGUF file" in said.err


class Installed(importlib.metadata.Distribution):
    """A package in a folder, as far as one is asked."""

    version = "1.0"  # type: ignore[assignment]

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read_text(self, filename: str) -> None:
        return None

    def locate_file(self, path: Any) -> Path:
        return self.folder / path


@pytest.fixture
def packaged(llama, tmp_path, monkeypatch) -> PackagedGguf:
    """The file in three pieces, each in a package of its own."""
    whole, packages = llama[1].read_bytes(), {}
    for number, start in enumerate((0, 5000, 10000)):
        folder = tmp_path / f"packages/part{number}"
        folder.mkdir(parents=True)
        end = start + 5000 if number < 2 else None
        (folder / "tiny.gguf.part").write_bytes(whole[start:end])
        packages[folder.name] = Installed(folder)
    found = importlib.metadata.distribution
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: packages.get(name) or found(name))
    pieces = dict.fromkeys(packages, "tiny.gguf.part")
    return PackagedGguf("tiny.gguf", pieces=pieces, sha256=digest_file(llama[1]), install="Run make setup EXTRAS=real.")


def test_pieces_are_joined_to_the_file_they_were_cut_from(llama, packaged, builder):
    assert packaged.key(builder) == Gguf(str(llama[1])).key(builder)
    assert packaged.recipe() == Gguf("tiny.gguf").recipe()
    expected, read = load_folder(llama[0]).model.state_dict(), builder.get(packaged).model.state_dict()
    assert all(torch.equal(read[name], weights) for name, weights in expected.items())
    assert not list(builder.store.root.rglob("*.gguf")), "the joined file does not stay beside the weights"


def test_pieces_that_are_missing_or_changed_are_refused(packaged, tmp_path):
    second = tmp_path / "packages/part1/tiny.gguf.part"
    swapped = {name: packaged.pieces[name] for name in ("part1", "part0", "part2")}
    with pytest.raises(ValueError, match=r"part1, part0, part2, is not the file that was published .*Run make"):
        replace(packaged, pieces=swapped).validate()
    second.write_bytes(b"x" + second.read_bytes()[1:])
    with pytest.raises(ValueError, match="is not the file that was published"):
        packaged.validate()
    second.unlink()
    with pytest.raises(ValueError, match=r"part1 1.0 must hold tiny.gguf.part, and does not. Run make setup"):
        packaged.validate()
    missing = replace(packaged, pieces={**packaged.pieces, "no-such-package": "tiny.gguf.part"})
    second.write_bytes(b"")
    with pytest.raises(ValueError, match=r"of which no-such-package is not installed here. Run make setup EXTRAS=real"):
        missing.validate()
    with pytest.raises(ValueError, match="must name a package and the file in it"):
        PackagedGguf("tiny.gguf")
    with pytest.raises(ValueError, match="is not the file in the installed package a"):
        PackagedGguf("own/target", pieces={"a": "folder/tiny.gguf"})


EXTRAS = {"real": "smollm2", "gemma": "gemma3"}
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("extra", "model"), EXTRAS.items())
def test_the_packages_of_a_config_are_those_that_setup_installs(extra, model):
    """With hashes; and each message says how to get them."""
    spec = instantiate(OmegaConf.load(ROOT / f"conf/model/{model}.yaml"))
    lines = [line for line in (ROOT / f"requirements-{extra}.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    assert set(spec.pieces) <= {line.partition("==")[0] for line in lines}
    assert f"make setup EXTRAS={extra}" in spec.install
    assert lines[0].partition(" ")[0] in spec.install
    assert re.fullmatch(r"[0-9a-f]{64}", spec.sha256)


def test_a_file_of_the_hub_that_is_not_to_be_had(monkeypatch):
    with pytest.raises(ValueError, match="the Hugging Face hub gave nothing"):
        Gguf("owner/name/model.gguf").validate()
    with pytest.raises(ValueError, match="is not a file on this machine; expected a model in the GGUF format"):
        Gguf("nowhere.gguf").validate()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"nonmember\[real\]"):
        Gguf("nowhere.gguf").validate()
