"""What is sharded as a unit of its own, and which models are refused in words (among processes: test_two_processes)."""

import pytest
import torch
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule
from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup
from transformers import GPT2Config, GPT2LMHeadModel

from nonmember.models.forward import PlainLogits, SplitForward, split_forward
from nonmember.training.losses import cross_entropy_terms, weighted_sum
from nonmember.training.sharding import shard


def gpt2(tied: bool) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=32, tie_word_embeddings=tied)).eval()


def test_one_matrix_for_input_and_output_is_refused():
    with pytest.raises(ValueError, match="input and output matrices are one"):
        shard(split_forward(gpt2(tied=True)), mesh=None)


def test_a_model_used_whole_is_refused():
    whole = SplitForward(gpt2(tied=False), PlainLogits(32), None, note="Its parts were not found.")
    with pytest.raises(ValueError, match=r"needs a model in body and head\. Its parts were not found"):
        shard(whole, mesh=None)


@pytest.fixture
def mesh(tmp_path):
    """Of this process alone."""
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'meeting'}", rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore:FSDP2-wrapped module")
def test_body_head_and_each_layer_are_units_and_the_numbers_stay(mesh):
    model, ids = gpt2(tied=False), torch.arange(6)[None]
    before = model(ids).logits.detach()
    split = split_forward(model)
    for _ in range(2):  # Lightning asks before each fit, validation and prediction
        shard(split, mesh)
        units = [name for name, module in model.named_modules() if isinstance(module, FSDPModule)]
        assert units == ["transformer", "transformer.h.0", "lm_head"]
    torch.testing.assert_close(model(ids).logits.detach(), before)


@pytest.mark.filterwarnings("ignore:FSDP2-wrapped module")
def test_the_head_is_gathered_once_for_all_chunks_and_its_gradient_goes_back_into_the_shards(mesh, monkeypatch):
    model, ids = gpt2(tied=False), torch.arange(12)[None]
    split = split_forward(model)

    def gradients() -> dict[str, torch.Tensor]:
        rows = split.body(ids)[0, :-1], ids[0, 1:]
        loss, _ = weighted_sum(cross_entropy_terms, split.head, rows, [1.0], budget_bytes=4 * 32 * 3)
        loss.backward()
        found = {name: parameter.grad for name, parameter in model.named_parameters()}
        model.zero_grad()
        return {name: getattr(item, "full_tensor", lambda item=item: item)() for name, item in found.items()}

    before = gradients()
    shard(split, mesh)
    gathered = []
    monkeypatch.setattr(
        FSDPParamGroup, "unshard", lambda self, *_, own=FSDPParamGroup.unshard: (gathered.append(self), own(self))[1]
    )
    after = gradients()
    assert after.keys() == before.keys()
    for name, gradient in after.items():
        torch.testing.assert_close(gradient, before[name])
    (of_head,) = model.lm_head._get_fsdp_state()._fsdp_param_groups
    assert 1 <= gathered.count(of_head) <= 2, "for the forward pass, and again for the backward pass"
