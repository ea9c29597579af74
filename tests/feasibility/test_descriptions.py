"""Descriptions of what lies on the hub: consistent in themselves, with what was published, and with the presets."""

from __future__ import annotations

from datetime import date
from functools import cache

import pytest
from omegaconf import OmegaConf

from marks import thinned
from nonmember.config.choices import config_directory, options, presets_directory
from nonmember.config.presets import load_presets
from nonmember.feasibility.descriptions import HUB, HubDataset, file_of, hub_datasets, hub_models, services
from nonmember.feasibility.meta import meta_model, num_tuned, shape_of, shape_of_model
from nonmember.training.recipes import ALL_LINEAR, AdaLora, Ia3, Lora

LORA = Lora(None, 8, 16, 0.0)
ADALORA = AdaLora(None, 12, 8, 16, 0.0, 0.1, 0.1, 1, 0.85, 0.5)
IA3 = Ia3(None, None)


@cache
def presets_of(kind: str) -> dict[str, dict]:
    """Presets of models with a key of this name, as written."""
    rows = load_presets(presets_directory())["model"]
    files = {
        path.stem: OmegaConf.to_container(OmegaConf.load(path)) for path in (config_directory() / "model").glob("*")
    }
    assert set(options("model")) == {*rows, *files}
    return {name: row for name, row in {**rows, **files}.items() if kind in row}


HUB_PRESETS = {
    name: row
    for name, row in presets_of("revision").items()
    if "/" in str(row.get("path")) and "${" not in str(row["path"]) and row["path"].count("/") == 1
}
SERVICES = {
    name: row
    for name, row in presets_of("model").items()
    if "answers" not in str(row.get("path")) and "columns" not in row
}


def test_every_hub_model_of_any_preset_is_described_at_the_commit_it_names():
    packaged = {path for path in hub_models() if path.endswith(".gguf")}
    assert packaged == {row["path"] for row in presets_of("pieces").values()}
    assert len(HUB_PRESETS) == len(hub_models()) - len(packaged)
    for name, row in HUB_PRESETS.items():
        described = hub_models()[row["path"]]
        known = None if row["revision"] in ("???", "main") else row["revision"]
        assert described.revision == known, name
        assert (HUB.parents[3] / file_of(row["path"])).is_file()


def test_every_service_of_any_preset_is_described():
    named = {row["model"] for row in SERVICES.values() if "???" not in str(row["model"])}
    assert {name for name in named if name not in services()} <= {"mistral-7b", "llama-2-13b"}, "recorded answers"
    assert services().keys() - named <= {"deepseek-chat"}, "of the paper, and gone"
    today = date(2026, 11, 22)
    for service in services().values():
        assert service.until is None or service.since < service.until
        assert not service.instead or service.instead in options("model")
        assert service.is_retired(today) == (service.until is not None and service.until < today)


@pytest.mark.parametrize("path", thinned(sorted(hub_models()), 4))
def test_a_model_has_as_many_parameters_as_were_published(path):
    """From papers and cards; counted on modules without weights."""
    described, shape = hub_models()[path], shape_of(path)
    assert shape is not None
    assert shape.num_parameters == described.num_parameters
    architecture = described.architecture
    heads = architecture.get("num_attention_heads") or architecture["n_head"]
    keys = architecture.get("num_key_value_heads") or heads
    assert shape.hidden % heads == 0
    assert heads % keys == 0
    assert shape.width_of_keys == architecture.get("head_dim", shape.hidden // heads) * keys
    ends = described.special_ids["eos"]
    assert all(item < shape.vocabulary for item in (ends if isinstance(ends, list) else [ends]))
    assert all(item < shape.vocabulary for item in described.prepends)


@pytest.mark.parametrize(
    "path", thinned(sorted({model.model_type: path for path, model in hub_models().items()}.values()), 4)
)
@pytest.mark.parametrize("adapter", [LORA, ADALORA, IA3], ids=lambda item: item.kind)
def test_usual_adapters_find_their_modules(path, adapter):
    """Of two layers; twice as many parameters as of one."""
    described = hub_models()[path]
    if described.model_type == "mixtral" or (described.model_type, adapter.kind) == ("mistral", "adalora"):
        pytest.skip("peft has none, and no preset adapts it so")
    item, two = (num_tuned(meta_model(described, layers), adapter) for layers in (1, 2))
    assert two == 2 * item > 0


@pytest.mark.slow
def test_lora_on_query_and_value_by_hand():
    """Rank times inputs and outputs of both, in every layer."""
    assert num_tuned(meta_model(hub_models()["allenai/OLMo-1B-hf"]), LORA) == 16 * 2 * 8 * (2048 + 2048)
    phi = hub_models()["microsoft/Phi-3-small-128k-instruct"]
    assert num_tuned(meta_model(phi), LORA) == 32 * 8 * (4096 + 6144)
    everywhere = Lora(ALL_LINEAR, 8, 16, 0.0)
    widths = [(4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096), *[(4096, 14336)] * 2, (14336, 4096)]
    llama = meta_model(hub_models()["meta-llama/Llama-3.1-8B-Instruct"])
    assert num_tuned(llama, everywhere) == 32 * 8 * sum(map(sum, widths))


def test_what_cannot_be_adapted_is_said_with_what_can():
    with pytest.raises(ValueError, match="no modules called nothing that lora can adapt; name some of q_proj"):
        num_tuned(meta_model(hub_models()["allenai/OLMo-1B-hf"], 1), Lora(["nothing"], 8, 16, 0.0))
    with pytest.raises(ValueError, match="got all-linear, which is LoRA's"):
        Ia3(ALL_LINEAR, None)


def test_rows_of_a_data_set_by_the_longest_name():
    described = HubDataset("none", {"": 10, "length32": 3, "length3": 4}, "x")
    assert described.most_documents("WikiMIA_length32") == 3
    assert described.most_documents(None, "train") == 10
    assert HubDataset("none", {"a": 1}, "x").most_documents("b") is None
    assert hub_datasets()["iamgroot42/mimir"].terms == "accept"
    yago = hub_datasets()["allegrolab/biographies_yago"]
    counts = [yago.most_documents("train", f"duplicates={number}") for number in (1, 4, 16, 64, 256)]
    assert sum(count or 0 for count in counts) == yago.most_documents("train") == 2500
    assert counts[2] == 446, "not those of duplicates=1, whose name begins it"


def test_fewer_layers_are_the_same_model():
    described = hub_models()["mistralai/Mixtral-8x7B-Instruct-v0.1"]
    small, large = (shape_of_model(meta_model(described, layers)) for layers in (1, 2))
    whole = shape_of(described.path)
    assert whole is not None
    layer = large.num_parameters - small.num_parameters
    assert whole.num_parameters == small.num_parameters + 31 * layer
