"""Honest bundles of all methods: every check holds, and none of them holds a word of the documents."""

from __future__ import annotations

import dataclasses
import json
import re
import typing
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pytest
from doctored import (
    RESULT,
    TOLD,
    Files,
    edited,
    in_details,
    in_result,
    in_told,
    made_invalid,
    plain,
    put,
    signed,
    together,
    under_one_seal,
    with_identity,
    written,
)
from made_up_audits import bundled, checked, gathered
from made_up_questions import every

from marks import slow, thinned
from nonmember.evidence.gathering import Included
from nonmember.methods import Method
from nonmember.observations import Scored
from nonmember.scores import Score
from nonmember_verify import cli
from nonmember_verify.known import METHOD_SETTINGS, known_of_method
from nonmember_verify.methods import METHODS, only_scores
from nonmember_verify.scores import SCORES

AUDITS = dict(every())
WITHOUT_STATISTIC = {
    "extraction alone",
    "decop, calibrated",
    "decop of works without a title",
    "prism of the reference itself",
}
# Each verdict of each method, by the audit that reaches it: a bundle of an audit that asked nothing shows nothing.
REACHED = {
    "evidence_of_non_membership": """
        prism that rules out; prism with gates that rules out; dose""",
    "inconclusive": """
        prism with too small a Delta; prism of a target that knows the set; canaries that were not read;
        identifiers that were not read""",
    "invalid": """
        prism of too few documents; prism of many that cannot be scored; prism of the reference itself;
        order with control; pacost of few documents; mc_pdd with a control that fails;
        decop of works without a title; kds of few; paired t of few that can be scored;
        llm_di of few that can be scored; rank agreement of few that can be scored;
        dose beside few that can be scored""",
    "evidence_of_membership": """
        dose of a reader; dose of a heavy reader; order; pacost; mc_pdd; difference in differences; extraction;
        canaries; identifiers; decop; decop, calibrated; name cloze; prefix completion""",
    "score_only": """
        dose of a heavy reader without related text; extraction alone; name cloze alone; prefix completion alone;
        kds""",
}
VERDICTS = {name.strip(): verdict for verdict, names in REACHED.items() for name in names.split(";")}
# Looked at in test_lies.py too, before they are doctored; or, as the shape of the dose, in audits beside them.
ELSEWHERE = {"prism", "prism of a reader", "prism with gates", "paired t", "dose with estimated shape"}


def test_there_are_enough():
    assert len(AUDITS) >= 40
    assert AUDITS.keys() >= ELSEWHERE
    assert VERDICTS.keys() | WITHOUT_STATISTIC <= AUDITS.keys()


@pytest.mark.parametrize("name", [*thinned(sorted(AUDITS.keys() - ELSEWHERE), 4), *map(slow, sorted(ELSEWHERE))])
def test_every_check_holds(name, tmp_path):
    audit = AUDITS[name]
    item = gathered(audit, tmp_path / "run")
    files = bundled([item], tmp_path / "bundle.zip")
    report = checked(tmp_path / "bundle.zip")
    assert not report.failures, "\n".join(map(str, report.lines))
    held = {line.what for line in report.lines if line.kind == "ok"}
    assert {"archive", "files", "question", "documents"} <= held
    assert "verdict" in held or report.num_as_stated, "no verdict passes in silence"
    recomputed = METHODS.get(audit.method.name, only_scores) is not only_scores and name not in WITHOUT_STATISTIC
    assert any(what.startswith("statistic") for what in held) == recomputed
    verdict = json.loads(files["audits/000/result.json"])["verdict"]
    assert verdict["decision"] == VERDICTS.get(name, verdict["decision"])
    of_clusters = any("to 14 clusters, and the test treats all as" in item for item in verdict["warnings"])
    assert of_clusters == (name == "prism with clusters")
    with zipfile.ZipFile(tmp_path / "bundle.zip") as archive:
        content = b"".join(archive.read(entry) for entry in archive.infolist())
    for forbidden in (b"zqword", b"-doc-", b"-book-", str(tmp_path).encode()):
        assert forbidden not in content, forbidden


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "with_ids", "kind"),
    [
        ("difference in differences by windows", False, "not checked"),
        ("difference in differences by windows", True, "ok"),
        ("scores lira", False, "not checked"),
        ("scores rmia", False, "not checked"),
    ],
)
def test_scores_of_windows_are_recomputed_with_token_ids_and_those_beside_other_models_never(
    name, with_ids, kind, tmp_path
):
    item = gathered(AUDITS[name], tmp_path / "run", Included(token_ids=with_ids))
    bundled([item], tmp_path / "bundle.zip", Included(token_ids=with_ids))
    report = checked(tmp_path / "bundle.zip")
    assert not report.failures, "\n".join(map(str, report.failures))
    assert kind in {line.kind for line in report.lines if line.what.startswith("scores")}


