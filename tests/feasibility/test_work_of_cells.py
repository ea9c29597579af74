"""What an audit asks for, told from its specs: by hand, and from the recipes of the papers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import pandas as pd
import pytest

import tiny
from marks import slow
from nonmember.config.grid import sweeps_for
from nonmember.config.roots import register
from nonmember.corpora import (
    Cleaned,
    Component,
    Documents,
    Hub,
    Jsonl,
    Mixture,
    NestedMixture,
    Part,
    Select,
    Table,
    TextFiles,
)
from nonmember.corpora.sources import documents
from nonmember.corpora.specs import Bound
from nonmember.endpoints import Limits, Probe
from nonmember.endpoints.models import Recorded
from nonmember.feasibility.jobs import Job, Unknown, bound_of, jobs_of, weights_of, words_in
from nonmember.feasibility.memory import GIB, Machine, MemoryUse, TrainerSettings, training
from nonmember.feasibility.meta import shape_of
from nonmember.feasibility.table import CheckedCell, costs, hours, markdown, rows_of, short, summary, to_csv
from nonmember.feasibility.verdict import CheckResult, check, fitting
from nonmember.models import Noised, Pretrained
from nonmember.training import Trained
from nonmember.training.recipes import AdapterTuning, Lora
from nonmember_papers.decop import recorded_scores  # noqa: F401 (a probe of it)

AT_ONCE = ["decop_papers"]
SETTINGS = TrainerSettings(4, 16384, 1024, 256, 4096, mixed=True, gradient_checkpointing=False)
LIMITS = Limits(4, None, None, 10, 2, None, None, None, None, None)
MIMIR = Hub("iamgroot42/mimir", None, "test", "0" * 40, "text", None, data_files="test/arxiv.jsonl", domain="arxiv")
CLEANED = Cleaned(MIMIR, 100, 200, "cut", None, 64)
HALF = Part(CLEANED, take="a", sizes={"a": 400}, by="document", per="corpus", salt="x")


def test_asking_takes_as_long_as_the_slowest_of_its_limits():
    assert LIMITS.seconds(10, 500, 3) == 9, "in three rounds of four, four and two"
    assert replace(LIMITS, requests_per_minute=30).seconds(10, 500, 3) == 20
    assert replace(LIMITS, requests_per_minute=30, tokens_per_minute=600).seconds(10, 500, 3) == 50
    asking = [Job("asking", "m", name, 5, None, requests=5, seconds=1800) for name in "ab"]
    assert hours(asking, Machine()) == 1
    assert hours([*asking, replace(asking[0], seconds=None)], Machine()) is None


TEXTS = ["one two three", "four", "five six", "seven eight nine ten"]  # mean 2.5 words


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.parquet"])
def test_documents_of_files_are_counted_and_beyond_a_limit_estimated(name, tmp_path, monkeypatch):
    frame = pd.DataFrame({"id": range(4000), "text": TEXTS * 1000, "other": ["x" * 40] * 4000})
    path = tmp_path / name
    if "json" in name:
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False) if name == "a.csv" else frame.to_parquet(path)
    spec = Documents(str(path), text_field="text")
    assert bound_of(spec) == Bound(4000, 3)
    monkeypatch.setattr(documents, "MOST_COUNTED", 5000)  # of 38,000 characters
    documents._counted.cache_clear()
    near = bound_of(spec)
    assert near.documents == pytest.approx(4000, rel=0.2 if name.endswith("gz") else 0.02)
    assert near.words == 3


def test_every_kind_of_file_is_counted_once_a_document(tmp_path):
    rows = [{"book": number // 2, "label": number % 2, "text": text} for number, text in enumerate([*TEXTS, *TEXTS])]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.txt").write_text("one two three")
    (tmp_path / "c.txt").write_text("four five six seven")
    assert bound_of(Jsonl(str(path), None, "text")) == Bound(8, 3)
    assert bound_of(TextFiles(str(tmp_path), "*.txt")) == Bound(2, 4)
    passages = Table(str(path), "{text}", "{text}", where={"label": 0})
    assert bound_of(passages) == Bound(2, 3), "five of its rows are another's, or the same document again"
    cut = Cleaned(passages, 1, 2, "cut", None, 64)
    assert bound_of(cut).tokens(512) == 2 * 4
    assert bound_of(Jsonl(str(tmp_path / "none.jsonl"), None, "text")) == Bound(None)
    assert bound_of(Jsonl("not given: data.path", None, "text")) == Bound(None)


def test_bounds_follow_the_recipe():
    assert bound_of(MIMIR).documents == 1000
    assert (bound_of(CLEANED).documents, bound_of(CLEANED).words) == (1000, 200)
    assert bound_of(HALF).documents == 400
    assert bound_of(replace(HALF, take="rest")).documents == 600
    assert bound_of(replace(HALF, sizes={"a": 0.25})).documents == 250
    assert bound_of(Select(HALF, num_documents=30, salt="x")).documents == 30
    assert bound_of(NestedMixture(HALF, replace(HALF, take="rest"), 70, 0.5, "x")).documents == 70
    twice = Mixture((Component(HALF, 2), Component(CLEANED, 1)))
    assert bound_of(twice).documents == 1800
    assert words_in(twice) == 1800 * 200


def test_documents_of_some_domains_and_of_a_label_are_not_the_whole():
    halves = Part(CLEANED, take="a", sizes={"a": 60}, by="document", per="domain", domains=("x", "y", "z"), salt="s")
    assert bound_of(halves).documents == 180
    assert bound_of(Select(halves, domains=("y",))).documents == 60
    books = Hub(
        "avduarte333/BookTection", None, "train", "0" * 40, "text", None, where={"Length": "medium", "Label": 1}
    )
    clean = replace(books, where={"Length": "medium", "Label": 0})
    assert bound_of(books).documents + bound_of(clean).documents == 5610, "165 books of 34 passages"


def test_tokens_are_cut_by_what_is_read_and_by_the_words_there_are():
    assert bound_of(HALF).tokens(512) == 400 * 320
    assert bound_of(HALF).tokens(100) == 400 * 100
    assert bound_of(MIMIR).tokens() is None
    unknown = replace(MIMIR, path="nobody/nothing")
    assert bound_of(unknown).tokens(512) is None


def test_training_holds_sixteen_bytes_a_parameter():
    shape = shape_of("EleutherAI/pythia-410m")
    assert shape is not None
    needs = training(shape, 0.0, shape.num_parameters, "adamw", 512, SETTINGS)
    assert needs.shared == 16 * 405334016
    assert needs.fixed == 4 * 512 * 1024 * 24 * 34 + GIB
    beside = training(shape, 7e9, 1000, "sgd", 512, SETTINGS)
    assert beside.shared == 7e9 + 8 * 1000
    less = training(shape, 0.0, 0, "adamw", 512, replace(SETTINGS, gradient_checkpointing=True))
    assert less.fixed - GIB == 4 * 512 * 1024 * (24 * 2 + 34)


def test_devices_divide_weights_and_nothing_else():
    machine = Machine(gib=100)
    assert MemoryUse(92 * GIB, 0).devices(machine) == 1
    assert MemoryUse(138 * GIB, 23 * GIB).devices(machine) == 2
    assert MemoryUse(1, 92 * GIB).devices(machine) is None


def test_smaller_batches_come_before_more_devices():
    def needs(settings: TrainerSettings) -> MemoryUse:
        return MemoryUse(10 * GIB, settings.micro_batch_size * 20 * GIB)

    job = Job("tuning", "m", "1", 1, 1.0, needs)
    number, gib, words = fitting([job], SETTINGS, Machine(gib=80))
    assert (number, gib) == (1, 30)
    assert "trainer.micro_batch_size=1" in words
    large = Job("observing", "m", "2", 1, 1.0, lambda _: MemoryUse(140 * GIB, 0))
    assert fitting([job, large], SETTINGS, Machine(gib=80))[0] == 2


def test_cells_that_need_the_same_are_a_row_and_shared_work_counts_once():
    item, two = (Job("observing", "m", name, 10, 1e15, lambda _: MemoryUse(1, 1)) for name in "ab")
    checked = CheckResult("ready", ("a/b",), jobs=(item,), num_gpus=1, gib=1.0)
    cells = [
        CheckedCell("s", "x=1", checked),
        CheckedCell("s", "x=2", replace(checked, jobs=(item, two))),
        CheckedCell("s", "x=3", replace(checked, status="retired")),
    ]
    rows = rows_of(cells)
    assert [(row.num_cells, len(row.jobs)) for row in rows] == [(2, 2), (1, 1)]
    assert hours(rows[0].jobs, Machine(tflops=1000, utilisation=0.5)) == pytest.approx(2e15 / 5e14 / 3600)
    assert hours([replace(item, operations=None)], Machine()) is None
    assert summary(cells) == "3 cells: 2 ready, 1 retired"
    hour = Machine(tflops=1e3 / 3.6, utilisation=1.0)  # 1e18 operations
    jobs = [
        Job("observing", "m", name, 10, number, lambda _: MemoryUse(1, 1))
        for name, number in (("c", 1e18), ("d", 2e18))
    ]
    sweeps = [CheckedCell(name, "", replace(checked, jobs=some)) for name, some in (("x", jobs[:1]), ("y", jobs))]
    assert costs(sweeps, hour) == "Hours: x 1.0, y 3.0; together 3.0."
    unknown = CheckedCell("z", "", replace(checked, jobs=(replace(item, operations=None),)))
    assert costs([*sweeps, unknown], hour) == "Hours: x 1.0, y 3.0, z ?; together at least 3.0."
    assert to_csv(cells, Machine()).splitlines()[1].startswith("s,x=1,ready,,a/b,1,1.0,")
    assert [short(number) for number in (None, 0, 999, 1_234_567)] == ["?", "", "999", "1.23 M"]


def jobs_for(spec: object) -> list[Job]:
    return jobs_of(SimpleNamespace(groups={"": spec}, target=None, lookup=None))


def test_a_changed_model_is_as_large_as_the_one_it_was_made_from():
    base = tiny.scratch(1)
    assert weights_of(Noised(base, 0.1, 0)) == weights_of(base)
    assert weights_of(Noised(Pretrained("EleutherAI/pythia-1b"), 0.1, 0)).num_bytes == 4 * 1011781632
    with pytest.raises(Unknown, match="known-elsewhere"):
        weights_of(Recorded("answers.csv", "known-elsewhere"))


def test_an_adapter_of_a_micro_model_counts_its_own_weights_alone():
    """Also where it was trained in full before: rank times inputs and outputs of query, key and value in two layers."""
    tuning = AdapterTuning(tiny.optimization(), Lora(None, 8, 16, 0.0), 32, drop_last=False)
    base = tiny.scratch(1)
    for trained in (base, Trained(base, tiny.pretraining(), tiny.GENERAL, seed=2)):
        tuned = Trained(trained, tuning, tiny.SUSPECT, seed=3)
        (number,) = [job.num_tuned for job in jobs_for(tuned) if job.kind == "tuning"]
        assert number == 2 * 8 * (16 + 3 * 16)
        assert weights_of(tuned).num_bytes == weights_of(trained).num_bytes + 4 * number


def test_sequences_longer_than_a_model_reads_are_refused_before_anything_is_trained():
    model = Trained(tiny.scratch(1), tiny.pretraining(200), tiny.GENERAL, seed=2)
    asked = SimpleNamespace(groups={"": model}, target=model, reference=None, lookup=None)
    checked = check(asked, SETTINGS, LIMITS, Machine(), date(2026, 11, 22))
    assert checked.status == "asks"
    assert "reads at most 128 tokens, and is trained on sequences of 200" in checked.asks[0]


def test_the_table_for_others_has_each_sweep_and_what_it_asks_for():
    job = Job("observing", "m", "1", None, None, lambda _: MemoryUse(1, 1))
    ready = CheckResult("ready", ("a/b",), jobs=(job,), num_gpus=1, gib=1.0)
    asks = CheckResult("asks", ("c/d",), ("supply the file",))
    cells = [CheckedCell("one", "x=1", ready), *(CheckedCell(f"sweep-{number}", "", asks) for number in range(8))]
    told = markdown(cells, Machine(gib=80, tflops=300), date(2026, 11, 22), "nonmember check one").splitlines()
    assert any(line.startswith("Made by `nonmember check one`.") for line in told)
    assert "9 cells: 8 asks, 1 ready, on 2026-11-22 with GPUs of 80 GiB." in told
    assert "| one | 1 | ready | b | 1 | 1.0 |  |  | ? |  | ? |" in told, "how much it reads is not bounded"
    assert "| sweep-7 | 1 | asks | d |  |  |  |  |  |  |  |" in told, "no work is known, which is not unknown work"
    several = ", ".join(f"sweep-{number}" for number in range(6))
    assert f"- {several} and 2 more: supply the file." in told
    assert any("300" in line for line in told[:20]), "the machine that the hours are of"
    needs = CheckedCell("one", "", replace(ready, lacks=("data.path",)))
    told = markdown([needs], Machine(), date(2026, 11, 22), "nonmember check one").splitlines()
    assert "| one | 1 | ready | b | 1 | 1.0 |  |  |  |  | needs data.path |" in told, "what would tell how much"
    assert "Hours: one needs data.path." in told


# ------------------------------------------------------------------------------------------------ whole cells


def cell(*overrides: str, name: str = "audit", on: date = date(2026, 11, 22), gib: float = 80) -> CheckResult:
    from nonmember.config.compose import composed
    from nonmember.config.feasible import check_cell

    register()
    with composed(name, [*overrides, "trainer=gpu"]) as (config, _):
        return check_cell(config, Machine(gib=gib), on)


@pytest.mark.slow
def test_a_cell_of_table_2():
    """Reference 1b distilled from 410m on 500 documents; PRISM reads all three models once."""
    checked = cell("world=pythia", "data.domain=arxiv", "experiment=pythia_410m_row")
    assert checked.status == "needs terms accepted"
    assert checked.asks == ("accept the terms of iamgroot42/mimir on the hub, and set HF_TOKEN",)
    kinds = {job.kind: job for job in checked.jobs}
    assert kinds["distilling"].tokens == 500 * 320
    assert sum(job.kind == "observing" for job in checked.jobs) == 3
    assert checked.num_gpus == 1


@pytest.mark.slow
def test_asking_four_passages_in_24_orders_by_hand():
    """Some 640 tokens a question, four passages of 128 and the instruction around them, are read in parallel; four are
    written."""
    checked = cell("world=pythia", "data=decop_booktection", "method=decop_open", "model@target=llama_2_70b_chat")
    asked = [job for job in checked.jobs if job.kind == "writing"]
    requests = 24 * 34 * 165
    parameters = 68_976_648_192
    per_question = sum(job.operations for job in asked) / (2 * parameters * requests)
    assert 512 + 64 < per_question < 1.25 * 640
    assert sum(job.token_by_token for job in asked) == 2 * parameters * requests * 4
    assert 11 <= hours(checked.jobs, Machine()) <= 27, "714 where writing and reading took as long a token"


@pytest.mark.slow
def test_the_estimate_of_a_book_beside_what_the_authors_measured():
    """DE-COP's table 13: 590 s a book under LLaMA-2-70B, and 14 s each for perplexity and for that of small letters, on
    A100s, of which one works at a time."""
    a100 = Machine(gib=80, tflops=312)
    for method, seconds in (("decop_open", 590), ("decop_baselines", 2 * 14)):
        checked = cell("world=pythia", "data=decop_booktection", f"method={method}", "model@target=llama_2_70b_chat")
        expected = 3600 * (hours(checked.jobs, a100) or 0) / 165
        assert 0.5 < expected / seconds < 2, (method, expected)


@pytest.mark.parametrize(
    ("sweep", "minutes"), [slow("demo", 7), slow("demo_real", 13)], ids=["micro models", "SmolLM2"]
)
def test_estimates_of_the_demos_beside_what_was_measured(sweep, minutes):
    """docs/first_audit.md, on two idle cores that reach .172 TFLOP/s in a product of matrices."""
    from nonmember.config.feasible import check_cell
    from nonmember.config.grid import cells_of

    register()
    here = Machine(gib=24, tflops=0.172, utilisation=0.5, writing=0.1, device="CPU")
    cells = [check_cell(item.config, here, date(2026, 11, 26)) for item in cells_of(sweep, ["trainer=cpu"])]
    jobs = {job.identity: job for checked in cells for job in checked.jobs}
    assert 0.5 < 60 * (hours(jobs.values(), here) or 0) / minutes < 2


@pytest.mark.slow
def test_adapters_of_olmo_and_phi():
    checked = cell("world=pythia", "data=pythia_kds", "method=kds", "data.domain=cc", "model@target=olmo_1b")
    assert (checked.status, checked.num_tuned) == ("ready", 16 * 2 * 8 * 4096)
    asks = cell("world=pythia", "data=pythia_kds", "method=kds", "data.domain=cc", "model@target=phi_3_small").asks
    assert "target.trust_remote_code=true, and install tiktoken, triton, flash-attn" in asks[0]


@pytest.mark.slow
def test_a_model_that_no_gpu_holds():
    checked = cell("world=pythia", "data=decop_booktection", "method=decop", "model@target=llama_2_70b_chat")
    assert checked.status.startswith("needs 2 GPUs")
    assert any("target.device_map=auto" in sentence for sentence in checked.asks)


@pytest.mark.slow
def test_an_adapter_too_large_for_a_gpu_is_not_spread_over_several():
    """Which training refuses."""
    checked = cell("world=pythia", "data=pythia_fsd", "method=fsd", "model@target=llama_30b", gib=40)
    assert not any("device_map" in sentence for sentence in checked.asks)
    assert any("target.quantization=4bit" in sentence for sentence in checked.asks)


@pytest.mark.slow
def test_files_that_are_read_no_times_make_one_model():
    """Of order_null: the store knows these targets by one key."""
    words = ["data=pythia_order", "method=pythia_order", "model@target=pythia_ordered", "world.ordered.duplication=0"]
    jobs = [cell("world=pythia", *words, f"world.ordered.draw={draw}").jobs for draw in (0, 1)]
    trained = [{job.identity for job in some if job.kind == "training"} for some in jobs]
    assert trained[0] == trained[1]
    assert len(trained[0]) == 1


def probes(kind: type = Probe) -> list[type]:
    return [each for own in kind.__subclasses__() for each in (own, *probes(own))]


@pytest.mark.parametrize("probe", [kind for kind in probes() if not kind.__abstractmethods__])
def test_every_probe_says_what_it_asks(probe):
    """Without an answer's length `check` ended in a traceback."""
    assert "max_new_tokens" in probe.__dataclass_fields__ or probe.requirements is not Probe.requirements


