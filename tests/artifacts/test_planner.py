"""What is needed is told as one graph, and nothing is made to tell it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import tiny
from nonmember.artifacts.planner import Graph, NotMade, Planner
from nonmember.artifacts.store import Store
from nonmember.config.dry_run import Work
from nonmember.endpoints.rephrased import Written
from nonmember.observations import TokenStatistics
from nonmember.records import Prompt
from nonmember.tracking.trackers import NoTracker
from nonmember.training import Trained

TARGET = Trained(tiny.scratch(1), tiny.pretraining(), tiny.GENERAL, seed=1, label="target")
REFERENCE = Trained(tiny.scratch(2), tiny.pretraining(), tiny.GENERAL, seed=2, label="reference")


def distilled(lambda_: float) -> Trained:
    return Trained(REFERENCE, tiny.distillation(lambda_), tiny.SUSPECT, seed=3, teacher=TARGET, label=f"l{lambda_}")


def observed(model: Trained) -> TokenStatistics:
    return TokenStatistics(model, tiny.SUSPECT, "original", 64)


def planner(root) -> Planner:
    return Planner(Store(root), tiny.compute(), NoTracker())


def graph_of(root, *lambdas: float) -> Graph:
    graph = Graph(planner(root))
    for lambda_ in lambdas:
        graph.add([observed(TARGET), observed(distilled(lambda_))])
    return graph


def test_the_artifacts_of_a_grid_are_one_graph_and_nothing_is_made(tmp_path):
    graph = graph_of(tmp_path, 0.1, 0.2, 0.3)
    kinds = [node.kind for node in graph.nodes.values()]
    assert (kinds.count("models"), kinds.count("observations"), kinds.count("tokenizers")) == (2 + 3, 1 + 3, 1)
    places = {name: index for index, name in enumerate(graph.nodes)}
    assert all(places[parent] < places[node.name] for node in graph.nodes.values() for parent in node.parents)
    assert not list(tmp_path.rglob("sidecar.json"))
    with pytest.raises(NotMade):
        graph.builder.get(TARGET)
    names = set(graph.nodes)
    graph.add([observed(replace(TARGET, label="again")), observed(replace(distilled(0.1), label="again"))])
    assert set(graph.nodes) == names  # a label makes no other model


@pytest.mark.slow
def test_what_is_told_is_what_is_then_made_and_its_time_is_known_afterwards(tmp_path):
    builder = tiny.builder(tmp_path)
    builder.get(TARGET.base.tokenizer)  # without which tokens are guessed by characters
    before = Work.of(graph_of(tmp_path, 0.1), tiny.compute().machine)
    assert {cost.seconds for cost in before.costs.values()} == {None}
    for spec in (observed(TARGET), observed(distilled(0.1))):
        builder.get(spec)
    store = Store(tmp_path)
    made = {f"{kind}/{item}" for kind in ("models", "observations") for item in store.hashes(kind)}
    assert made == set(before.costs)
    for name, cost in before.costs.items():
        if (node := before.graph.nodes[name]).kind in ("models", "observations"):
            entry = builder.entry(node.spec)
            assert cost.tokens == pytest.approx(entry.facts["num_tokens"], rel=0.1), node.spec.readable
    assert not Work.of(graph_of(tmp_path, 0.1), tiny.compute().machine).costs
    after = Work.of(graph_of(tmp_path, 0.1, 0.2), tiny.compute().machine)
    assert [after.graph.nodes[name].spec.readable for name in after.costs] == ["l0.2", "l0.2-original"]
    sidecar = json.loads((builder.entry(distilled(0.1)).path / "sidecar.json").read_text())
    assert next(iter(after.costs.values())).seconds == pytest.approx(sidecar["made"]["seconds"], rel=0.1)
    elsewhere = Work.of(graph_of(tmp_path, 0.1, 0.2), "another machine")
    assert {cost.seconds for cost in elsewhere.costs.values()} == {None}
    assert all(cost.size for cost in elsewhere.costs.values()), "disk is the same everywhere"


def test_of_a_training_that_was_resumed_no_time_is_recorded(tmp_path):
    store, key = Store(tmp_path), {"a": 1}

    def killed(folder):
        (folder / "point").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.get_or_make("things", "a", key, killed, resumable=True)
    entry = store.get_or_make("things", "a", key, lambda folder: None, resumable=True, note={"alike": "x"})
    assert json.loads((entry.path / "sidecar.json").read_text())["made"] == {"alike": "x"}


def test_what_a_model_will_write_is_in_the_graph_before_it_is_written(tmp_path):
    written = Written(tiny.SUSPECT, TARGET, Prompt("Say: {text}"), 0.0, 8, 32, seed=1)
    graph = Graph(planner(tmp_path))
    graph.add([TokenStatistics(REFERENCE, written, "original", 64)])
    kinds = sorted(node.kind for node in graph.nodes.values())
    assert kinds == ["corpora", "models", "models", "observations", "tokenizers"]
    (corpus,) = [node for node in graph.nodes.values() if node.kind == "corpora"]
    assert not corpus.in_store
    (last,) = [node for node in graph.nodes.values() if node.kind == "observations"]
    assert corpus.name in last.parents
    assert Work.of(graph, "here").costs[last.name].tokens is None


def test_alike_is_what_costs_the_same():
    assert distilled(0.1).alike() == replace(distilled(0.9), seed=9, corpus=tiny.GENERAL).alike()
    assert TARGET.alike() == replace(TARGET, base=REFERENCE).alike(), "continuing takes what beginning takes"
    wider = replace(TARGET, base=tiny.scratch(1, hidden_size=32))
    assert len({TARGET.alike(), wider.alike(), distilled(0.1).alike(), observed(TARGET).alike()}) == 4
