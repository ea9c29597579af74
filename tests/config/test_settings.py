"""Every number of every setting has a range, and leaving it is one sentence: key, expected, got, what to do.

The recipes are built here as the command line builds them, from the YAML of `conf/`, without a process or a model.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra.utils import get_class
from omegaconf import OmegaConf

from nonmember.checks import require_count, require_number, require_text
from nonmember.config.build import check_tokens
from nonmember.config.choices import config_directory
from nonmember.corpora import LibraryDocs
from nonmember.endpoints.models import Endpoint, Recorded
from nonmember.endpoints.rephrased import Rephrasings, Written
from nonmember.models import Pretrained, TrainedTokenizer
from nonmember.records import Prompt
from nonmember.records.exposure import Exposure
from nonmember.runtime.compute import Compute
from nonmember.scores import DcPdd, MinK
from nonmember.training import Trained
from nonmember.training.recipes import AdaLora, Lora, Optimization, Pretraining

MODEL = Pretrained("a-model")
DOCUMENTS = LibraryDocs("json")


def built(node: Any) -> Any:
    """What Hydra would make of a node without interpolations."""
    if isinstance(node, list):
        return [built(item) for item in node]
    if not isinstance(node, dict):
        return node
    settings = {name: built(value) for name, value in node.items() if name not in ("_target_", "defaults")}
    return get_class(node["_target_"])(**settings)


def without_world(node: Any) -> Any:
    """Settings that a world may change, as they are where none does."""
    if isinstance(node, dict):
        return {name: without_world(value) for name, value in node.items()}
    if isinstance(node, str) and node.startswith("${oc.select:world.settings."):
        return OmegaConf.to_container(OmegaConf.create(f"value: {node.partition(',')[2].removesuffix('}')}"))["value"]
    return node


def from_yaml(path: str, **parts: Any) -> Any:
    """A recipe with the settings of its YAML; `parts` are what the defaults list or an interpolation would bring."""
    node = without_world(OmegaConf.to_container(OmegaConf.load(config_directory() / f"{path}.yaml"), resolve=False))
    node = {name: value for name, value in node.items() if not str(value).startswith("${oc.select:")}  # a world's
    return get_class(node["_target_"])(
        **{name: built(value) for name, value in node.items() if name not in ("_target_", "defaults", *parts)}, **parts
    )


@cache
def sound(name: str) -> Any:
    """A recipe in which nothing is wrong yet."""
    parts = {
        "prism": lambda: {"score": MinK(0.2), "distillation": sound("distillation"), "gates": None},
        "rank_shift": lambda: {"score": MinK(0.2)},
        "rank_agreement": lambda: {"score": MinK(0.2)},
        "fsd": lambda: {"training": sound("tuning"), "max_tokens": 64},
        "kds": lambda: {"training": sound("tuning"), "max_tokens": 64},
        "order": lambda: {"max_tokens": 2048},
        "decop": lambda: {"paraphraser": MODEL, "paraphrases": None, "questions": None},
        "pacost": lambda: {"rephraser": MODEL},
    }
    if (config_directory() / f"method/{name}.yaml").is_file():
        return from_yaml(f"method/{name}", **parts.get(name, dict)())
    others = {
        "optimization": lambda: sound("distillation").optimization,
        "distillation": lambda: from_yaml("training/distillation"),
        "pretraining": lambda: Pretraining(sound("optimization"), 512),
        "tuning": lambda: from_yaml("training/fsd_lora"),
        "lora": lambda: Lora(None, 8, 16, 0.0),
        "adalora": lambda: AdaLora(None, 24, 16, 32, 0.05, 0.1, 0.3, 1, 0.85, 0.5),
        "asking": lambda: from_yaml("asking/default"),
        "trainer": lambda: Compute(lambda **_: None, "32-true", 16, 4096, 64, 64, 15, False),
        "min_k": lambda: MinK(0.2),
        "dc_pdd": lambda: DcPdd(0.01),
        "model": lambda: MODEL,
        "trained": lambda: Trained(MODEL, sound("distillation"), DOCUMENTS, 1),
        "tokenizer": lambda: TrainedTokenizer(DOCUMENTS, 2048),
        "endpoint": lambda: Endpoint("https://a.server/v1", "a-model", "chat", "A_KEY"),
        "recorded": lambda: Recorded("answers.csv", "a-model"),
        "reading": lambda: Exposure(1.0, 8),
        "written": lambda: Written(DOCUMENTS, MODEL, Prompt("Say it."), 0.1, 64, 64, 1),
        "rephrasings": lambda: Rephrasings(DOCUMENTS, DOCUMENTS, 0.5, 2.0),
    }
    return others[name]()


NAN, INFINITY = float("nan"), float("inf")
WHOLE = "must be a whole number of at least 1; got "
REFUSED = {
    "optimization": [
        ("learning_rate", -1, "learning_rate must be a number above 0; got -1. The paper's is 5e-5."),
        ("learning_rate", 0, "above 0; got 0"),
        ("learning_rate", "x", "above 0; got 'x'"),
        ("learning_rate", NAN, "learning_rate must be a number above 0; got nan"),
        ("learning_rate", INFINITY, "learning_rate must be a number above 0; got inf"),
        ("learning_rate", 10**400, "learning_rate must be a number above 0; got 1000"),
        ("batch_size", 1.5, f"batch_size {WHOLE}1.5."),
        ("batch_size", 1e9, f"batch_size {WHOLE}1000000000.0."),
        ("batch_size", 10**9, "batch_size must be a whole number from 1 to 1000000; got 1000000000."),
        ("epochs", 1.5, f"epochs {WHOLE}1.5."),
        ("epochs", True, f"epochs {WHOLE}true."),
        ("epochs", 0, f"epochs {WHOLE}0."),
        ("warmup", 1.0, "as a share of the steps, must be a number in [0, 1); got 1.0"),
        ("warmup", -1, "as a number of steps, must be a whole number of at least 0; got -1. 0.05 would be a share"),
        ("schedule", "step", "schedule must be one of linear, cosine, constant; got 'step'."),
        ("final_fraction", -5, "final_fraction must be a number in [0, 1]; got -5."),
        ("betas", [0.9], "betas must be a list of two numbers in [0, 1); got [0.9]. The usual are [0.9, 0.999]."),
        ("betas", [0.9, 1], "each of betas must be a number in [0, 1); got 1."),
        ("betas", 0.9, "betas must be a list of two numbers"),
        ("epsilon", 0, "epsilon must be a number in (0, 1]; got 0."),
        ("weight_decay", -0.1, "weight_decay must be a number in [0, 1]; got -0.1."),
        ("gradient_clip", -1, "gradient_clip must be a number above 0 or null; got -1. null leaves gradients as they"),
        (
            "optimizer",
            "adam",
            "optimizer must be one of adamw, sgd; got 'adam'. A class of your choice: optimizer={_tar",
        ),
        ("optimizer", partial(torch.optim.LBFGS), "a step for each gradient; got LBFGS"),
        ("optimizer", partial(torch.optim.SGD, momentum=MODEL), "momentum of optimizer must be a number, a text"),
    ],
    "distillation": [
        ("max_tokens", -5, "max_tokens must be a whole number of at least 2; got -5."),
        ("tau", 1e-30, "tau must be a number in [0.1, 100]; got 1e-30. The paper's is 2.0"),
        ("tau", 0, "tau must be a number in [0.1, 100]; got 0."),
        ("lambda_", 1.2, "lambda_ must be a number in [0, 1]; got 1.2."),
        ("optimization", None, "optimization must be an Optimization; got null. Is its `_target_` missing?"),
    ],
    "pretraining": [("sequence_length", 1, "sequence_length must be a whole number of at least 2; got 1.")],
    "tuning": [
        ("max_tokens", 1, "max_tokens must be a whole number of at least 2; got 1."),
        ("drop_last", "no", "drop_last must be true or false; got 'no'."),
        ("adapter", None, "adapter must be an adapter (Lora, AdaLora or Ia3); got null."),
    ],
    "lora": [
        ("rank", 0, f"rank of the adapter {WHOLE}0."),
        ("alpha", 0, "alpha of the adapter must be a number of at least 1; got 0."),
        ("dropout", 1.0, "dropout of the adapter must be a number in [0, 1); got 1.0."),
        (
            "target_modules",
            "dense",
            "target_modules of the adapter must be a list of names or null; got 'dense'. null st",
        ),
        ("target_modules", [], "target_modules of the adapter must be a list of names or null; got []."),
    ],
    "adalora": [
        ("initial_rank", 1, "initial_rank must be larger than rank"),
        ("before", -0.1, "before of the adapter must be a number in [0, 1); got -0.1."),
        ("after", 0.99, "leave some in between"),
        ("beta", 1, "beta of the adapter must be a number in (0, 1); got 1."),
        ("orthogonality", -1, "orthogonality of the adapter must be a number of at least 0; got -1."),
    ],
    "prism": [
        ("alpha", 5, "alpha must be a number in (0, 1); got 5. The usual level is 0.05."),
        ("alpha", NAN, "alpha must be a number in (0, 1); got nan."),
        ("num_resamples", True, "num_resamples must be a whole number of at least 20; got true."),
        ("num_resamples", 1, "at least 20; got 1. With fewer, p cannot fall below alpha (0.05)."),
        ("num_resamples", 10**9, "num_resamples must be a whole number from 20 to 10000000; got 1000000000."),
        ("rank_metric", "pearson", "rank_metric must be one of spearman, kendall; got 'pearson'."),
        ("margin", -0.1, "margin must be a number in [0, 2); got -0.1."),
        ("max_tokens", 1, "max_tokens must be a whole number of at least 2; got 1."),
        ("score", None, "score must be a membership score; got null. Name one: +score@method.score=min_k_plus_plus."),
        ("distillation", None, "distillation must be a distillation; got null."),
    ],
    "rank_agreement": [
        ("rank_metric", "pearson", "one of spearman, kendall"),
        ("num_resamples", 1, "at least 20; got 1"),
    ],
    "rank_shift": [
        ("num_bins", 1, "num_bins must be a whole number of at least 2; got 1."),
        ("score", None, "got null"),
    ],
    "blind": [
        ("num_folds", 1, "num_folds must be a whole number of at least 2; got 1."),
        ("inverse_penalty", 0, "inverse_penalty must be a number above 0; got 0."),
        ("num_resamples", 1, "num_resamples must be a whole number of at least 20; got 1."),
    ],
    "fsd": [
        ("scores", [], "scores must be different scores; got []."),
        ("scores", [MinK(0.2), MinK(0.2)], "scores must be different scores; got ['mink(0.2)', 'mink(0.2)']."),
        ("scores", None, "scores must be a list of membership scores; got null."),
        ("view", "reversed", "view must be one of original, "),
        ("validation_share", 1.0, "validation_share must be a number in (0, 1); got 1.0."),
    ],
    "kds": [
        ("layer", 0.5, "layer must be a whole number"),
        ("baselines", [MinK(0.2), MinK(0.2)], "baselines must be a list of different scores, each once; got ['mink("),
        ("gamma", 1.0, "gamma is for bandwidth=fixed"),
    ],
    "llm_di": [
        ("tail_fraction", 1.0, "tail_fraction must be a number in [0, 1); got 1.0."),
        ("fit_size", 1, "fit_size must be a whole number of at least 2; got 1."),
        ("num_splits", 0, f"num_splits {WHOLE}0."),
        ("num_steps", True, f"num_steps {WHOLE}true."),
        ("learning_rate", 0, "learning_rate must be a number above 0; got 0. The program's is 0.01."),
        ("outliers", "drop", "outliers must be one of mean, "),
    ],
    "mc_pdd": [
        ("reference", "both", "reference must be one of non_member, member; got 'both'."),
        ("num_words", True, f"num_words {WHOLE}true."),
        ("max_invalid", 1, "max_invalid must be a number in [0, 1); got 1."),
        ("max_new_tokens", 0, f"max_new_tokens {WHOLE}0."),
        ("temperature", -1, "temperature must be a number in [0, 10); got -1."),
        ("sizes", [50, 50], "sizes must be a list of numbers of documents, each once; got [50, 50]."),
        ("sizes", [0], f"each of sizes {WHOLE}0."),
    ],
    "decop": [
        ("temperature", 10, "temperature must be a number in [0, 10); got 10."),
        ("num_few", 20_000, "num_few must be a whole number from 2 to 10000; got 20000. They are the first of num_"),
        ("min_valid_share", 1.5, "min_valid_share must be a number in [0, 1]; got 1.5."),
        ("passage_length", "huge", "passage_length must be one of short, long; got 'huge'."),
    ],
    "name_cloze": [
        ("max_new_tokens", 0, f"max_new_tokens {WHOLE}0."),
        ("min_valid_share", 1.5, "min_valid_share must be a number in [0, 1]; got 1.5."),
        ("num_few", 1, "num_few must be a whole number of at least 2; got 1."),
    ],
    "prefix_completion": [
        ("k", 0, f"k {WHOLE}0."),
        ("threshold", 100, "threshold must be a whole number from 0 to 99; got 100."),
        ("thresholds", [0.8], "each of thresholds must be a whole number of at least 0; got 0.8."),
        ("new_tokens", 0.5, "new_tokens must be a number in [1, 100]; got 0.5."),
        ("num_permutations", 0, "num_permutations must be a whole number of at least 20; got 0."),
    ],
    "sampled_completion": [
        ("similarity", "rouge", "similarity must be one of coverage, longest, samia; got 'rouge'."),
        ("num_samples", 0, f"num_samples {WHOLE}0."),
        ("temperature", 0, "temperature must be a number in (0, 10); got 0. At 0 all samples would be alike."),
        ("ngram", 0, f"ngram {WHOLE}0."),
        ("max_new_tokens", 0, f"max_new_tokens {WHOLE}0."),
        ("num_permutations", 0, "num_permutations must be a whole number of at least 20; got 0."),
    ],
    "order": [
        ("num_shards", 1, "num_shards must be a whole number of at least 2; got 1."),
        ("num_orders", 0, f"num_orders {WHOLE}0."),
        ("stride", 0, f"stride {WHOLE}0."),
        ("stride", 4096, "stride (4096) must be at most the window (2048)"),
    ],
    "pacost": [
        ("min_answer_mass", 1, "min_answer_mass must be a number in [0, 1); got 1."),
        ("max_length_ratio", 0.5, "max_length_ratio must be a number of at least 1; got 0.5."),
        ("rephraser", None, "needs a rephraser, or rephrasings"),
    ],
    "min_k": [
        ("k", 1.5, "k must be a number in [0.001, 1]; got 1.5. It is a share of the tokens"),
        ("k", 1e-300, "k must be a number in [0.001, 1]; got 1e-300."),
        ("k", 0, "got 0."),
        ("k", -0.1, "got -0.1."),
        ("k", True, "got true."),
        ("k", NAN, "k must be a number in [0.001, 1]; got nan."),
        ("compat", "offical", "compat must be one of none, official; got 'offical'."),
    ],
    "dc_pdd": [
        ("a", 0.0, "a must be a number above 0; got 0.0."),
        ("a", INFINITY, "a must be a number above 0; got inf."),
    ],
    "asking": [
        ("concurrency", 0, f"asking.concurrency {WHOLE}0."),
        ("concurrency", 2.5, f"asking.concurrency {WHOLE}2.5."),
        ("timeout", 0, "asking.timeout must be a number above 0; got 0."),
        ("timeout", None, "asking.timeout must be a number above 0; got null."),
        ("timeout", INFINITY, "asking.timeout must be a number above 0; got inf."),
        ("max_retries", -1, "asking.max_retries must be a whole number of at least 0; got -1."),
        ("max_questions", 0, "asking.max_questions must be a whole number of at least 1 or null; got 0."),
        ("max_tokens", True, "asking.max_tokens must be a whole number of at least 1 or null; got true."),
        ("max_cost", "much", "asking.max_cost must be a number of at least 0 or null; got 'much'."),
    ],
    "trainer": [
        ("micro_batch_size", 0, f"trainer.micro_batch_size {WHOLE}0."),
        ("cache_mib", 0, f"trainer.cache_mib {WHOLE}0."),
        ("max_batch_tokens", True, f"trainer.max_batch_tokens {WHOLE}true."),
        ("checkpoint_seconds", -1, "trainer.checkpoint_seconds must be a number of at least 0; got -1."),
        ("checkpoint_seconds", NAN, "trainer.checkpoint_seconds must be a number of at least 0; got nan."),
        ("measure_health", "yes", "trainer.measure_health must be true or false; got 'yes'."),
        ("precision", 32, "trainer.precision must be text; got 32. Lightning's names, such as 32-true"),
    ],
    "model": [
        ("path", 3, "path of a model must be text; got 3. Put it in quotes."),
        ("path", "", "path of a model must be text; got ''."),
        ("revision", 1234567, "revision of a model must be text or null; got 1234567. Put it in quotes."),
        ("dtype", "float8", "dtype of a model must be one of float32, "),
    ],
    "trained": [("seed", -1, "seed must be a whole number of at least 0; got -1."), ("seed", 1.0, "got 1.0.")],
    "tokenizer": [("vocab_size", 4, "vocab_size of a tokenizer must be a whole number of at least 257; got 4.")],
    "endpoint": [
        ("form", "text", "form of an endpoint must be one of chat, completions; got 'text'."),
        ("model", 4, "model of an endpoint must be text; got 4."),
        ("url", "a.server", "url of an endpoint must be as in http://localhost:8080/v1"),
    ],
    "recorded": [("path", None, "path of recorded answers must be text; got null.")],
    "reading": [
        ("share", 0, "share of a reading must be a number in (0, 1]; got 0."),
        ("exposures", 1.5, "exposures of a reading must be a whole number of at least 0; got 1.5."),
    ],
    "written": [
        ("temperature", 10, "`temperature` of Written must be a number in [0, 10); got 10."),
        ("max_new_tokens", 0, f"`max_new_tokens` of Written {WHOLE}0."),
        ("seed", -1, "`seed` of Written must be a whole number of at least 0; got -1."),
    ],
    "rephrasings": [
        ("min_length_ratio", 1.5, "`min_length_ratio` of Rephrasings must be a number in [0, 1]; got 1.5.")
    ],
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


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_in_range_is_accepted(name):
    assert replace(sound(name)) == sound(name)


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


def test_nothing_heavy_is_imported_for_it():
    modules = ["training.recipes", "methods", "scores", "models", "runtime.compute", "endpoints", "corpora"]
    code = f"import sys; {'; '.join(f'import nonmember.{name}' for name in modules)}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "lightning", "datasets", "peft"} & set(loaded)
    assert Path(config_directory()).is_dir()


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