@pytest.mark.slow
@pytest.mark.parametrize("sweep", [*AT_ONCE, *(slow(name) for name in sweeps_for("pythia") if name not in AT_ONCE)])
def test_cells_of_every_sweep_of_the_hub_are_described(sweep):
    """First and last: all that is needed is known, and what is asked for is asked for in a sentence."""
    from nonmember.config.feasible import check_cell
    from nonmember.config.grid import cells_of

    register()
    cells = sorted(cells_of(sweep, ["world=pythia", "trainer=gpu"]), key=lambda item: item.number)
    for item in (cells[0], cells[-1]):
        checked = check_cell(item.config, Machine(), date(2026, 11, 22), is_open=item.is_open)
        assert checked.status not in ("unknown", "retired"), checked.asks
        assert checked.jobs or checked.asks or not checked.hub


@pytest.mark.slow
def test_services_are_there_or_not_by_the_day():
    words = ["world=pythia", "data=decop_booktection", "method=decop", "model@target=gpt_4o_mini"]
    asked = cell(*words)
    assert (asked.status, asked.asks[0]) == ("asks", "set OPENAI_API_KEY to a key of OpenAI")
    assert re.search(r"asking.max_requests=\d{6} asking.max_tokens=\d{9} ", asked.asks[1]), "over the budget"
    allowed = cell(*words, "asking.max_requests=null", "asking.max_tokens=null")
    assumed = "hours of asking assume 2 s a request (--seconds-per-request), 16 at once (asking.concurrency)"
    assert allowed.asks == (asked.asks[0], assumed)
    assert hours(allowed.jobs, Machine()) == 24 * 34 * 165 / 16 * 2 / 3600
    paced = cell(*words, "asking.requests_per_minute=60")
    assert hours(paced.jobs, Machine()) == 24 * 34 * 165 / 3600
    assert paced.asks[-1] == f"{assumed}, at most 60 requests a minute"
    assert cell(*words, on=date(2027, 1, 14)).status == "retired"
    words[-1] = "model@target=gpt_3_5_turbo_instruct"
    checked = cell(*words, "method.reading=probabilities")
    assert checked.status == "retired"
    assert "take gpt_4o_mini instead" in checked.asks[0]
    assert "add method.top_logprobs=5" in " ".join(checked.asks)


