"""Metrics by the grid of torchmetrics' own tests: batches, processes, types, copies. Values are SciPy's."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy
import torch
from torchmetrics import MetricCollection

from nonmember import scores
from nonmember.scoring.metrics import MinK, MinKPlusPlus, Perplexity

BATCHES, ROWS, VOCAB = 6, 4, 11


def logits_batches(dtype=torch.float32):
    """Documents of 2 to 9 tokens with padding on the right, or on the left in every other batch."""
    generator = torch.Generator().manual_seed(3)
    for batch in range(BATCHES):
        logits = 3 * torch.randn(ROWS, 9, VOCAB, generator=generator)
        ids = torch.randint(VOCAB, (ROWS, 9), generator=generator)
        lengths = torch.randint(2, 10, (ROWS, 1), generator=generator)
        mask = (torch.arange(9) < lengths).long()
        yield logits.to(dtype), ids, mask.flip(1) if batch % 2 else mask


def scored(batches, quantity):
    """[documents] in float64, from the definition."""
    values = []
    for logits, ids, mask in batches:
        for row, tokens, real in zip(logits.double().numpy(), ids.numpy(), mask.numpy().astype(bool), strict=True):
            log_p, tokens = scipy.special.log_softmax(row[real], axis=1)[:-1], tokens[real][1:]
            own = log_p[np.arange(len(tokens)), tokens]
            mean = (np.exp(log_p) * log_p).sum(1)
            std = np.sqrt((np.exp(log_p) * (log_p - mean[:, None]) ** 2).sum(1))
            values.append(quantity(own, mean, std))
    return np.array(values)


def smallest(values, k):
    return np.sort(values)[: max(1, int(len(values) * k + 1e-9))].mean()


def perplexity(own, mean, std):
    return np.exp(-own.mean())


def min_k(own, mean, std):
    return smallest(own, 0.4)


def min_k_plus_plus(own, mean, std):
    return smallest((own - mean) / std, 0.4)


GRID = {
    "perplexity": (functools.partial(Perplexity, reduction="none"), functools.partial(scored, quantity=perplexity)),
    "min_k": (functools.partial(MinK, 0.4, reduction="none"), functools.partial(scored, quantity=min_k)),
    "min_k++": (functools.partial(MinKPlusPlus, 0.4, "none"), functools.partial(scored, quantity=min_k_plus_plus)),
    "mean": (functools.partial(MinK, 0.4), lambda batches: scored(batches, min_k).mean()),
}
each_metric = pytest.mark.parametrize(("make", "reference"), GRID.values(), ids=GRID)


def close(found, expected, tolerance=1e-5):
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


@each_metric
@pytest.mark.parametrize("num_processes", [1, 2])
def test_batches_over_processes_give_the_value_of_all_documents(make, reference, num_processes):
    """Each process has every other batch; what they have is joined as torchmetrics joins it."""
    shares = [list(logits_batches())[rank::num_processes] for rank in range(num_processes)]
    metrics = [make() for _ in shares]
    for rank, share in enumerate(shares):
        for batch in share:
            close(metrics[rank](*batch), reference([batch]))  # forward: the value of the batch alone
            metrics[rank] = metrics[rank].clone()
    joined = metrics[0]
    for other in metrics[1:]:
        joined.merge_state(other)  # which puts the other's first
    close(joined.compute(), reference([batch for share in reversed(shares) for batch in share]))


@each_metric
def test_a_copy_is_independent_and_a_reset_metric_new(make, reference):
    first, second, *_ = logits_batches()
    metric = make()
    metric.update(*first)
    other = metric.clone()
    other.update(*second)
    close(metric.compute(), reference([first]))
    close(other.compute(), reference([first, second]))
    metric.reset()
    metric.update(*second)
    close(metric.compute(), reference([second]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_logits_of_any_type_are_scored_in_single_precision(dtype):
    metric = MinKPlusPlus(0.4, reduction="none")
    for batch in logits_batches(dtype):
        metric.update(*batch)
    close(metric.compute(), scored(logits_batches(dtype), min_k_plus_plus))
    assert metric.half().compute().dtype == torch.float32  # as all of torchmetrics: only set_dtype changes states
    assert metric.set_dtype(torch.float64).compute().dtype == torch.float64


def test_values_are_those_of_the_projects_functions_to_the_last_bit():
    metrics = MetricCollection({"k": MinK(0.4, reduction="none"), "pp": MinKPlusPlus(0.4, reduction="none")})
    for batch in logits_batches():
        metrics.update(*batch)
    values, kept = metrics.set_dtype(torch.float64).compute(), metrics["k"]
    assert len(metrics.compute_groups) == 1  # the tokens are read once for both
    ends = torch.cat(kept.num_tokens).long().cumsum(0)[:-1].tolist()
    columns = [np.split(torch.cat(part).double().numpy(), ends) for part in (kept.log_prob, kept.mean, kept.std)]
    np.testing.assert_array_equal(values["k"].numpy(), scores.min_k(columns[0], 0.4))
    np.testing.assert_array_equal(values["pp"].numpy(), scores.min_k_plus_plus(*columns, 0.4))


def test_a_document_of_one_token_has_no_score_and_counts_in_no_mean():
    logits, ids, _ = next(logits_batches())
    mask = torch.ones(ROWS, 9).long()
    mask[1, 1:] = 0
    every, mean = Perplexity(reduction="none"), Perplexity()
    assert every(logits, ids, mask).isnan().tolist() == [False, True, False, False]
    assert mean(logits, ids, mask) == every.compute().nanmean()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: MinK(2.0), r"must be .*\[0.001, 1\]"),
        (lambda: MinK(0.2, reduction="sum"), "reduction must be one of mean, none"),
        (lambda: MinK(0.2)(torch.zeros(2, 3, 5), torch.zeros(2, 4).long()), "not shifted"),
        (lambda: MinK(0.2)(torch.full((1, 3, 5), torch.nan), torch.zeros(1, 3).long()), "no distribution"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def work(rank, folder):
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    found = {}
    for name, (make, _) in GRID.items():
        metric = make()
        for batch in list(logits_batches())[rank::2]:
            metric.update(*batch)
        found[name] = metric.compute()
    torch.save(found, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_see_all_documents(tmp_path):
    torch.multiprocessing.spawn(work, (str(tmp_path),), nprocs=2)
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        for name, (_, reference) in GRID.items():
            close(found[name], reference([*list(logits_batches())[::2], *list(logits_batches())[1::2]]))