def test_sealed_audits_hold_whatever_came_of_them(tmp_path):
    """Also where no distilled reference was made, and nothing measured beside the suspect set."""
    names = ["prism of the reference itself", "canaries", "order with control"]
    files = under_one_seal({name: AUDITS[name] for name in names}, tmp_path / "sealed")
    report = checked(written(files, tmp_path / "bundle.zip"))
    assert not report.failures, "\n".join(map(str, report.failures))


# Bundles of a later version -------------------------------------------------------------------------------------------


# Of a method that this version does not have, with a setting and a kind of measurement of its own.
later_method = together(
    in_told("columns", "suspect", "target", "kind", "Sampled"),
    with_identity(lambda item: item["method"].update(method="prism_3", num_samples=9)),
)


def another_score(**changes: object) -> Callable[[Files], Files]:
    def told_otherwise(explained: Any) -> None:
        for how in explained["columns"]["suspect"].values():
            how["score"].update(changes)

    asked = {name: value for name, value in changes.items() if name != "name"}
    return together(edited(TOLD, told_otherwise), with_identity(lambda item: item["method"]["score"].update(asked)))


LATER: dict[str, tuple[Callable[[Files], Files], str, bool]] = {
    "a setting": (with_identity(put("method", "trim", 0.1)), "setting trim is unknown to this verifier", True),
    "a setting of a setting": (
        with_identity(put("method", "gates", {"kind": "PrismGates", "min_luck": 0.5})),
        "setting gates.min_luck is unknown to this verifier",
        True,
    ),
    "a value of a setting": (
        with_identity(put("method", "rank_metric", "weighted")),
        "setting rank_metric is unknown to this verifier",
        True,
    ),
    "a kind of measurement": (
        in_told("columns", "suspect", "target", "kind", "Sampled"),
        "measurement 'Sampled' is unknown to this verifier",
        True,
    ),
    "a counterfeit reference": (with_identity(put("method", "sham", {"kind": "Damaged"})), "setting sham.kind", True),
    "a method": (later_method, "the arithmetic of prism_3 is not implemented here", True),
    "a verdict": (
        in_result("verdict", "decision", "evidence_of_partial_membership"),
        "verdict 'evidence_of_partial_membership' is unknown to this verifier",
        True,
    ),
    "a schema": (in_result("schema_version", 4), "schema version 4 is unknown to this verifier", True),
    "a format of questions": (with_identity(put("format", 3)), "format 3 is unknown to this verifier", True),
    "a format of bundles": (lambda files: signed(files, format=2), "format 2 of a bundle is unknown", True),
    "a score": (another_score(kind="MinKSquared", name="mink2(0.2)"), "the score .kind MinKSquared", False),
    "a setting of a score": (another_score(skip=1), "the score .*skip 1.* or one of its settings is unknown", False),
    "a gate": (
        in_details("gates", "luck", {"value": 1, "bound": 0, "passed": True}),
        "gate luck is unknown to this verifier",
        True,
    ),
    "a gate that did not hold": (
        together(in_details("gates", "luck", {"value": 0, "bound": 1, "passed": False}), edited(RESULT, made_invalid)),
        "gate luck is unknown to this verifier",
        True,
    ),
    "a field": (in_result("health", "temperature", 36.6), "health", False),
    "a file": (lambda files: signed({**files, "audits/000/notes.json": b"{}"}), "audits/000/notes.json", False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LATER)
def test_what_a_later_version_writes_is_not_called_a_lie(name, tmp_path, capsys):
    change, sentence, as_stated = LATER[name]
    path = written(change(plain("gates" if name.startswith("a gate") else "prism")), tmp_path / "bundle.zip")
    report = checked(path)
    assert not report.failures, "\n".join(map(str, report.failures))
    assert any(re.search(sentence, f"{line} {line.fields}") for line in report.lines if line.kind == "not checked")
    assert bool(report.num_as_stated) == as_stated
    assert cli.main([str(path)]) == (3 if as_stated else 0)
    assert capsys.readouterr().out.startswith("Verified in part" if as_stated else "Verified: ")


def kinds_of(base: type) -> list[type]:
    """Of the package."""
    own = [item for item in base.__subclasses__() if item.__module__.startswith("nonmember.")]
    return [base, *(kind for item in own for kind in kinds_of(item))]


def settings_below(kind: Any, name: str, known: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Dotted names of the settings that a field of this type may have, with the values where these are listed."""
    if any(fnmatchcase(f"{name}.any", item) for item in known):  # whatever it holds
        return
    if typing.get_origin(kind) is typing.Literal:
        yield name, typing.get_args(kind)
    elif inner := [item for item in typing.get_args(kind) if item not in (type(None), str)]:
        below = f"{name}.any" if typing.get_origin(kind) is Mapping else name
        for item in inner:
            yield from settings_below(item, below, known)
    elif dataclasses.is_dataclass(kind) and name.rpartition(".")[2] not in ("score", "third", "related", "sham"):
        for item in kinds_of(kind):
            for field, type_of in typing.get_type_hints(item).items():
                if field in {field.name for field in dataclasses.fields(item)}:
                    yield from settings_below(type_of, f"{name}.{field}", known)
    else:
        yield name, ()


UNKNOWN = (
    "is unknown to the verifier: take it into account in nonmember_verify/methods/ first, and add an audit with it to "
    "made_up_questions.py; then name it in methods.toml. With its name alone honest bundles FAIL."
)


def test_every_setting_of_every_method_and_score_is_known_to_the_verifier():
    """Whoever adds one tells the verifier, which then takes it into account."""
    methods = [item for item in kinds_of(Method) if getattr(item, "name", "") in METHODS]
    assert {item.name for item in methods} == METHODS.keys() == METHOD_SETTINGS.keys()
    for method in methods:
        patterns = dict(item.partition("=")[::2] for item in known_of_method(method.name).split())
        hints = typing.get_type_hints(method)
        for field in dataclasses.fields(method):
            for name, values in settings_below(hints[field.name], field.name, list(patterns)):
                choices = [explained for pattern, explained in patterns.items() if fnmatchcase(name, pattern)]
                assert choices, f"the setting {name} of {method.name} {UNKNOWN}"
                unknown = set(choices[0].split("|")) ^ set(values) if choices[0] else set()
                assert not unknown, f"{name}={min(unknown)} of {method.name} {UNKNOWN}"
    for score in kinds_of(Score):
        if (known := SCORES.get(score.__name__)) is not None:
            explained = {item.partition("=")[0] for item in known.settings.split()}
            unknown = {item.name for item in dataclasses.fields(score)} ^ explained
            assert not unknown, f"{score.__name__} has {min(unknown)}, which {UNKNOWN}"


def test_every_score_that_the_verifier_recomputes_is_in_an_audit():
    """By which its bundle is looked at; a second computation that differs in precision is seen there alone."""
    measured = [
        item for audit in AUDITS.values() for group in audit.groups.values() for item in group.measured.values()
    ]
    scored = {type(item.score).__name__ for item in measured if isinstance(item, Scored)}
    assert SCORES.keys() - scored == set(), "add an audit with it to made_up_questions.py"