@pytest.mark.slow
def test_what_the_user_must_supply_is_said():
    checked = cell("world=pythia", "data=pythia_fsd", "method=fsd", "data.domain=arxivtection")
    assert checked.status == "ready", "a branch is resolved to a commit when it is first read"
    (planned,) = checked.asks
    assert "truth=infinigram, which sends up to 8 sequences of 13 words of each document" in planned
    games = cell("world=pythia", "experiment=mc_pdd_steam", "model@target=llama_2_7b_chat").asks
    assert any("JSON Lines: id, name, description" in item and "data.read_path=FILE" in item for item in games)
    unknown = cell(
        "world=own", "target.path=nobody/knows-it", "reference.path=EleutherAI/pythia-1b", "data.path=x.jsonl"
    )
    assert unknown.status == "unknown", unknown.asks
    assert any("nobody--knows-it.yaml" in sentence for sentence in unknown.asks)
    assert any("x.jsonl" in sentence for sentence in unknown.asks), "the documents are not there either"


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """own(...): of two models of the hub that anybody may have, and documents in a file."""
    documents = tmp_path_factory.mktemp("own") / "documents.jsonl"
    documents.write_text("".join(json.dumps({"id": str(item), "text": f"one two {item}"}) + "\n" for item in range(40)))
    models = {"target": "EleutherAI/pythia-410m", "reference": "EleutherAI/pythia-1b"}

    def look(*more: str, gib: float = 80, **paths: object) -> CheckResult:
        given = [f"{role}.path={path}" for role, path in {**models, "data": documents, **paths}.items() if path]
        return cell("world=own", *given, *more, gib=gib)

    return look


