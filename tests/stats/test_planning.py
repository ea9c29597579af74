import math

import numpy as np
import pytest
from scipy import stats

from nonmember.stats.margins import Extra, bound_factor, margin
from nonmember.stats.planning import Costs, Pilot, Rule, error_and_power, plan, power_ceiling

PILOT = Pilot(
    delta_untouched=0.08,
    delta_controls=0.02,
    tau=0.01,
    sigma=0.015,
    document_variance=0.0003,
    num_documents=200,
    shared=0.25,
    interaction=0.0001,
)
LIMITS = {"min_documents": 50, "max_documents": 2000, "max_seeds": 5, "max_controls": 10}
COSTS = Costs(control=100, distillation_per_document=0.02)
RULES = [Rule(0.95, None, 1, False), Rule(0.95, 0.9, 1, False), Rule(0.9, 0.95, 3, True)]


def changed(**settings):
    return Pilot(**{**PILOT.__dict__, **settings})


def planned(pilot=PILOT, rule=RULES[0], *, power=0.9, **limits):
    return plan(pilot, rule, power=power, costs=COSTS, **{**LIMITS, **limits})


def test_variance_by_hand():
    """.0001 + (.000225 + .0001 x 200 / 500) / 3 + .0003 x 200 x .75 / 500."""
    assert PILOT.variance(500, 3) == pytest.approx(0.0001 + 0.000265 / 3 + 0.00009)
    assert PILOT.gap == pytest.approx(0.06)


def simulated(pilot, rule, *, num_documents, num_seeds, num_controls, num_worlds=20000):
    """Shares of models that are cleared, (readers, untouched): controls of all doses, and one of either kind, drawn
    source by source; what is shared by all is the documents'."""
    rng = np.random.default_rng(0)

    def deltas(mean, *shape):
        of_models = pilot.tau * rng.normal(size=(num_worlds, *shape))
        of_a_seed = math.sqrt(pilot.sigma**2 + pilot.interaction * pilot.num_documents / num_documents)
        of_seeds = of_a_seed * rng.normal(size=(num_worlds, *shape, num_seeds)).mean(axis=-1)
        own = math.sqrt(pilot.document_variance * pilot.num_documents * (1 - pilot.shared) / num_documents)
        return mean + of_models + of_seeds + own * rng.normal(size=(num_worlds, *shape))

    common = math.sqrt(pilot.document_variance * pilot.num_documents * pilot.shared / num_documents)
    common_W = common * rng.normal(size=num_worlds)
    controls = deltas(pilot.delta_controls, rule.num_doses, num_controls) + common_W[:, None, None]
    df = rule.num_doses * (num_controls - 1)
    spread_W = np.sqrt(controls.var(axis=2, ddof=1).mean(axis=1))
    factor = bound_factor(num_controls, df, content=rule.content, confidence=rule.confidence)
    bound_W = controls[:, 0].mean(axis=1) + factor * spread_W
    return tuple(
        float(np.mean(deltas(mean) + common_W > bound_W)) for mean in (pilot.delta_controls, pilot.delta_untouched)
    )


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize(
    "size",
    [
        {"num_documents": 100, "num_seeds": 1, "num_controls": 3},
        {"num_documents": 500, "num_seeds": 3, "num_controls": 6},
    ],
    ids=str,
)
def test_error_and_power_are_those_of_simulated_audits(rule, size):
    error, power = error_and_power(PILOT, rule, **size)
    assert (error, power) == pytest.approx(simulated(PILOT, rule, **size), abs=0.012)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_error_and_power_where_the_target_differs_from_its_controls(rule):
    """Audits drawn one by one; the rule adds a known e = .02 to the spread of its controls. Degrees of freedom of a sum
    are an approximation."""
    pilot, size = changed(extra=Extra(0.02**2)), {"num_documents": 200, "num_seeds": 2, "num_controls": 4}
    rng = np.random.default_rng(1)
    item = math.sqrt(pilot.variance(200, 2))
    cleared = np.zeros(2)
    num_worlds = 4000
    for _ in range(num_worlds):
        controls = {dose: list(rng.normal(0.02, item, 4)) for dose in range(rule.num_doses)}
        bound = margin(controls, 0, content=rule.content, confidence=rule.confidence, extra=pilot.extra).bound
        cleared += np.array([0.02, 0.08]) + rng.normal(0, math.hypot(item, 0.02)) > bound
    expected = error_and_power(pilot, rule, **size)
    assert cleared / num_worlds == pytest.approx(expected, abs=0.06)
    if rule.confidence is None:  # else a known part can save more degrees of freedom than it costs
        assert expected[1] < error_and_power(PILOT, rule, **size)[1]
    assert power_ceiling(pilot.gap, pilot.between_models, 0.95) == pytest.approx(
        stats.norm.cdf(0.06 / math.hypot(0.01, 0.02) - stats.norm.ppf(0.95))
    )


