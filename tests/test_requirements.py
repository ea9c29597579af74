"""Each place that lists methods or scores knows all of them, or the absence there is declared here."""

import inspect
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
import yaml

from marks import thinned
from nonmember import scores
from nonmember.advice.contestants import CONTESTANTS
from nonmember.advice.situation import Situation
from nonmember.config.build import build_audit
from nonmember.config.compose import composed
from nonmember.config.given import IncompleteQuestion, given
from nonmember.endpoints.asked import Asked
from nonmember.methods import CanaryTest, DifferenceInDifferences, Holdout
from nonmember.methods.base import Method, known_methods
from nonmember.methods.dose.panel import Feature
from nonmember.records import Question
from nonmember.records.requirements import ACCESS, INPUTS, Access, Input
from nonmember.reports.planted import contestants as arena
from nonmember.scores import Score
from nonmember.scoring.question import COSTS, ONE_PASS
from nonmember_verify.known import METHOD_SETTINGS
from nonmember_verify.methods.canary import OF_TEXTS_TOGETHER
from nonmember_verify.scores import NAME_OF_KNOWN
from nonmember_verify.scores import SCORES as VERIFIED

ROOT = Path(__file__).parents[1]
METHODS = {item.name: item for item in known_methods() if item.__module__.startswith("nonmember.")}
SCORES = {
    name: kind
    for name, kind in vars(scores).items()
    if inspect.isclass(kind) and issubclass(kind, Score) and kind is not Score
}
DOCS = "\n".join(path.read_text() for path in sorted((ROOT / "docs/methods").glob("*.md")))
PRESETS = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / "conf/score").glob("*.yaml")}

RIVALS = {"llm_di", "name_cloze", "order", "pacost", "paired_t", "prefix_completion", "sampled_completion"}
ABSENT = {
    # They have no test of their own, or rest on the results of others; and rivals, whose verdicts are taken as stated.
    ("method", "verifier"): {"auto", "blind", "levels", "mc_pdd_contaminated", "mc_pdd_groups"} | RIVALS,
    # They conclude nothing, are forms of others, or run others.
    ("method", "advice"): {
        "auto",
        "decop_baselines",
        "levels",
        "mc_pdd_contaminated",
        "mc_pdd_groups",
        "paired_t",
        "rank_agreement",
        "rank_shift",
    },
    # They need more than one pass over the texts, answers to questions, or further models.
    ("score", "verifier"): {"AnswerProbability", "DcPdd", "Lira", "Perturbed", "Recall", "Rmia"},
    # They come with what is given beside the texts, or are no presets.
    ("score", "command"): {
        "AnswerProbability",
        "DcPdd",
        "Extraction",
        "LogProbability",
        "MaxK",
        "Perplexity",
        "Perturbed",
        "Recall",
        "ReferenceDifference",
        "ReferenceRatio",
        "TopLoss",
    },
    # They are parts of methods.
    ("score", "preset"): {"AnswerProbability", "LogProbability", "MaxK", "Perplexity", "Perturbed"},
    # They rank as others do, or are parts of methods.
    ("score", "arena"): {
        "AnswerProbability",
        "Extraction",
        "LogProbability",
        "MaxK",
        "Perplexity",
        "Perturbed",
        "ReferenceDifference",
    },
}
BESIDE_THE_ARENA = [
    scores.AnswerProbability(Question("Say.", ("a", "b")), "a"),
    scores.Extraction(50),
    scores.LogProbability(),
    scores.MaxK(0.2),
    scores.Perplexity(),
    scores.Perturbed("random_deletion", "ppl_ratio"),
    scores.ReferenceDifference(),
]
EXAMPLES = {type(item).__name__: item for item in [*(of.score for of in arena.SCORES.values()), *BESIDE_THE_ARENA]}
TESTS_OF_TWO_SETS = {
    "difference_in_differences": lambda score: DifferenceInDifferences(score, 999, alpha=0.05, max_tokens=64),
    "canary": lambda score: CanaryTest(score, None, alpha=0.05, max_tokens=64),
    "holdout": lambda score: Holdout(score, None, 999, alpha=0.05, max_tokens=64),
    "dose": lambda score: Feature(score, "level"),
}
KEYS: dict[Input, tuple[str, ...]] = {  # of a config, that give an input; of what else there is none
    "reference": ("reference",),
    "out_models": ("out_models.paths",),
    "base": ("method.controls.base", "method.controls.stand_in", "reference"),
    "stand_in": ("method.controls.base", "method.controls.stand_in"),
    "rephraser": ("method.rephraser", "method.paraphraser"),
    "heldout": ("data.heldout",),
    "holdout": ("data.heldout",),
    "unseen": ("data.unseen",),
    "general": ("world.general",),
}
# With less there is no verdict, or the general text is found without being named.
OPTIONAL = {
    ("extraction", "heldout"),
    ("name_cloze", "heldout"),
    ("prefix_completion", "heldout"),
    ("prism", "general"),
}


def missing(kind: str, place: str, names: set[str], known: set[str]) -> set[str]:
    """Those that the place does not know, less those that it need not; more that it need not fails too."""
    return (names - known) ^ ABSENT[kind, place]


