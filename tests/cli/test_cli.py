"""What the command says: help, and one sentence for every mistake on the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from nonmember import __version__
from nonmember.cli import main as cli
from nonmember.cli.audit import tell_of_wandb, tell_where
from nonmember.config.compose import composed, explained
from nonmember.config.given import IncompleteQuestion
from nonmember.config.roots import register
from nonmember.config.runs import cell_of
from nonmember.reports.audit_page.write import write_page

sys.path.insert(0, str(Path(__file__).parents[1] / "reporting"))
import made_up


def in_one_sentence(said, command="audit"):
    """One line on standard error, nothing of Python's or Hydra's on either."""
    assert said.status == 1
    assert said.err.startswith(f"nonmember {command}: ")
    assert said.err.count("\n") == 1
    for noise in ("Traceback", "Error executing job", "full_key", "object_type", "Config search path", "hydra.cc"):
        assert noise not in said.err + said.out
    return said.err


# ---------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("help",)])
def test_help_names_every_command(nonmember, arguments):
    said = nonmember(*arguments)
    assert (said.status, said.err) == (0, "")
    for command, what in cli.COMMANDS.items():
        assert f"{command:11} {what}" in said.out


def test_version(nonmember):
    assert nonmember("--version").out == f"nonmember {__version__}\n"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["audit", "score", "train"])
def test_help_of_a_command(nonmember, command, tmp_path):
    said = nonmember(command, "--help")
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith(f"nonmember {command}: ")
    assert said.out.count("\n") <= 14
    assert "nonmember list models" in said.out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "line"),
    [("models", "micro_target "), ("methods", "prism "), ("data", "jsonl "), ("worlds", "own "), ("sweeps", "table2 ")],
)
def test_list_has_a_line_for_each(nonmember, kind, line):
    said = nonmember("list", kind)
    (found,) = [item for item in said.out.splitlines() if item.startswith(f"  {line}")]
    assert len(found.split()) > 3
    assert found in nonmember("list", kind, line.strip().upper()).out.splitlines()


def test_list_of_nothing(nonmember):
    assert "no list of modls; did you mean models?" in in_one_sentence(nonmember("list", "modls"), "list")


def test_looking_at_the_config_makes_nothing(nonmember, tmp_path):
    said = nonmember("audit", "--cfg", "job", "data=jsonl", "data.path=a.jsonl")
    assert said.status == 0
    assert "label: ${file_stem:${.path}}" in said.out
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------ mistakes


def test_unknown_command(nonmember):
    said = nonmember("adit", "seed=1")
    assert said.status == 2
    assert said.err == (
        f"nonmember: there is no command 'adit'; did you mean audit? The commands are {', '.join(cli.COMMANDS)}.\n"
    )


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["nme=x"], "no key nme; did you mean name?"),
        (["trainer.precison=32-true"], "no key trainer.precison; did you mean precision? trainer has "),
        (["data=jsonl", "cleaning.min_wrds=3"], "did you mean min_words or max_words?"),
        (["data.pth=x"], "no key data.pth; did you mean path? data has label, "),
        (["data=jsnl"], "no data=jsnl; did you mean jsonl? data can be arxiv_monthly, "),
        (["model@target=pythia_410"], "no model=pythia_410; did you mean pythia_410m "),
        (["method=prism", "score@method.score=min_kk"], "no score=min_kk; did you mean min_k"),
        (["experiment=no_such"], "no experiment=no_such. experiment can be "),
        (["model@target=/some/folder"], "A folder or a name on the hub is given as target.path=..."),
        (["data=docs.jsonl"], "Files and folders are given as data.path=..."),
        (["model=pythia_70m"], "override one of model@reference, model@target?"),
        (["model.path=x"], "no key model"),
        (["--target=folder"], "unrecognized arguments: --target=folder. Settings have no dashes: write key=value"),
        (["outputs="], "outputs must be a folder; got nothing."),
        (["name=../.."], "name must be a folder below the outputs; got '../..'."),
        (["modl@target=pythia_70m"], "no group modl; did you mean model or method? The groups are asking, "),
        (["method=prism", "training@method.distilation=distillation"], "training@method.distillation"),
        (["seed=abc"], "seed cannot be that: Value 'abc' of type 'str' could not be converted to Integer."),
        (["target.path"], "'target.path' cannot be read: write key=value"),
        (["name='a b"], "cannot be read: write key=value, with quotes"),
        (["data.path=a(1).jsonl"], "because of '('"),
        (["name=é"], """because of 'é', which a value may only have in quotation marks. Write "name='é'"."""),
        (["data.path=a'b"], """because of "'", which a value may only have in quotation marks. Write 'data.path='"""),
        (["outputs=o(1)"], """As a text, write "outputs='o(1)'"."""),
        (["seed=int(x)"], """base 10: 'x'). As a text, write "seed='int(x)'"."""),
        (["data.path=a,b"], """has several values, between commas. To sweep over it, add --multirun."""),
        (["data.path=a,b"], """As a text, write "data.path='a,b'"."""),
        (["outputs=${x}"], "Interpolation key 'x' not found. Where `${...}` is part of a text, write a backslash"),
        (["method=5"], "The choice of a group must be a name, as in method=prism; got int."),
        (["-m", "--config-name", "table2", "world=own"], "needs world.axes.domains, which the chosen world does"),
        (["--config-name", "tabel2"], "There is no sweep tabel2; did you mean table2"),
    ],
)
def test_a_slip_gets_a_sentence_with_the_nearest(nonmember, tmp_path, overrides, expected):
    said = nonmember("audit", *overrides)
    assert expected in in_one_sentence(said)
    assert said.out == ""
    assert not list(tmp_path.iterdir()), "refused before anything is made"


@pytest.mark.parametrize(
    ("command", "overrides", "expected"),
    [
        (
            "audit",
            [],
            "auto needs a target model and documents; add target.path=FOLDER_OR_HUB_NAME data.path=FILE to the "
            "command.",
        ),
        (
            "audit",
            ["model@target=endpoint"],
            "the address of a server that has the target; add target.model=VALUE target.url=http://HOST/v1",
        ),
        (
            "audit",
            ["model@target=micro_target", "reference.path=x", "data.path=y"],
            "does not have: add another world=NAME",
        ),
        ("score", [], "add target.path=VALUE data.path=VALUE to"),
        ("train", [], "model must be a training recipe; got a finished model. Use model=tuned"),
    ],
)
def test_what_must_be_given_is_named(nonmember, command, overrides, expected):
    assert expected in in_one_sentence(nonmember(command, *overrides), command)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["method=prism", "target.path=a", "data.path=b"], "add reference.path=FOLDER_OR_HUB_NAME to"),
        (["data=hub"], "a value for data.revision; add "),
        (
            ["method=blind"],
            "blind needs documents and unread text of the same kind to compare with; add "
            "data.path=FILE data.heldout.path=FILE to",
        ),
        (["method=fsd", "data=jsonl"], "+data@data.unseen=documents data.unseen.path=FILE to"),
        (
            ["method=pacost", "target.path=a", "data.path=b"],
            "pacost needs a model that rephrases; add method.rephraser.path=FOLDER_OR_HUB_NAME to",
        ),
        (["method=fsd_all"], "general text without the documents; add "),
    ],
)
def test_each_method_names_what_it_needs(tmp_path, overrides, expected):
    """What the command says of it: above."""
    with composed("audit", overrides) as (config, _), pytest.raises(IncompleteQuestion) as error:
        cell_of(config, tmp_path)
    assert expected in str(error.value)


# The models and documents named here do not exist: nobody looks.
PRETEND = ("target.path=no/such", "reference.path=no/such", "data=jsonl", "data.path=nothing.jsonl")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("seed", -1, "seed must be a whole number of at least 0; got -1."),
        ("truth", "maybe", "truth must be one of member, non_member; got 'maybe'."),
        ("method.alpha", 2, "method: alpha must be a number in (0, 1); got 2."),
        ("method.score.k", 0, "method.score: k must be a number in [0.001, 1]; got 0"),
        ("trainer.micro_batch_size", 0, "trainer: trainer.micro_batch_size must be a whole number"),
        ("cleaning.long_documents", "shorten", "cleaning.long_documents must be one of cut, drop; got 'shorten'"),
    ],
)
def test_a_cell_refuses_settings(sound, tmp_path, key, value, expected):
    OmegaConf.update(sound, key, value)
    with pytest.raises(ValueError, match=re.escape(expected)), explained():
        cell_of(sound, tmp_path)


@pytest.fixture(scope="module")
def sound_once():
    with composed("audit", ["method=prism", "model@target=pretrained", "model@reference=pretrained", *PRETEND]) as (
        config,
        _,
    ):
        return config


@pytest.fixture
def sound(sound_once):
    """A config with nothing wrong but that nothing is where it says."""
    register()
    return sound_once.copy()


def test_a_refused_audit_leaves_nothing_and_one_of_a_sweep_its_reason(nonmember, tmp_path):
    alone = nonmember("audit", "name=mine")
    assert tmp_path.is_dir()
    assert not list(tmp_path.iterdir())
    nonmember("audit", "-m", "name=mine", "seed=1,2")
    for path in tmp_path.glob("outputs/audits/mine/*/error.json"):
        reason = json.loads(path.read_text())
        assert (reason["cell"], reason["kind"]) == (path.parent.name, "Refusal")
        assert reason["error"] in alone.err


def test_an_audit_ends_with_where_to_read_on(tmp_path, monkeypatch, capsys):
    """The page of one audit, the index of a sweep; and that W&B runs were kept here."""
    folder = tmp_path / "lambda/0000"
    made_up.write(tmp_path, made_up.result(sweep="lambda"))
    monkeypatch.delenv("NONMEMBER_SWEEP_FOLDER", raising=False)
    tell_where([folder])
    assert capsys.readouterr().out == "", "a page that could not be written is not named"
    write_page(folder)
    tell_where([folder])
    assert capsys.readouterr().out == f"page: {folder / 'audit.html'}\n"
    (folder / "logged.json").write_text('["wandb default/nonmember offline an-id"]')
    monkeypatch.setenv("NONMEMBER_SWEEP_FOLDER", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    tell_of_wandb([folder, folder])
    tell_where([folder, folder])
    assert capsys.readouterr().out.splitlines() == [
        "W&B: kept offline, not sent; to send: wandb sync --sync-all, in the folder of its runs",
        "page: index.html",
    ]
    (folder / "logged.json").write_text('["wandb default/nonmember online an-id"]')
    tell_of_wandb([folder])
    assert "W&B" not in capsys.readouterr().out


def test_table_of_nothing(nonmember, tmp_path):
    assert "There is no result.json below nowhere." in in_one_sentence(nonmember("table", "nowhere"), "table")
    (tmp_path / "result.json").write_text("{}")
    assert "is not a result this version can read" in in_one_sentence(nonmember("table", "."), "table")


# -------------------------------------------------------------------------- errors that are not ours


def test_full_error_shows_the_traceback(nonmember, monkeypatch):
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    with pytest.raises(ValueError, match="prism needs a target model"):
        nonmember("audit", "method=prism")


def test_a_bug_is_never_told_as_a_mistake_of_the_user(nonmember, monkeypatch):
    def broken(*_):
        raise AssertionError("ours")

    monkeypatch.setattr("nonmember.cli.audit.run_cell", broken)
    with pytest.raises(AssertionError, match="ours"):
        nonmember("audit")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status", "name"), [(2, 130, "Ctrl-C"), (15, 143, "SIGTERM")])
def test_interrupted(nonmember, monkeypatch, tmp_path, number, status, name):
    """In the second audit of three."""
    handlers, begun = [signal.getsignal(item) for item in (2, 15)], []

    def interrupt(*_):
        begun.append(1)
        if len(begun) == 1:
            raise ValueError("a failure is no end")
        os.kill(os.getpid(), number)

    monkeypatch.setattr("nonmember.cli.audit.run_cell", interrupt)
    said = nonmember("audit", "-m", "seed=1,2,3", "method.alpha=0.01", "name=three")
    assert (said.status, len(begun)) == (status, 2)
    assert said.err == (
        f"nonmember: interrupted ({name}); everything finished before is kept, start the same command again to "
        "continue.\n"
    )
    assert len(list(tmp_path.glob("outputs/audits/three/*/error.json"))) == 1
    assert "failed  seed=1: a failure is no end" in nonmember("table", "outputs/audits/three").out
    assert [signal.getsignal(item) for item in (2, 15)] == handlers


@pytest.mark.parametrize("status", [0, 1, 2, 130, 143, 141])
def test_the_status_goes_out_and_after_an_interruption_at_once(monkeypatch, status):
    """Where nobody reads any more, what is left to print is not printed."""

    def end(status):
        raise SystemExit(status)

    at_once, flushed = [], []
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # which the command sets
    monkeypatch.setattr(cli, "run", lambda arguments: status)
    monkeypatch.setattr(os, "_exit", lambda status: at_once.append(status) or end(status))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(flush=lambda: flushed.append("out")))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == status
    assert at_once == ([status] if status > 2 else [])
    assert flushed == (["out"] if status in (130, 143) else [])


def test_further_processes_of_a_run_end_with_the_one_that_started_them(nonmember, monkeypatch):
    watched = []
    monkeypatch.setenv("SLURM_PROCID", "1")
    monkeypatch.setenv("NONMEMBER_COMMAND", "list")
    monkeypatch.setattr(cli, "watch_parent", lambda: watched.append(1))
    assert nonmember("modls").status == 1
    assert watched == [1]


@pytest.mark.slow
def test_variables_of_another_job_are_no_group(nonmember, ask, monkeypatch):
    """Else the command would wait for a first process that is not there."""
    monkeypatch.setattr(cli, "watch_parent", lambda: None)
    monkeypatch.delenv("NONMEMBER_COMMAND", raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("RANK", "SLURM_PROCID", "LOCAL_RANK"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            said = nonmember(*ask())
            assert (said.status, said.err.count("\n")) == (1, 1)
            assert "This run has one process (trainer.make_trainer.devices=1)" in said.err
            assert f"the environment says {name}=1 WORLD_SIZE=2" in said.err
            assert f"unset {name} WORLD_SIZE" in said.err
    monkeypatch.setenv("SLURM_NTASKS", "2")
    monkeypatch.setenv("SLURM_JOB_NAME", "mine")
    assert "unset SLURM_NTASKS where it is left over" in nonmember(*ask()).err


@pytest.mark.slow
def test_the_script_itself(tmp_path):
    """As installed: arguments and exit status go through, and the traceback on request. By a command that imports
    little; an audit's mistakes in a new process: test_own_world.py."""

    def call(**environment):
        return subprocess.run(
            [sys.executable, "-m", "nonmember.cli", "list", "modls"],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
        )

    plain, traced = call(), call(HYDRA_FULL_ERROR="1")
    assert plain.returncode == traced.returncode == 1
    assert plain.stderr.startswith("nonmember list: There is no list of modls; did you mean models?")
    assert plain.stderr.count("\n") == 1
    assert "Traceback (most recent call last)" in traced.stderr