def test_what_is_read_of_ones_own_documents_is_counted_or_named(own):
    """Three words each, five tokens; 80 neighbours of each."""
    assert {job.tokens for job in own().jobs if job.kind == "observing"} == {40 * 5, 80 * 40 * 5}
    unknown = own(data="")
    assert unknown.lacks == ("data.path",)
    assert own(data="none.jsonl").lacks == ("none.jsonl",)
    assert hours(unknown.jobs, Machine()) is None


def test_a_machine_that_is_too_small_is_told_what_would_do(own):
    spread = own(gib=16)
    assert (spread.status, spread.num_gpus) == ("needs 2 GPUs", 2)
    assert spread.asks[:1] == ("with 2 GPUs of 16 GiB: trainer=fsdp trainer.make_trainer.devices=2",)
    small = own(gib=1)
    assert (small.status, small.asks[:1]) == ("asks", ("no number of devices of 1 GiB holds it; give larger ones",))


def test_a_model_on_ones_own_disk_is_not_called_undescribed(own, tmp_path):
    checked = own(reference=tmp_path)
    assert checked.status == "unknown"
    assert checked.asks[:1] == (f"the sizes of {tmp_path} are not known: no estimate of memory and time",)


@pytest.mark.parametrize(
    ("method", "rank", "modules"), [("kds", 8, 4), slow("fsd", 16, 4), slow("mc_pdd_contaminated", 8, 16)]
)
def test_adapters_on_a_folder_are_counted_or_its_sizes_are_not_known(own, tmp_path, method, rank, modules):
    """Rank times inputs and outputs: of query, key and value alone, or of every linear layer."""
    paths = {"data.unseen": "unseen.jsonl", "data.heldout": "heldout.jsonl"} if method != "kds" else {}
    for name in paths.values():
        (tmp_path / name).write_text('{"id": "a", "text": "one two"}\n')
    given = [f"{key}.path={tmp_path / name}" for key, name in paths.items()]
    (tmp_path / "gguf").mkdir()
    (tmp_path / "gguf" / "model.gguf").touch()
    for folder in (tmp_path / "gguf", tmp_path / "gguf" / "model.gguf"):
        checked = own(f"method={method}", *given, target=folder, reference="")
        assert checked.asks[:1] == (f"the sizes of {folder} are not known: no estimate of memory and time",)
    settings = {"hidden_size": 16, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt_neox", "vocab_size": 50, **settings}))
    checked = own(f"method={method}", *given, target=tmp_path, reference="")
    assert {job.num_tuned for job in checked.jobs if job.kind == "tuning"} == {2 * rank * modules * 16}


@pytest.mark.slow
def test_what_is_not_described_is_named_with_the_place_for_it(own):
    data = own("data=hub", "data.path=nobody/nothing", data="").asks
    assert "no description of the data set nobody/nothing; add it to hub/datasets.yaml" in data
    service = own("method=prefix_completion", "model@target=endpoint", "target.model=my-own", target="").asks
    assert "no description of my-own behind a service; add it to hub/services.yaml" in service


def test_a_server_on_this_machine_needs_no_description(own):
    served = ("method=prefix_completion", "model@target=endpoint", "target.model=my-own")
    checked = own(*served, "target.url=http://localhost:8080/v1", target="")
    assert {job.kind for job in checked.jobs} == {"asking"}
    assert not any("no description" in sentence for sentence in checked.asks)


def test_a_model_that_can_only_be_asked_is_refused_to_a_method_that_reads_it(own):
    service = ("model@target=endpoint", "target.model=gpt-4o-mini-2024-07-18", "target.url=http://localhost/v1")
    checked = own(*service, target="")
    assert "gpt-4o-mini-2024-07-18 can only be queried, but the method needs more" in checked.asks[0]
    assert not checked.jobs


def test_a_rephraser_writes_before_the_target_is_asked(own):
    checked = own("method=pacost", "method.rephraser.path=mistralai/Mistral-7B-Instruct-v0.3")
    assert [job.model for job in checked.jobs if job.kind == "writing"] == ["Mistral-7B-Instruct-v0.3"]
    assert checked.asks[:1] == ("accept the terms of mistralai/Mistral-7B-Instruct-v0.3 on the hub, and set HF_TOKEN",)


@pytest.mark.slow
def test_where_training_data_are_open_a_look_up_is_planned_and_done_only_if_asked_for(own):
    planned = own("method=blind", "+data@data.heldout=documents", "data.heldout.path=texts.jsonl")
    (look_up,) = [job for job in planned.jobs if job.kind == "looking up"]
    assert (look_up.model, look_up.needs) == ("infini-gram v4_piletrain_llama", None)
    assert re.search(
        "look-up in infini-gram v4_piletrain_llama is planned.* add truth=infinigram.*sends", planned.asks[-1]
    )
    for given, expected in (("truth=infinigram", 1), ("truth=member", 0), ("truth=index", 0)):
        checked = own(given)
        assert sum(job.kind == "looking up" for job in checked.jobs) == expected
        assert not any("look-up" in sentence for sentence in checked.asks)
    assert not any(job.kind == "looking up" for job in cell("world=micro").jobs)


def test_micro_models_are_told_from_their_recipes():
    checked = cell("world=micro")
    assert (checked.status, checked.hub) == ("ready", ())
    assert {job.kind for job in checked.jobs} == {"training", "distilling", "observing"}
