"""What is known before planning: variance by source, found again in simulated audits; whom it is hardest to tell."""

import math
from dataclasses import replace

import numpy as np
import pytest

from nonmember.stats.crossed import two_way
from nonmember.stats.planning import PilotAudit, pilot, shared_part, spread

ONE = PilotAudit(
    controls={(1.0, 0.0): [0.20, 0.24], (1.0, 4.0): [0.10, 0.12], (1.0, 12.0): [0.02, 0.02], (0.5, 12.0): [0.15, 0.15]},
    num_documents=100,
    num_seeds=2,
    seed_variance=0.0001,
    seed_df=8,
    interaction=0.00004,
    document_variance=0.0002,
    shared=0.25,
)


def test_a_reading_is_as_hard_to_tell_as_the_heavier_one_that_is_hardest():
    assert ONE.mean_of_readers((1.0, 4.0)) == pytest.approx(0.11)
    assert ONE.mean_of_readers((1.0, 12.0)) == pytest.approx(0.02)
    assert ONE.mean_of_readers((0.5, 12.0)) == pytest.approx(0.15)
    assert ONE.gap((1.0, 4.0)) == pytest.approx(0.11)
    risen = replace(ONE, controls={**ONE.controls, (1.0, 12.0): [0.18, 0.18]})
    assert risen.mean_of_readers((1.0, 4.0)) == pytest.approx(0.18), "more was read and Delta rose"
    assert risen.mean_of_readers((0.5, 4.0)) == pytest.approx(0.18), "a share that was not planted at that dose"


def test_spread_by_hand():
    """Sums of squares .0008 + .0002 + 0 + 0 on 4 degrees of freedom; of it .00005 seeds and .00015 documents."""
    found = spread([ONE])
    assert (found.df, found.sigma_df) == (4, 8)
    assert found.variance == pytest.approx(0.00025)
    assert found.tau == pytest.approx(math.sqrt(0.00025 - 0.00005 - 0.00015))
    assert found.sigma == pytest.approx(math.sqrt(0.0001 - 0.00004))
    assert (found.interaction, found.per_document) == pytest.approx((0.004, 0.02))
    made = pilot([ONE], (1.0, 4.0))
    assert made.variance(100, 2) == pytest.approx(0.00025), "the pilot's own size gives back what was measured"
    assert made.variance(400, 4) == pytest.approx(0.00005 + (0.00006 + 0.00001) / 4 + 0.00015 / 4)
    assert made.gap == pytest.approx(0.11)


def test_what_seeds_and_documents_explain_leaves_no_negative_variance():
    assert spread([replace(ONE, document_variance=0.1)]).tau == 0


def test_one_seed_tells_nothing_of_seeds():
    made = pilot([replace(ONE, num_seeds=1, seed_variance=0.0, seed_df=0, interaction=0.0)], (1.0, 4.0))
    assert made.sigma == 0
    assert made.tau > spread([ONE]).tau


def simulated(rng, *, num_documents, num_seeds, tau=0.02, sigma=0.03, per_document=0.3, interaction=0.2, shared=0.4):
    """Two controls of four readings, drawn source by source."""
    variance = per_document / num_documents
    of_a_seed = sigma**2 + interaction / num_documents
    common = math.sqrt(shared * variance) * rng.normal()

    def delta(mean):
        own = tau * rng.normal() + math.sqrt(of_a_seed) * rng.normal(size=num_seeds).mean()
        return mean + common + own + math.sqrt((1 - shared) * variance) * rng.normal()

    controls = {(1.0, times): [delta(0.2 - 0.01 * times) for _ in range(2)] for times in (0.0, 1.0, 4.0, 12.0)}
    df = 8 * (num_seeds - 1)
    measured = of_a_seed * rng.chisquare(df) / df
    return PilotAudit(controls, num_documents, num_seeds, measured, df, interaction / num_documents, variance, shared)