def test_error_of_the_prediction_bound_is_what_was_asked():
    for num_controls in (2, 3, 10):
        error, _ = error_and_power(
            PILOT, Rule(0.95, None, 1, False), num_documents=200, num_seeds=2, num_controls=num_controls
        )
        assert error == pytest.approx(0.05)
        more, _ = error_and_power(
            PILOT, Rule(0.95, 0.9, 1, False), num_documents=200, num_seeds=2, num_controls=num_controls
        )
        assert more < 0.05


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_plan_reaches_the_power_and_one_document_less_does_not(rule):
    found = planned(rule=rule)
    assert found.outcome == "found"
    for design in found.designs:
        size = {"num_seeds": design.num_seeds, "num_controls": design.num_controls}
        error, power = error_and_power(PILOT, rule, num_documents=design.num_documents, **size)
        assert (design.error, design.power) == (error, power)
        assert power >= 0.9
        if design.num_documents > LIMITS["min_documents"]:
            assert error_and_power(PILOT, rule, num_documents=design.num_documents - 1, **size)[1] < 0.9
        trained = (rule.num_doses + rule.negatives) * design.num_controls
        assert design.num_trained == trained
        assert design.num_distillations == design.num_seeds * (trained + 1)
        assert design.cost == pytest.approx(100 * trained + 0.02 * design.num_distillations * design.num_documents)


def test_no_design_within_the_limits_is_cheaper():
    best = planned().designs[0]
    for num_seeds in range(1, 6):
        for num_controls in range(2, 11):
            for num_documents in range(50, 2001, 50):
                size = {"num_documents": num_documents, "num_seeds": num_seeds, "num_controls": num_controls}
                if error_and_power(PILOT, RULES[0], **size)[1] >= 0.9:
                    cost = 100 * num_controls + 0.02 * num_seeds * (num_controls + 1) * num_documents
                    assert cost >= best.cost


def test_dearer_designs_are_told_only_for_fewer_documents():
    designs = planned().designs
    assert len(designs) > 2
    assert [item.cost for item in designs] == sorted(item.cost for item in designs)
    assert [item.num_documents for item in designs] == sorted({item.num_documents for item in designs}, reverse=True)


def test_impossible_where_models_differ_more_than_the_gap():
    """A gap of .02 and models that differ by .01: Phi(2 - 1.645) = .64 at any size."""
    found = planned(changed(delta_controls=0.06))
    assert (found.outcome, found.designs) == ("impossible", ())
    assert found.ceiling == pytest.approx(stats.norm.cdf(2 - stats.norm.ppf(0.95)))
    assert "No audit of any size" in found.explanation
    assert "0.029 would be needed" in found.explanation
    _, huge = error_and_power(
        changed(delta_controls=0.06), RULES[0], num_documents=1e9, num_seeds=1e9, num_controls=100000
    )
    assert huge == pytest.approx(found.ceiling, abs=1e-4)


def test_just_possible_is_possible_without_limits():
    enough = (stats.norm.ppf(0.95) + stats.norm.ppf(0.9)) * 0.01
    for gap, outcome in ((0.98 * enough, "impossible"), (1.02 * enough, "beyond_limits")):
        assert planned(changed(delta_controls=0.08 - gap)).outcome == outcome


def test_impossible_where_untouched_models_look_like_readers():
    found = planned(changed(delta_controls=0.09, tau=0.0))
    assert (found.outcome, found.ceiling) == ("impossible", 0.0)
    assert "not above that of models which read" in found.explanation


def test_beyond_the_limits_says_what_the_limits_give():
    found = planned(max_documents=60, max_seeds=1, max_controls=3)
    _, power = error_and_power(PILOT, RULES[0], num_documents=60, num_seeds=1, num_controls=3)
    assert found.outcome == "beyond_limits"
    assert f"with probability {power:.2f}" in found.explanation


@pytest.mark.parametrize(
    ("setting", "better"),
    [
        ("tau", 0.005),
        ("sigma", 0.005),
        ("document_variance", 0.0001),
        ("interaction", 0.0),
        ("shared", 0.9),
        ("delta_untouched", 0.1),
    ],
)
def test_better_pilots_need_less(setting, better):
    assert planned(changed(**{setting: better})).designs[0].cost < planned().designs[0].cost


def test_a_world_without_noise_needs_the_least():
    still = changed(tau=0.0, sigma=0.0, document_variance=0.0, interaction=0.0)
    assert power_ceiling(still.gap, still.tau, 0.95) == 1.0
    best = planned(still).designs[0]
    assert (best.num_documents, best.num_seeds, best.num_controls, best.power) == (50, 1, 2, 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: changed(tau=-0.1), "0 or more"),
        (lambda: changed(sigma=math.nan), "finite numbers"),
        (lambda: changed(shared=2), "between 0 and 1"),
        (lambda: Rule(95, None, 1, False), "got 95"),
        (lambda: Rule(0.95, None, 0, False), "at least 1 dose"),
        (lambda: planned(power=0.03), "above the error"),
        (lambda: planned(power=1.0), "below 1; got 1.0"),
        (lambda: planned(max_controls=1), "2 controls of each dose"),
        (lambda: planned(min_documents=3000), "from 3000 to 2000"),
    ],
)
def test_refuses_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
