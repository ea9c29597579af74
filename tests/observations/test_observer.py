"""From token ids to Parquet parts under Lightning: the rows, the batches, the processes, the refusals."""

import copy
import functools

import lightning
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from nonmember.corpora.transforms.ordered import Orders
from nonmember.models.forward import PlainLogits, SplitForward, split_forward
from nonmember.observations.base import Reading
from nonmember.observations.documents import load_divergences
from nonmember.observations.passes.documents import embed, observe_divergence
from nonmember.observations.passes.orders import OrderedShard, observe_orders
from nonmember.observations.passes.tokens import length_buckets, observe, observe_answers, share_of_rank
from nonmember.observations.passes.vocabulary import token_statistics
from nonmember.records import TOKEN_SCHEMA, Embeddings, OrderTable, TokenTable

VOCAB = 128
make_trainer = functools.partial(lightning.Trainer, accelerator="cpu", devices=1)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = GPTNeoXConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        attention_dropout=0.5,
        hidden_dropout=0.5,
    )
    return GPTNeoXForCausalLM(config)


@pytest.fixture(scope="module")
def corpus():
    generator = np.random.default_rng(0)
    lengths = [0, 1, 2, 3, 40, 64, *generator.integers(2, 30, size=30)]
    return {f"doc {i}": generator.integers(VOCAB, size=n).tolist() for i, n in enumerate(lengths)}


def observed(model, corpus, out_dir, make_trainer=make_trainer, max_batch_tokens=100, **settings):
    counts = observe(model, corpus, Reading(out_dir, make_trainer, max_batch_tokens, **settings))
    return counts, TokenTable.load(sorted(out_dir.glob("part-*.parquet")), list(corpus))


