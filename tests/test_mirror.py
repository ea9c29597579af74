"""What a tracker hears of a finished audit, read off its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nonmember.results.evidence import load
from nonmember.results.mirror import facts_of, mirror, summary_of
from nonmember.results.pictures import of_run
from nonmember.tracking.trackers import NoTracker, Tracker
from wandb_helpers import SETTINGS, lay_down, result


class Listener(Tracker):
    """Keeps all it is told."""

    takes_media = True

    def __init__(self, *, log_text: bool = False):
        self.log_text = log_text
        self.told: dict[str, Any] = {}

    def log(self, prefix, values, step):
        raise AssertionError("a finished audit has no curves to tell of")

    def summarise(self, values):
        self.told |= values

    def describe(self, name, facts):
        self.told[name] = facts

    def histogram(self, name, values):
        self.told[name] = values

    def scores(self, name, columns):
        self.told[name] = columns

    def figure(self, name, figure):
        self.told[name] = figure

    def finish(self, *, failed):
        pass


def told(of, folder: Path, texts=None, **listener: Any) -> dict[str, Any]:
    tracker = Listener(**listener)
    mirror(tracker, of, folder, texts)
    return tracker.told


def test_all_of_a_folder_is_told(tmp_path):
    lay_down(tmp_path / "run", result())
    heard = told(result(), tmp_path / "run")
    assert heard["cell"] == facts_of(result())
    assert heard.items() >= summary_of(result()).items()
    assert len(heard["test/distribution"]) == 200, "without the undefined one"
    assert list(heard["scores"]) == ["doc_id", "target", "reference", "distilled"]
    assert len(heard["scores"]["doc_id"]) == 40
    assert heard["figure/ranks/reference"].startswith(b"\x89PNG")
    assert heard["figure/ranks/distilled"].startswith(b"\x89PNG")


def test_the_distribution_shows_value_interval_and_zero(tmp_path):
    lay_down(tmp_path / "run", result())
    (figure,) = (item.figure for item in of_run(load(tmp_path / "run")) if item.name == "distribution")
    (axes,) = figure.axes
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["zero", "95% interval", "Delta -0.120"]
    assert axes.patches[0].get_data().values.sum() == 200
    assert {line.get_xdata()[0] for line in axes.lines} == {0.0, -0.12}


def test_undefined_numbers_are_left_out_of_the_picture(tmp_path):
    bare = result(statistic=None, p_value=None, ci_low=None, ci_high=None, target=None)
    lay_down(tmp_path / "run", bare)
    (figure,) = (item.figure for item in of_run(load(tmp_path / "run")) if item.name == "distribution")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["zero"]


@pytest.mark.parametrize("missing", ["scores.parquet", "distribution.parquet"])
def test_files_a_method_does_not_leave_are_not_missed(tmp_path, missing):
    lay_down(tmp_path / "run", result())
    (tmp_path / "run" / missing).unlink()
    heard = told(result(), tmp_path / "run")
    assert ("scores" in heard) == ("figure/ranks/reference" in heard) == (missing != "scores.parquet")
    assert ("test/distribution" in heard) == ("figure/distribution" in heard) == (missing != "distribution.parquet")


def test_nothing_is_drawn_for_those_who_take_no_pictures(tmp_path, monkeypatch):
    lay_down(tmp_path / "run", result())
    monkeypatch.setattr("pyarrow.parquet.read_table", lambda *_: pytest.fail("read for nothing"))
    mirror(NoTracker(), result(), tmp_path / "run")


def test_texts_are_sent_only_where_asked_for(tmp_path):
    lay_down(tmp_path / "run", result())
    texts = {"suspect": {f"d{number}": f"text {number}" for number in range(39)}}
    assert "text" not in told(result(), tmp_path / "run", texts)["scores"]
    assert "text" not in told(result(), tmp_path / "run", log_text=True)["scores"]
    columns = told(result(), tmp_path / "run", texts, log_text=True)["scores"]
    assert columns["text"] == [f"text {number}" for number in range(39)] + [None], "joined by id, never zipped"


def test_names_that_never_change():
    assert summary_of(result()) == {
        "test/statistic": -0.12,
        "test/Delta": -0.12,
        "test/p_value": 0.93,
        "test/ci_low": -0.3,
        "test/ci_high": 0.05,
        "test/alpha": 0.05,
        "rho/reference_target": 0.61,
        "rho/distilled_target": 0.73,
        "rho/distilled_reference": 0.8,
        "score/auroc": 0.5,
        "health/kl_before": 1.0,
        "health/kl_after": 0.5,
        "capability/target/nll": 3.2,
        "capability/target/num_parameters": 1e6,
        "detail/p_value_at_margin_0_1": 1.0,
        "detail/num_tied_scores/target": 3,
        "verdict": "inconclusive",
        "allowed_claim": "None.",
        "answer": "\n".join(result().answer.lines()),
        "num_documents": 40,
        "num_excluded": 1,
        "num_tokens": 3600,
        "num_warnings": 1,
        "warnings": "40 documents are few.",
        "seconds": 12.5,
    }


def test_undefined_numbers_are_not_told():
    assert not {"test/p_value", "num_tokens"} & summary_of(result(p_value=None, num_tokens=None)).keys()


def test_facts_are_flat():
    facts = facts_of(result())
    assert facts == {
        "method": "prism",
        "score": "min_k++",
        "target": "micro_target_high",
        "reference": "micro_l",
        "corpus": "scipy-a",
        "heldout": None,
        "world": "micro",
        "truth": "member",
        "seed": 1234,
        "sweep": "demo",
        "name": "seed=1",
        "rank_metric": "spearman",
        "num_resamples": 10000,
        "alpha": 0.05,
        "max_tokens": 512,  # the method's, not the distillation's
        "k": 0.2,
        "compat": "none",
        "lambda": 0.7,
        "tau": 2.0,
        "learning_rate": 0.003,
        "epochs": 1,
        "domain": "scipy",
        "half": "a",
        "label": "scipy-a",
        "num_documents": None,
    }


def test_what_audits_are_grouped_by_is_always_there():
    bare = facts_of(result(settings={"method": "words"}, data={}, score="", target=None, reference=None))
    grouped = ("lambda", "tau", "k", "rank_metric", "learning_rate", "epochs", "domain", "half", "target", "reference")
    assert [bare[name] for name in (*grouped, "score")] == [None] * 11


def test_facts_do_not_touch_the_result():
    before = result().to_json()
    facts_of(result())
    assert (before, SETTINGS["score"]["k"]) == (result().to_json(), 0.2)
