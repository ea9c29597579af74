"""WBC, LiRA and RMIA against numbers worked out by hand, what they do not depend on, and what is refused."""

from __future__ import annotations

import dataclasses
import math
from statistics import NormalDist

import numpy as np
import pytest
from test_scores import table

import tiny
from nonmember.config.compose import composed
from nonmember.config.given import IncompleteQuestion, given
from nonmember.methods.dose.controls import PlantedDoses, unread_controls
from nonmember.models import Pretrained, named
from nonmember.observations import Scored
from nonmember.scores import Lira, Loss, Rmia, ScoreInputs, Wbc
from nonmember.stats.classification import roc_auc

TARGET, OUTS = tiny.scratch(3), (tiny.scratch(4), tiny.scratch(5))
UNREAD = tiny.texts(*tiny.random_texts(6, seed=9), name="unread")


def single(**documents):
    """A table of documents of one token each."""
    return table({name: [value] for name, value in documents.items()})


# WBC ------------------------------------------------------------------------------------------------------------------


def votes(target, reference, score=None):
    return (score or Wbc(1, 2, 2))(ScoreInputs(table({"d": target}), reference=table({"d": reference}))).values[0]


def test_windows_by_hand():
    """Gains 3, -1, -1, -1: of single tokens 1 of 4, of pairs (2, -2, -2) 1 of 3."""
    assert votes([-1, -3, -3, -3], [-4, -2, -2, -2]) == pytest.approx((1 / 4 + 1 / 3) / 2)
    assert votes([-1, -3], [-2, -2]) == pytest.approx((1 / 2 + 1 / 2) / 2), "a tie counts half"
    assert votes([-1, -1, -1], [-2, -2, -2], Wbc(2, 40, 10)) == 1, "widths beyond the text are left out"
    assert Wbc().widths == [2, 3, 4, 5, 8, 11, 15, 21, 29, 40]  # 2 * 20 ** (n / 9), rounded


def test_what_windows_do_not_depend_on():
    rng = np.random.default_rng(0)
    target, reference = (-rng.exponential(2, 60).astype(np.float32) for _ in range(2))
    vote = votes(target, reference, Wbc())
    assert votes(reference, target, Wbc()) == pytest.approx(1 - vote)
    assert votes(target - 1, reference - 1, Wbc()) == pytest.approx(vote, abs=1e-3)
    for place in range(0, 60, 7):  # a token that the target likes better never lowers it
        better = target.copy()
        better[place] += 0.5
        assert votes(better, reference, Wbc()) >= vote
    one = votes(np.where(np.arange(60) == 30, -1, -2 - 0.01), np.full(60, -2.0), Wbc(2, 2, 1))
    assert one == pytest.approx(2 / 59), "an enormous gain of one token decides its own windows alone"


def test_windows_need_the_same_tokens_and_enough_of_them():
    inputs = ScoreInputs(
        table({"a": [-1, -2], "short": [-1], "b": [-1, -2]}, token_id={"a": [1, 2], "short": [1], "b": [1, 2]}),
        reference=table(
            {"b": [-3, -3], "a": [-2, -2], "short": [-2]}, token_id={"b": [1, 3], "a": [1, 2], "short": [1]}
        ),
    )
    found = Wbc()(inputs)
    assert found.values == pytest.approx([1, math.nan, math.nan], nan_ok=True)
    assert found.reasons == {
        "short": "fewer than 2 scored tokens, the narrowest window",
        "b": "target and reference cut the text into different tokens",
    }
    with pytest.raises(ValueError, match="widest must be at least narrowest, 9 tokens; got 3"):
        Wbc(9, 3)
    with pytest.raises(ValueError, match="needs a reference model"):
        Wbc()(dataclasses.replace(inputs, reference=None))


# LiRA -----------------------------------------------------------------------------------------------------------------

OWN = single(a=-1.0, b=-2.0)
TWO = (single(a=-2.0, b=-2.0), single(b=-2.4, a=-3.0))