def assert_same_rows(one: TokenTable, other: TokenTable, atol=0.0):
    for name in ("offsets", "position", "token_id"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for name in ("log_prob", "mean", "std"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=atol)


def test_rows_are_those_of_one_document_at_a_time(model, corpus, tmp_path):
    counts, table = observed(model, corpus, tmp_path)
    model.eval()
    for index, ids in enumerate(corpus.values()):
        rows = table.rows(index)
        assert table.token_id[rows].tolist() == ids[1:]
        assert table.position[rows].tolist() == list(range(1, len(ids)))
        if len(ids) >= 2:
            with torch.no_grad():
                logits = model(torch.tensor([ids])).logits[0, :-1]
            alone = token_statistics(logits, PlainLogits(VOCAB), torch.tensor(ids[1:]))
            np.testing.assert_allclose(table.log_prob[rows], alone.log_prob, rtol=0, atol=1e-5)
            np.testing.assert_allclose(table.mean[rows], alone.mean, rtol=0, atol=1e-5)
            np.testing.assert_allclose(table.std[rows], alone.std, rtol=0, atol=1e-5)
    assert counts["num_tokens"] == len(table.log_prob) == sum(max(0, len(ids) - 1) for ids in corpus.values())
    assert counts["num_documents"] == len(corpus) - 2
    assert counts["num_floored"] == 0


def test_twice_the_same_and_training_flags_kept(model, corpus, tmp_path):
    model.train()
    observed(model, corpus, tmp_path / "a")
    assert all(module.training for module in model.modules())
    observed(split_forward(model), corpus, tmp_path / "b")
    assert (tmp_path / "a/part-0.parquet").read_bytes() == (tmp_path / "b/part-0.parquet").read_bytes()


def test_observing_leaves_a_model_that_can_be_trained(model, corpus, tmp_path):
    observed(model, corpus, tmp_path)
    model(torch.tensor([corpus["doc 5"]])).logits.sum().backward()
    assert model.gpt_neox.embed_in.weight.grad is not None
    model.zero_grad(set_to_none=True)


def test_parts_have_the_schema_and_stream_in_row_groups(model, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("nonmember.observations.passes.tokens._ROW_GROUP_TOKENS", 50)
    _, table = observed(model, corpus, tmp_path / "many")
    monkeypatch.undo()
    part = tmp_path / "many/part-0.parquet"
    assert pq.read_schema(part).remove_metadata().equals(TOKEN_SCHEMA)
    assert pq.read_metadata(part).num_row_groups > 3
    assert pq.read_metadata(part).row_group(0).column(0).compression == "ZSTD"
    _, whole = observed(model, corpus, tmp_path / "one")
    assert pq.read_metadata(tmp_path / "one/part-0.parquet").num_row_groups == 1
    assert_same_rows(table, whole)


@pytest.mark.slow
def test_two_processes_share_the_documents(model, corpus, tmp_path):
    _, alone = observed(model, corpus, tmp_path / "alone")
    two = functools.partial(lightning.Trainer, accelerator="cpu", devices=2, strategy="ddp_fork")
    counts, shared = observed(model, corpus, tmp_path / "shared", two)
    parts = sorted((tmp_path / "shared").glob("*.parquet"))
    assert [part.name for part in parts] == ["part-0.parquet", "part-1.parquet"]
    assert all(pq.read_metadata(part).num_rows > 0 for part in parts)
    assert counts["num_tokens"] == len(alone.log_prob)
    assert_same_rows(alone, shared)


@pytest.mark.parametrize("lengths", [[], [0, 1]])
def test_nothing_to_score(model, tmp_path, lengths):
    corpus = {str(i): [5] * n for i, n in enumerate(lengths)}
    counts, table = observed(model, corpus, tmp_path)
    assert (counts["num_tokens"], counts["num_documents"]) == (0, 0)
    assert table.num_tokens.tolist() == [0] * len(lengths)


def test_floored_tokens_are_counted(model, corpus, tmp_path):
    class Certain:
        """All probability on token 1."""

        vocab_size = VOCAB

        def is_divisible(self, features):
            return False

        def __call__(self, features, out=None, columns=None):
            logits = features.new_full((*features.shape[:-1], VOCAB), -torch.inf)
            logits[..., 1] = 0
            return logits

    split = split_forward(model)
    certain = SplitForward(model, Certain(), split.body_name)
    counts, table = observed(certain, {"a": [1, 1, 5, 1, 7]}, tmp_path)
    assert counts["num_floored"] == 2
    assert table.log_prob.tolist() == [0, -100, 0, -100]


def _tokens(model, corpus, reading):
    observe(model, corpus, reading)
    table = TokenTable.load(sorted(reading.out_dir.glob("part-*.parquet")), list(corpus))
    return np.stack([table.log_prob, table.mean, table.std])


def _divergences(model, corpus, reading):
    other = copy.deepcopy(model)
    for parameter in other.parameters():
        parameter.data.mul_(0.9)
    every = slice(VOCAB)
    observe_divergence(model, other, corpus, reading, shared_ids=(every, every))
    return load_divergences(sorted(reading.out_dir.glob("part-*.parquet")), list(corpus)).values


def _vectors(model, corpus, reading):
    embed(model, corpus, reading, layer=-1, dropout_seed=None)
    return Embeddings.load(sorted(reading.out_dir.glob("part-*.parquet")), list(corpus)).values


def _answers(model, corpus, reading):
    observe_answers(model, corpus, [3, 4], reading)
    return TokenTable.load(sorted(reading.out_dir.glob("part-*.parquet")), list(corpus)).log_prob


def _orders(model, corpus, reading):
    shards = {"s": OrderedShard([[1, 2, 3], [4, 5]], Orders(np.array([[0, 1], [1, 0]]), np.array([1, 1])))}
    observe_orders(model, shards, (), reading, window=64, stride=32)
    return OrderTable.load(sorted(reading.out_dir.glob("part-*.parquet")), ["s"]).canonical


@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true", "16-true"])
@pytest.mark.parametrize("read", [_tokens, _divergences, _vectors, _answers, _orders])
def test_every_pass_takes_every_precision_and_keeps_single_precision(model, corpus, tmp_path, precision, read):
    """True half precision converts the model for good, so it is given a copy."""
    corpus = {name: ids for name, ids in corpus.items() if len(ids) > 1}
    exact = read(model, corpus, Reading(tmp_path / "exact", make_trainer, 100))
    trainer = functools.partial(make_trainer, precision=precision)
    given = copy.deepcopy(model)
    rounded = read(given, corpus, Reading(tmp_path / "rounded", trainer, 100))
    np.testing.assert_allclose(exact, rounded, atol=0.1)
    assert not np.array_equal(exact, rounded)
    as_half = torch.from_numpy(np.asarray(rounded)).to(torch.float16 if precision == "16-true" else torch.bfloat16)
    assert not np.array_equal(as_half.double().numpy(), rounded)  # what comes of the logits is not rounded to half
    assert (given.dtype == torch.float32) is (precision == "bf16-mixed")


def test_a_document_longer_than_the_model_reads_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match=r"'long' has 65 tokens, and the model reads at most 64"):
        observed(model, {"short": [1, 2], "long": [1] * 65}, tmp_path)


@pytest.mark.parametrize("token_id", [-1, VOCAB])
def test_ids_of_another_tokenizer_are_refused(model, tmp_path, token_id):
    with pytest.raises(ValueError, match=r"'a' has token ids from .* 128 rows"):
        observed(model, {"a": [1, token_id]}, tmp_path)


def test_a_trainer_that_stops_early_is_refused(model, corpus, tmp_path):
    with pytest.raises(ValueError, match="limit_predict_batches"):
        observed(model, corpus, tmp_path, functools.partial(make_trainer, limit_predict_batches=1))


def test_the_bar_carries_the_description(model, corpus, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    observed(model, corpus, tmp_path, description="target on a corpus")
    assert "target on a corpus" in capfd.readouterr().err


def test_length_buckets():
    lengths = [5, 9, 2, 9, 3, 30, 1]
    assert length_buckets(lengths, 20) == [[5], [1, 3], [0, 4, 2, 6]]
    assert length_buckets([], 20) == []
    for batch in length_buckets(lengths, 12):
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= 12


def test_ranks_share_everything_and_make_equally_many_passes():
    batches = [[0], [1, 2], [3], [4], [5]]
    shares = [share_of_rank(batches, rank, 3) for rank in range(3)]
    assert shares == [[[0], [4]], [[1, 2], [5]], [[3], []]]
    assert share_of_rank([], 0, 1) == [[]]


def test_a_model_over_several_devices_stays_where_it_is(model, corpus, tmp_path):
    """A layer and the output matrix lie on disk, as on another device; the rows are those of the model in one place."""
    from accelerate import dispatch_model

    names = ["embed_in", "layers.0", "layers.1", "final_layer_norm", "rotary_emb"]
    places = {f"gpt_neox.{name}": "cpu" for name in names} | {"gpt_neox.layers.1": "disk", "lm_head": "disk"}
    _, whole = observed(model, corpus, tmp_path / "whole")
    spread = dispatch_model(copy.deepcopy(model), places, main_device="cpu", offload_dir=str(tmp_path / "disk"))
    _, rows = observed(spread, corpus, tmp_path / "spread")
    assert_same_rows(rows, whole, atol=1e-6)
    assert next(spread.gpt_neox.layers[1].parameters()).is_meta, "its weights were not moved"
