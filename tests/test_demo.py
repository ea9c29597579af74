"""The demo, whose truth is known: no false verdict on other draws, and the numbers of the one that is printed."""

import pytest

from nonmember.results.result import RESULT, AuditResult

PARTS = ("members", "heldout", "general", "untouched", "unread", "pretraining", "continuation", "demo.sibling")
FALSE = {("member", "not used"), ("non_member", "used")}
QUICK = ("method=difference_in_differences", "data.domain=scipy,networkx", "data.half=b")  # never read; four times
P = {  # by domain and half
    "difference_in_differences": {"scipy": (0.7827, 0.8103), "networkx": (0.7209, 0.0001), "sklearn": (0.0001, 0.0001)},
    "prism": {"scipy": (0.0001, 0.0073), "networkx": (0.8277, 1.0), "sklearn": (0.8654, 0.4511)},
    "dose": {"scipy": (2.2e-8, 0.0025), "networkx": (0.0149, 2.8e-6), "sklearn": (0.00094, 0.00012)},
}


@pytest.fixture
def audited(nonmember, tmp_path):
    def audited(*words):
        run = nonmember("audit", "-m", "--config-name=demo", "logger=none", f"outputs={tmp_path}", *words)
        assert run.status == 0, run.err
        found = {path.parent.name: AuditResult.load(path) for path in (tmp_path / "audits").rglob(RESULT)}
        assert FALSE.isdisjoint((str(item.question.truth), item.answer.conclusion) for item in found.values())
        return found

    return audited


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "words"), [("2", QUICK), ("2", ()), ("3", ())], ids=["quick", "second", "third"])
def test_no_verdict_is_false_on_another_draw_of_sets_text_and_training(audited, draw, words):
    drawn = [f"world.{part}.salt=draw{draw}" for part in PARTS]
    found = audited(*drawn, f"target.seed={draw}91", f"reference.seed={draw}92", *words)
    (read,) = (item for name, item in found.items() if name.startswith("data.domain=networkx,data.half=b,method=diff"))
    assert read.answer.conclusion == "used"


@pytest.mark.slow
def test_the_numbers_that_make_demo_prints(audited):
    for name, result in audited().items():
        domain, half, _ = (item.split("=")[1] for item in name.split(","))
        assert result.answer.p == pytest.approx(P[result.question.method][domain]["ab".index(half)], rel=0.02)
