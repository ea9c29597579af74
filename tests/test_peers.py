"""Our numbers beside those of the authors' programs, on the same texts and the same model.

What each program computes is written out here in a few lines of our own, after its source; the name and the commit
stand with each. docs/methods/checks.md lists the largest differences, which `WITHIN` bounds.
"""

from __future__ import annotations

import math
import zlib
from itertools import chain

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats

import tiny
from nonmember.corpora.transforms.ordered import Sharded, line, random_orders
from nonmember.methods.fsd import deviation
from nonmember.methods.llm_di import FRACTIONS
from nonmember.models.encoding import encode_pieces
from nonmember.observations import OrderLikelihoods, Scored
from nonmember.scores import Loss, Lowercase, MaxK, MinK, MinKPlusPlus, Perplexity, Recall, ReferenceDifference, Zlib
from nonmember.stats.inference import dataset_inference
from nonmember.stats.kernels import kernel_divergence
from nonmember.stats.paired import order_test

TARGET, OTHER = tiny.scratch(3), tiny.scratch(4)
TEXTS = tiny.texts(*tiny.random_texts(12, seed=2, words=20))
KS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
# Largest difference, relative to numbers above 1: of float32 on both sides where a model is read. A variance in one
# pass loses digits where the model's distribution is nearly uniform, as this one's is.
WITHIN = {
    "min-k": 1e-6,
    "min-k-plus-plus": 2e-3,
    "mimir": 1e-5,
    "recall": 1e-5,
    "llm_di features": 1e-5,
    "llm_di p": 1e-4,
    "kds": 1e-5,
    "fsd": 1e-4,
    "order": 1e-6,
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return tiny.builder(tmp_path_factory.mktemp("peers"))


def ours(shop, score, model=TARGET, **more):
    return score(Scored("target", model, TEXTS, score, 100, OTHER, **more).inputs(shop)).values


def agrees(program: str, found, expected) -> float:
    """The largest difference, relative to numbers above 1; fails above the program's bound."""
    found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    difference = np.abs(found - expected) / np.maximum(np.abs(expected), 1.0)
    assert difference.max() <= WITHIN[program], (program, difference.max())
    return float(difference.max())


@pytest.fixture(scope="module")
def read(shop):
    """read(text, model): (ids, logits [T, V] float32) as all of the programs read it."""

    def forward(text, model=TARGET):
        loaded = shop.get(model)
        ids = loaded.tokenizer(text)["input_ids"]
        with torch.no_grad():
            return torch.tensor(ids), loaded.model(torch.tensor([ids])).logits[0]

    return forward


@pytest.fixture(scope="module")
def log_probs(read):
    def of(text, model=TARGET):
        ids, logits = read(text, model)
        return F.log_softmax(logits[:-1], dim=-1).gather(1, ids[1:, None])[:, 0]

    return of


def test_min_k_plus_plus(shop, read, log_probs):
    """zjysteven/mink-plus-plus, run.py at 62281ab: int(T K) tokens, sigma^2 = E[x^2] - E[x]^2 in float32."""
    for k in KS:
        minima, standard = [], []
        for document in TEXTS.documents:
            _, logits = read(document.text)
            whole = F.log_softmax(logits[:-1], dim=-1)
            p, own = whole.exp(), log_probs(document.text)
            mu = (p * whole).sum(-1)
            z = (own - mu) / ((p * whole.square()).sum(-1) - mu.square()).sqrt()
            size = int(len(own) * k)
            minima.append(float(own.sort().values[:size].mean()))
            standard.append(float(z.sort().values[:size].mean()))
        agrees("min-k", ours(shop, MinK(k, compat="official")), minima)
        agrees("min-k-plus-plus", ours(shop, MinKPlusPlus(k, compat="official")), standard)
    losses = [float(log_probs(document.text).mean()) for document in TEXTS.documents]
    sizes = [len(zlib.compress(document.text.encode())) for document in TEXTS.documents]
    agrees("min-k", ours(shop, Loss()), losses)
    agrees("min-k", ours(shop, Zlib(), scored_text=False), np.divide(losses, sizes))


def test_mimir(shop, log_probs):
    """iamgroot42/mimir, mimir/models.py at 014d0ea and mimir/attacks/gradnorm.py at 576339b. Lower is a member there:
    each number is the negative of ours, but gradnorm's, which the program negates itself."""
    nll = [-float(log_probs(document.text).mean()) for document in TEXTS.documents]
    reference = [-float(log_probs(document.text, OTHER).mean()) for document in TEXTS.documents]
    agrees("mimir", ours(shop, Loss()), np.negative(nll))
    agrees("mimir", ours(shop, ReferenceDifference()), np.subtract(reference, nll))


def test_recall(shop, log_probs, read):
    """ruoyuxie/recall, src/run.py at 1b03b6b, and mimir/attacks/recall.py at bdb3c06 (which divides by a positive loss,
    so that its number is the negative of this)."""
    unread = tiny.texts(*tiny.random_texts(2, seed=9), name="unread")
    loaded = shop.get(TARGET)
    before = list(chain.from_iterable(loaded.tokenizer(item.text)["input_ids"] for item in unread.documents))
    expected = []
    for document in TEXTS.documents:
        ids = loaded.tokenizer(document.text)["input_ids"]
        with torch.no_grad():
            logits = loaded.model(torch.tensor([[*before, *ids]])).logits[0]
        behind = F.log_softmax(logits[len(before) - 1 : -1], -1).gather(1, torch.tensor(ids)[:, None])
        expected.append(float(behind.mean() / log_probs(document.text).mean()))
    agrees("recall", ours(shop, Recall(2), prefix=unread), expected)


def test_features_of_llm_di(shop, log_probs):
    """pratyushmaini/llm_dataset_inference, metrics.py at 4a90baa: of losses, so that k_min_probs are our Max-K%."""
    losses = [sorted((-log_probs(document.text)).tolist()) for document in TEXTS.documents]

    def mean_of(part, k):
        return np.mean(part[: max(1, int(len(part) * k))])

    for k in FRACTIONS:
        agrees("llm_di features", ours(shop, MaxK(k)), [-mean_of(item, k) for item in losses])
        agrees("llm_di features", ours(shop, MinK(k)), [-mean_of(item[::-1], k) for item in losses])
    agrees("llm_di features", ours(shop, Perplexity()), [-math.exp(np.mean(item)) for item in losses])


@pytest.mark.slow
def test_p_of_llm_di():
    """linear_di.py at 4a90baa: tails of each set clipped, scaled by the suspect set, nn.Linear in float32 from random
    weights by Adam, Student's t on the other half. The orders of the documents are ours."""
    rng = np.random.default_rng(0)
    suspect, heldout = rng.normal(size=(240, 6)), rng.normal(0.25, 1, size=(240, 6))
    settings = {
        "outliers": "clip",
        "tail_fraction": 0.05,
        "fit_size": 120,
        "num_splits": 1,
        "learning_rate": 0.01,
        "num_steps": 1000,
        "compat": True,
    }
    found = dataset_inference(suspect, heldout, rng=np.random.default_rng(1), **settings)

    def clipped(values):
        tail = int(len(values) * 0.05 / 2)
        in_order = np.sort(values, axis=0)
        return np.clip(values, in_order[tail - 1], in_order[-tail])

    suspect, heldout = clipped(suspect), clipped(heldout)
    heldout = (heldout - suspect.mean(0)) / suspect.std(0)
    suspect = (suspect - suspect.mean(0)) / suspect.std(0)
    order = np.random.default_rng(1)
    suspect, heldout = order.permutation(suspect), order.permutation(heldout)
    torch.manual_seed(0)
    x = torch.tensor(np.concatenate([suspect[:120], heldout[:120]]), dtype=torch.float32)
    y = torch.tensor(np.repeat([0.0, 1.0], 120), dtype=torch.float32)
    linear = torch.nn.Linear(6, 1)
    optimizer = torch.optim.Adam(linear.parameters(), lr=0.01)
    for _ in range(1000):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(linear(x)[:, 0], y).backward()
        optimizer.step()
    with torch.no_grad():
        logits = [linear(torch.tensor(part[120:], dtype=torch.float32))[:, 0].numpy() for part in (suspect, heldout)]
    expected = stats.ttest_ind(*logits, alternative="less")
    agrees("llm_di p", found.statistics, [expected.statistic])
    agrees("llm_di p", np.log(found.p_values), [math.log(expected.pvalue)])


def test_kds():
    """deeplearning-wisc/kernel-divergence-score, src/profiler.py at f7b24b2: float32 kernels, gamma of 1 / median."""
    torch.manual_seed(0)
    before = F.normalize(torch.randn(60, 24), dim=1)
    after = F.normalize(before + 0.1 * torch.randn(60, 24), dim=1)

    def kernel(points):
        distances = torch.cdist(points, points)
        upper = torch.triu_indices(*distances.shape, offset=1)
        gamma = 1 / float(np.quantile(distances[upper[0], upper[1]].numpy(), 0.5))
        squares = points.square().sum(1)
        return torch.exp(-gamma * (squares[:, None] - 2 * points @ points.T + squares[None]))

    item, other = kernel(before), kernel(after)
    expected = -F.kl_div(other.log(), item, reduction="none").abs().sum() / item.sum().sqrt()
    points = (F.normalize(part.double(), dim=1).numpy() for part in (before, after))
    found = kernel_divergence(*points, bandwidth="per_kernel_median")
    agrees("kds", [found.score], [float(expected)])


def test_fsd(shop, log_probs):
    """ml-stat-Sustech/Fine-tuned-Score-Deviation, eval.py at e3d9060: tuned minus base of scores that are lower for
    members; ours is base minus tuned of scores that are higher."""
    for score, program in {
        Perplexity(): lambda own, low, size: math.exp(-own.mean()),
        Lowercase(): lambda own, low, size: -low.mean() / own.mean(),
        Zlib(): lambda own, low, size: -own.mean() / size,
        MinK(0.2, compat="official"): lambda own, low, size: -np.sort(own)[: int(len(own) * 0.2)].mean(),
    }.items():
        expected = []
        for document in TEXTS.documents:
            size = len(zlib.compress(document.text.encode()))
            base, tuned = (
                program(
                    log_probs(document.text, model).numpy().astype(np.float64),
                    log_probs(document.text.lower(), model).numpy().astype(np.float64),
                    size,
                )
                for model in (TARGET, OTHER)
            )
            expected.append(tuned - base)
        agrees("fsd", deviation(ours(shop, score), ours(shop, score, OTHER)), expected)


def test_order_test(shop):
    """tatsu-lab/test_set_contamination, compute_sharded_comparison_test.py at 2912e15: windows, the mean over shuffles,
    the deviation with N, and p. The shuffles are ours."""
    lines = tiny.texts(*tiny.random_texts(24, seed=5), name="line")
    shards = Sharded(lines, 4, 24)
    table = shop.get(OrderLikelihoods(TARGET, shards, 5, 32, 16, 0))
    loaded = shop.get(TARGET)
    _, pieces = encode_pieces(loaded.tokenizer, [line(item.text) for item in lines.documents])
    ids_of = dict(zip((item.doc_id for item in lines.documents), pieces, strict=True))

    def log_likelihood(ids):
        inputs, targets, total = ids[:-1], ids[1:], 0.0
        for window in range(math.ceil(max(0, len(inputs) - 32) / 16) + 1):
            start, end = 16 * window, min(16 * window + 32, len(inputs))
            with torch.no_grad():
                logits = loaded.model(torch.tensor([inputs[start:end]])).logits[0]
            found = F.log_softmax(logits, -1).gather(1, torch.tensor(targets[start:end])[:, None])[:, 0]
            total += float(found[(16 if window else 0) :].sum())
        return total

    canonical, shuffled = [], []
    for shard in shards.shards(shop.get(lines)).values():
        own = [ids_of[item.doc_id] for item in shard]
        canonical.append(log_likelihood([*chain.from_iterable(own)]))
        orders = random_orders(shard, 5, 0)
        drawn = [
            log_likelihood([*chain.from_iterable(own[place] for place in order)])
            for order, number in zip(orders.indices_KE, orders.draws_K, strict=True)
            for _ in range(number)
        ]
        shuffled.append(np.mean(drawn))
    agrees("order", table.canonical, canonical)
    agrees("order", table.mean_shuffled, shuffled)
    differences = np.subtract(canonical, shuffled)
    z = differences.mean() / differences.std() * math.sqrt(len(differences))
    found = order_test(np.array(canonical), np.array(shuffled), compat=True)
    agrees("order", [found.statistic, found.p_value], [z, 1 - stats.t.cdf(z, len(differences) - 1)])