@pytest.mark.slow
def test_the_sources_of_variance_are_found_again():
    rng = np.random.default_rng(0)
    audits = [simulated(rng, num_documents=size, num_seeds=seeds) for size, seeds in ((100, 2), (500, 3)) * 600]
    found = spread(audits)
    assert found.tau == pytest.approx(0.02, rel=0.07)
    assert found.sigma == pytest.approx(0.03, rel=0.03)
    assert found.per_document == pytest.approx(0.3)
    assert found.shared == pytest.approx(0.4)
    made = pilot(audits, (1.0, 4.0))
    assert made.gap == pytest.approx(0.04, abs=0.005)
    assert made.variance(250, 4) == pytest.approx(0.02**2 + (0.03**2 + 0.2 / 250) / 4 + 0.18 / 250, rel=0.04)


def test_what_models_share_of_the_documents():
    rng = np.random.default_rng(1)
    common_G, own_MG = rng.normal(size=20000), rng.normal(size=(5, 20000))
    assert shared_part(0.6 * common_G + 0.8 * own_MG, 0.0) == pytest.approx(0.36, abs=0.02)
    of_all = (20000 - 1) * 1.0
    assert shared_part(0.6 * common_G + 0.8 * own_MG, 0.28 * of_all) == pytest.approx(0.5, abs=0.02)
    assert shared_part(np.stack([common_G, common_G + 3]), 0.0) == pytest.approx(1)
    assert shared_part(np.stack([common_G, -common_G]), 0.0) == 0
    assert shared_part(own_MG[:1], 0.0) == 0, "one model tells nothing, and 0 is careful"
    assert shared_part(np.zeros((2, 5)), 0.0) == 0


@pytest.mark.slow
def test_seeds_that_differ_by_the_documents_alone_differ_less_on_more_of_them():
    """Distilled references whose scores are noise about one value: no seed is better than another."""
    rng = np.random.default_rng(3)
    few, many = spread([of_scores(rng, 60) for _ in range(15)]), spread([of_scores(rng, 240) for _ in range(4)])
    assert few.interaction == pytest.approx(many.interaction, rel=0.2)
    assert few.sigma**2 < 0.3 * few.interaction / 60
    assert few.shared == pytest.approx(many.shared, abs=0.15)


def of_scores(rng, num_documents, num_seeds=2):
    """An audit of six controls that know the same documents alike in part, and are as reliable as their seeds."""
    reference_N, common_N = rng.normal(size=(2, num_documents))
    measured = []
    for _ in range(6):
        target_N = 0.8 * reference_N + 0.6 * (0.7 * common_N + 0.71 * rng.normal(size=num_documents))
        distilled_SN = 0.6 * target_N + 0.8 * rng.normal(size=(num_seeds, num_documents))
        measured.append(
            two_way(
                reference_N,
                target_N,
                distilled_SN,
                range(num_documents),
                metric="spearman",
                num_resamples=1,
                alpha=0.05,
                rng=rng,
            )
        )
    deltas = [item.statistic for item in measured]
    interaction = float(np.mean([item.jackknife.interaction() for item in measured]))
    without_MG = np.array(
        [item.jackknife.without_reference_G - item.jackknife.without_distilled_SG.mean(axis=0) for item in measured]
    )
    return PilotAudit(
        controls={(1.0, 0.0): deltas[:3], (1.0, 4.0): deltas[3:]},
        num_documents=num_documents,
        num_seeds=num_seeds,
        seed_variance=float(np.mean([item.deltas.var(ddof=1) for item in measured])),
        seed_df=6 * (num_seeds - 1),
        interaction=interaction * num_seeds,
        document_variance=float(np.mean([item.variance_documents for item in measured])),
        shared=shared_part(without_MG, interaction),
    )


@pytest.mark.parametrize(
    ("controls", "message"),
    [
        ({(1.0, 4.0): [0.1, 0.2]}, "Plant a reading of 0 exposures"),
        ({(1.0, 0.0): [0.1], (1.0, 4.0): [0.2]}, "at least 2 controls of one reading"),
    ],
)
def test_a_pilot_that_tells_too_little(controls, message):
    with pytest.raises(ValueError, match=message):
        pilot([replace(ONE, controls=controls)], (1.0, 4.0))