@pytest.mark.parametrize(
    ("outs", "shrinkage", "expected"),
    [
        # Means -2.5 and -2.2, variances .5 and .08, their mean .29; half of each: .395 and .185.
        (TWO, 1, [1.5 / math.sqrt(0.395), 0.2 / math.sqrt(0.185)]),
        (TWO, 0, [1.5 / math.sqrt(0.5), 0.2 / math.sqrt(0.08)]),
        # Gains 1 and 0 vary by .5 over the documents.
        (TWO[:1], 1, [1 / math.sqrt(0.5), 0.0]),
    ],
)
def test_deviations_by_hand(outs, shrinkage, expected):
    inputs = ScoreInputs(OWN, out_models=outs)
    assert Lira(shrinkage, "z")(inputs).values == pytest.approx(expected, rel=1e-5)
    probabilities = [NormalDist().cdf(z) for z in expected]
    assert Lira(shrinkage)(inputs).values == pytest.approx(probabilities, rel=1e-5)


def test_lira_rises_with_the_target_and_not_with_the_order_of_anything():
    rng = np.random.default_rng(1)
    names = [f"d{index}" for index in range(20)]
    target, *outs = (dict(zip(names, values, strict=True)) for values in rng.normal(-3, 0.3, (5, 20)))
    inputs = ScoreInputs(single(**target), out_models=[single(**item) for item in outs])
    values = dict(zip(names, Lira()(inputs).values, strict=True))
    backwards = [single(**dict(reversed(item.items()))) for item in reversed(outs)]
    again = Lira()(dataclasses.replace(inputs, out_models=backwards))
    assert dict(zip(names, again.values, strict=True)) == pytest.approx(values, rel=1e-12)
    better = Lira()(dataclasses.replace(inputs, tokens=single(**{**target, "d3": target["d3"] + 0.1})))
    assert better.values[3] > values["d3"]
    assert np.delete(better.values, 3) == pytest.approx(np.delete(list(values.values()), 3), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("score", [Lira(), Lira(scale="z"), Rmia()], ids=lambda item: item.name)
@pytest.mark.parametrize("number", [1, 2, 8])
def test_the_null_of_a_model_like_the_others(score, number):
    """A target drawn as the out-models are ranks one half of the documents above the other as often as below."""
    rng, aucs = np.random.default_rng(number), []
    names = [f"d{index}" for index in range(60)]
    for _ in range(60):
        hard = rng.normal(-3, 0.5, 60)
        models = [single(**dict(zip(names, hard + rng.normal(0, 0.2, 60), strict=True))) for _ in range(number + 1)]
        others = [
            single(**{f"z{i}": value for i, value in enumerate(rng.normal(-3, 0.2, 30))}) for _ in range(number + 1)
        ]
        inputs = ScoreInputs(models[0], out_models=models[1:], population=others[0], population_out_models=others[1:])
        aucs.append(roc_auc(score(inputs).values, np.arange(60) < 30))
    assert np.mean(aucs) == pytest.approx(0.5, abs=0.03)  # of a mean of 60: standard deviation .01


def test_a_probability_that_cannot_rise_is_counted():
    far = Lira(0)(ScoreInputs(single(a=-1.0, b=-2.0), out_models=(single(a=-9.0, b=-2.5), single(a=-9.1, b=-2.0))))
    assert far.values[0] == 1
    assert far.counters == {"lira_at_one": 1}


def test_out_models_that_say_nothing():
    same = Lira(0)(ScoreInputs(OWN, out_models=(TWO[0], TWO[0])))
    assert np.isnan(same.values).all()
    assert "no deviation to divide by" in same.reasons["a"]
    empty = Lira()(ScoreInputs(OWN, out_models=(TWO[0], table({"a": [], "b": [-1.0]}))))
    assert empty.reasons == {"a": "out-models: no scored token: the text has fewer than two tokens"}
    for score in (Lira(), Rmia()):
        with pytest.raises(ValueError, match="needs models that have not read the texts"):
            score(ScoreInputs(OWN, population=OWN))


# RMIA -----------------------------------------------------------------------------------------------------------------


def logs(**probabilities):
    return single(**{name: math.log(value) for name, value in probabilities.items()})


@pytest.mark.parametrize(("gamma", "expected"), [(1, [3 / 4, 2 / 4]), (1.9, [3 / 4, 0]), (3, [2 / 4, 0])])
def test_ranks_by_hand(gamma, expected):
    """LR of a: .5 / .25 = 2, of b: .11 / .2 = .55; of the unread texts 3, 1, .4 and .5."""
    inputs = ScoreInputs(
        logs(a=0.5, b=0.11),
        out_models=(logs(a=0.2, b=0.1), logs(a=0.3, b=0.3)),
        population=logs(w=0.3, x=0.2, y=0.1, z=0.2),
        population_out_models=(logs(w=0.1, x=0.1, y=0.2, z=0.4), logs(w=0.1, x=0.3, y=0.3, z=0.4)),
    )
    assert Rmia(gamma)(inputs).values == pytest.approx(expected)
    with pytest.raises(ValueError, match="needs other unread texts"):
        Rmia()(dataclasses.replace(inputs, population=None))
    nothing = (table({"w": []}), table({"w": []}))
    with pytest.raises(ValueError, match="none has two tokens"):
        Rmia()(dataclasses.replace(inputs, population=nothing[0], population_out_models=nothing))


# Measured -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_of_models(tmp_path):
    """From the losses under each model; the model itself is none of its out-models."""
    shop = tiny.builder(tmp_path)

    def values(score, model=TARGET, corpus=tiny.SUSPECT, **beside):
        return Scored("target", model, corpus, score, 64, **beside).measure(shop).values.values

    s_t, *s_o = (values(Loss(), model) for model in (TARGET, *OUTS))
    z_t, *z_o = (values(Loss(), model, UNREAD) for model in (TARGET, *OUTS))
    found = values(Lira(0, "z"), out_models=(OUTS[0], TARGET, OUTS[1]))
    low, high = np.minimum(*s_o), np.maximum(*s_o)  # of two numbers the deviation is their distance over root two
    np.testing.assert_allclose(found, (s_t - (low + high) / 2) / ((high - low) / math.sqrt(2)), rtol=1e-6)
    ratios, others = (
        np.exp(target) / ((np.exp(first) + np.exp(second)) / 2) for target, first, second in ((s_t, *s_o), (z_t, *z_o))
    )
    found = values(Rmia(), out_models=OUTS, prefix=UNREAD)
    np.testing.assert_allclose(found, [np.mean(ratio / others >= 1) for ratio in ratios])
    with pytest.raises(ValueError, match=r"compares with other models .* out_models=named"):
        values(Lira(), out_models=(TARGET,))
    with pytest.raises(ValueError, match=r"ranks documents among unread texts .* data\.unseen"):
        values(Rmia(), out_models=OUTS)


def test_controls_that_have_read_nothing():
    related = tiny.texts("other words", name="related")
    controls = PlantedDoses(
        TARGET, True, tiny.pretraining(), tiny.GENERAL, [1, 2], exposures=[0, 1], related=related, related_exposures=[2]
    )
    unread = unread_controls(controls, tiny.SUSPECT)
    made = controls.models(tiny.SUSPECT)
    read = [
        (item.exposure.exposures, item.related.exposures) for model in unread for item in made if item.model == model
    ]
    assert read == [(0, 0), (0, 0), (0, 2), (0, 2)]
    assert unread_controls(controls, tiny.SUSPECT, 3) == unread[:3]
    with pytest.raises(ValueError, match="So many controls have read nothing"):
        unread_controls(controls, tiny.SUSPECT, 5)


def test_out_models_by_command():
    question = ["method=levels_out", "target.path=T", "reference.path=R", "data.path=D", "out_models=named"]
    with composed("audit", question) as (config, _), pytest.raises(IncompleteQuestion) as error:
        given(config)
    assert {"out_models.paths", "data.unseen.path"} == set(error.value.keys)
    assert "out_models.paths=" in str(error.value)
    with composed("audit", [*question, "data.unseen.path=U", "out_models.paths=[A,B]"]) as (config, _):
        _, audit = given(config)
    assert [model.path for model in audit.out_models] == ["A", "B"]
    assert audit.compared_with() == {
        "out-model-0": Pretrained("A"),
        "out-model-1": Pretrained("B"),
        "reference": Pretrained("R"),
    }
    with pytest.raises(ValueError, match="different folders or names"):
        named(["A", "A"])