def test_every_method_is_known_everywhere():
    names = set(METHODS)
    lacks = {
        "conf/method": {name for name in names if not (ROOT / f"conf/method/{name}.yaml").is_file()},
        "docs/methods": {name for name in names if f"`{name}`" not in DOCS and f"method={name}" not in DOCS},
        "nonmember_verify/methods.toml, or ABSENT": missing("method", "verifier", names, set(METHOD_SETTINGS)),
        "advice/contestants.py, or ABSENT": missing("method", "advice", names, {item.name for item in CONTESTANTS}),
    }
    assert {place: wrong for place, wrong in lacks.items() if wrong} == {}


def test_every_score_is_known_everywhere():
    names = set(SCORES)
    presets = {item["_target_"].rpartition(".")[2]: name for name, item in PRESETS.items()}
    of_command = {name for name, preset in presets.items() if preset in (*ONE_PASS, *COSTS, "loss", "perplexity")}
    in_arena = {type(item.score).__name__: item.score.name for item in arena.SCORES.values()}
    named = in_arena | {type(item).__name__: item.name for item in BESIDE_THE_ARENA}
    known = {kind for kind, name in named.items() if NAME_OF_KNOWN.fullmatch(name)}
    lacks = {
        "conf/score": missing("score", "preset", names, set(presets)),
        "docs/methods": {name for name in presets.values() if f"`{name}`" not in DOCS},
        "scoring/question.py": missing("score", "command", names, of_command),
        "nonmember_verify/scores.py, or ABSENT": missing("score", "verifier", names, set(VERIFIED)),
        "reports/planted/contestants.py, or ABSENT": missing("score", "arena", names, set(in_arena)),
        "BESIDE_THE_ARENA above": names - named.keys(),
        "the verifier's NAME_OF_KNOWN": known ^ VERIFIED.keys(),
    }
    assert {place: wrong for place, wrong in lacks.items() if wrong} == {}


@pytest.mark.parametrize("test", TESTS_OF_TWO_SETS)
@pytest.mark.parametrize("kind", SCORES)
def test_no_test_of_two_sets_takes_a_score_that_is_pooled_within_each(kind, test):
    """LiRA's deviation is that of all texts scored together, and ReCaLL's prefix as long as the longest one allows."""
    assert kind in EXAMPLES, "add it to BESIDE_THE_ARENA above"
    score = EXAMPLES[kind]
    assert score.depends_on_others == (kind in OF_TEXTS_TOGETHER)
    refused = pytest.raises(ValueError, match="depends on the others") if score.depends_on_others else nullcontext()
    with refused:
        TESTS_OF_TWO_SETS[test](score)


def test_every_input_and_access_is_known_everywhere():
    inputs = set(get_args(Input))
    assert inputs - {"general"} <= {field.name for field in fields(Situation)}
    assert inputs == set(INPUTS)
    assert {None, *Access} == set(ACCESS)
    assert {name for method in METHODS.values() for name in method.requirements.inputs} <= inputs


@pytest.mark.parametrize("method", thinned(METHODS.values(), 3), ids=METHODS)
def test_what_a_method_declares_is_what_an_audit_asks_for(method: type[Method]):
    with composed("audit", [f"method={method.name}"]) as (config, _), pytest.raises(IncompleteQuestion) as error:
        given(config)
    asked = {key.removesuffix(".path") for key in error.value.keys}
    needed, declared = method.requirements, {key for name in method.requirements.inputs for key in KEYS.get(name, ())}
    assert ("target" in asked) == (needed.access is not None or method.name == "auto")  # which scores at least
    assert asked - {"target", "data"} <= declared
    unasked = {name for name in needed.inputs if name in KEYS and not asked & set(KEYS[name])}
    assert unasked == {name for of, name in OPTIONAL if of == method.name}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["decop", "mc_pdd", "name_cloze", "prefix_completion", "sampled_completion"])
def test_the_questions_of_a_method_are_those_that_its_probes_ask(method):
    """A sampled completion counted as one of its ten."""
    with composed("audit", ["world=micro", "data=micro_mc_pdd", f"method={method}"]) as (config, _):
        groups = build_audit(config).groups
    asked = [item for group in groups.values() for item in group.measured.values() if isinstance(item, Asked)]
    needed, of_probes = METHODS[method].requirements, [item.probe.requirements for item in asked]
    assert sum(item.questions for item in of_probes) == 2 * needed.questions, "of the suspect set and the held-out one"
    # Of passages whose length nobody knows half is reckoned; a probe shows k tokens, however long they are.
    assert {item.shown for item in of_probes} == {0.0 if method == "prefix_completion" else needed.shown}


def test_the_passes_of_a_score_follow_from_what_it_observes():
    passes = {name: item.score.requirements.passes for name, item in arena.SCORES.items()}
    assert {name: number for name, number in passes.items() if number != 1} == {
        "lowercase": 2,
        "ref_ratio": 2,
        "recall(10)": 12,
        "wbc(2-40)": 2,
        "lira": 5,  # four out-models
        "rmia": 10,
    }
