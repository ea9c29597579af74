"""What a setting cannot be is one sentence: key, expected, got, what to do. Plain ranges: tests/test_checks.py."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from nonmember.checks import require_count, require_number, require_text
from nonmember.config.build import build, check_tokens
from nonmember.config.compose import composed
from nonmember.corpora import LibraryDocs
from nonmember.endpoints.models import Endpoint
from nonmember.models import Pretrained
from nonmember.scores import MinK
from nonmember.training import Trained
from nonmember.training.recipes import AdaLora, Lora, Optimization

MODEL = Pretrained("a-model")
DOCUMENTS = LibraryDocs("json")


@cache
def method(name: str) -> Any:
    with composed("audit", ["world=micro", f"method={name}"]) as (config, _):
        return build(config.method)


def sound(name: str) -> Any:
    """A recipe in which nothing is wrong yet."""
    others = {
        "optimization": lambda: method("prism").distillation.optimization,
        "distillation": lambda: method("prism").distillation,
        "tuning": lambda: method("fsd").training,
        "lora": lambda: Lora(None, 8, 16, 0.0),
        "adalora": lambda: AdaLora(None, 24, 16, 32, 0.05, 0.1, 0.3, 1, 0.85, 0.5),
        "min_k": lambda: MinK(0.2),
        "model": lambda: MODEL,
        "endpoint": lambda: Endpoint("https://a.server/v1", "a-model", "chat", "A_KEY"),
    }
    return others[name]() if name in others else method(name)


NAN = float("nan")
REFUSED = {
    "optimization": [
        ("learning_rate", NAN, "learning_rate must be a number above 0; got nan. The paper's is 5e-5."),
        ("learning_rate", 10**400, "learning_rate must be a number above 0; got 1000"),
        ("warmup", 1.0, "as a share of the steps, must be a number in [0, 1); got 1.0"),
        ("warmup", -1, "as a number of steps, must be a whole number of at least 0; got -1. 0.05 would be a share"),
        ("schedule", "step", "schedule must be one of linear, cosine, constant; got 'step'."),
        ("betas", [0.9], "betas must be a list of two numbers in [0, 1); got [0.9]. The usual are [0.9, 0.999]."),
        ("betas", [0.9, 1], "each of betas must be a number in [0, 1); got 1."),
        ("betas", 0.9, "betas must be a list of two numbers"),
        (
            "optimizer",
            "adam",
            "optimizer must be one of adamw, sgd; got 'adam'. A class of your choice: optimizer={_tar",
        ),
        ("optimizer", partial(torch.optim.LBFGS), "a step for each gradient; got LBFGS"),
        ("optimizer", partial(torch.optim.SGD, momentum=MODEL), "momentum of optimizer must be a number, a text"),
    ],
    "distillation": [
        ("tau", 1e-30, "tau must be a number in [0.1, 100]; got 1e-30. The paper's is 2.0"),
        ("optimization", None, "optimization must be an Optimization; got null. Is its `_target_` missing?"),
    ],
    "tuning": [("adapter", None, "adapter must be an adapter (Lora, AdaLora or Ia3); got null.")],
    "lora": [
        (
            "target_modules",
            "dense",
            "target_modules of the adapter must be a list of names or null; got 'dense'. null st",
        ),
        ("target_modules", [], "target_modules of the adapter must be a list of names or null; got []."),
    ],
    "adalora": [("initial_rank", 1, "initial_rank must be larger than rank"), ("after", 0.99, "leave some in between")],
    "prism": [
        ("num_resamples", 1, "at least 20; got 1. With fewer, p cannot fall below alpha (0.05)."),
        ("num_resamples", 10**9, "num_resamples must be a whole number from 20 to 10000000; got 1000000000."),
        ("rank_metric", "pearson", "rank_metric must be one of spearman, kendall; got 'pearson'."),
        ("score", None, "score must be a membership score; got null. Name one: +score@method.score=min_k_plus_plus."),
        ("distillation", None, "distillation must be a distillation; got null."),
    ],
    "fsd": [
        ("scores", [], "scores must be different scores; got []."),
        ("scores", [MinK(0.2), MinK(0.2)], "scores must be different scores; got ['mink(0.2)', 'mink(0.2)']."),
        ("scores", None, "scores must be a list of membership scores; got null."),
    ],
    "kds": [
        ("baselines", [MinK(0.2), MinK(0.2)], "baselines must be a list of different scores, each once; got ['mink("),
        ("gamma", 1.0, "gamma is for bandwidth=fixed"),
    ],
    "mc_pdd": [("sizes", [50, 50], "sizes must be a list of numbers of documents, each once; got [50, 50].")],
    "decop": [
        ("num_few", 20_000, "num_few must be a whole number from 2 to 10000; got 20000. They are the first of num_")
    ],
    "prefix_completion": [("num_permutations", 0, "num_permutations must be a whole number of at least 20; got 0.")],
    "order": [("stride", 4096, "stride (4096) must be at most the window (512)")],
    "pacost": [("rephraser", None, "needs a rephraser, or rephrasings")],
    "min_k": [("k", 1.5, "k must be a number in [0.001, 1]; got 1.5. It is a share of the tokens")],
    "model": [("revision", 1234567, "revision of a model must be text or null; got 1234567. Put it in quotes.")],
    "endpoint": [("url", "a.server", "url of an endpoint must be as in http://localhost:8080/v1")],
}
CASES = [(name, *case) for name, cases in REFUSED.items() for case in cases]


@pytest.mark.parametrize(
    ("name", "key", "value", "sentence"), CASES, ids=[f"{name}.{key}={value!r:.20}" for name, key, value, _ in CASES]
)
def test_a_setting_out_of_its_range_is_one_sentence(name, key, value, sentence):
    with pytest.raises(ValueError) as caught:
        replace(sound(name), **{key: value})
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_bounds_themselves():
    for value in (0.001, 1, 1.0):
        MinK(value)
    for changes in ({"warmup": 0}, {"warmup": 1}, {"warmup": 0.0}, {"gradient_clip": None}, {"betas": (0.0, 0.999)}):
        assert isinstance(replace(sound("optimization"), **changes), Optimization)
    require_number(0, "[0, inf)", "x")
    require_count(7, 7, "x", at_most=7)
    replace(sound("prism"), num_resamples=20)
    replace(sound("prism"), num_resamples=100, alpha=0.01)
    with pytest.raises(ValueError, match=r"at least 100; got 99\. With fewer, p cannot fall below alpha \(0\.01\)"):
        replace(sound("prism"), num_resamples=99, alpha=0.01)


def test_what_was_given_is_shown_short_and_without_objects():
    for value, told in [
        ({"path": "a", "label": "b"}, "got a mapping with the keys path, label."),
        (["a", MODEL], "got ['a', a Pretrained]."),
        (None, "got null."),
        ("x" * 500, "xxx...."),
    ]:
        with pytest.raises(ValueError) as caught:
            require_number(value, "(0, 1]", "k")
        assert str(caught.value).endswith(told)
    with pytest.raises(ValueError, match=r"^data\.label must be text; got \['a'\]\. It is the name"):
        require_text(["a"], "data.label", hint="It is the name of the data set in tables.")


def test_a_beginning_of_text_token_is_asked_of_models_that_follow_it():
    never, served = OmegaConf.create({"tokens": {"bos": "never"}}), Endpoint("http://a/v1", "m", "chat", "KEY")
    check_tokens(never, Pretrained("a/b", bos="never"), served)
    check_tokens(OmegaConf.create({"tokens": {"bos": "auto"}}), Pretrained("a/b", bos="never"), served)
    with pytest.raises(ValueError, match="what is only queried reads its texts by itself"):
        check_tokens(never, served)
    with pytest.raises(ValueError, match="is not what the configuration of b says"):
        check_tokens(never, Trained(Pretrained("a/b"), sound("distillation"), DOCUMENTS, 1))
    with pytest.raises(ValueError, match=r"tokens\.bos must be one of auto, always, never; got 'maybe'"):
        check_tokens(OmegaConf.create({"tokens": {"bos": "maybe"}}))
