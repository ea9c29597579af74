"""A config chooses among our own classes: whoever wrote it, it runs nothing else and reads no secrets."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.errors import MissingConfigException
from omegaconf import OmegaConf, ValidationError

from nonmember.config.explain import explain, is_for_the_user
from nonmember.config.roots import register
from nonmember.config.safety import ALLOW_VARIABLE, LEFT_OUT, check_hydra, instantiate
from nonmember.corpora import Jsonl


@dataclass
class Listed:
    path: list[str] = field(default_factory=list)


CORPUS = {"_target_": "nonmember.corpora.Jsonl", "path": ["a.jsonl"], "id_field": "id", "text_field": "text"}
ATTACKS = {
    "pandas.read_pickle": {"filepath_or_buffer": "FILE"},
    "joblib.load": {"filename": "FILE"},
    "torch.load": {"f": "FILE", "weights_only": False},
    "torch.hub.load": {"repo_or_dir": "FOLDER", "model": "m", "source": "local"},
    "numpy.load": {"file": "FILE", "allow_pickle": True},
    "pathlib.Path.write_text": {"_args_": ["FILE", "x"]},
    "shutil.copy": {"src": "FILE", "dst": "FILE"},
    "transformers.AutoModel.from_pretrained": {"pretrained_model_name_or_path": "x", "trust_remote_code": True},
    # what stands for others, and what our modules have merely imported or use themselves
    "hydra.utils.get_method": {"path": "os.system"},
    "hydra.utils.get_object": {"path": "os.system"},
    "hydra.utils.get_class": {"path": "subprocess.Popen"},
    "hydra.utils.instantiate": {"config": {}},
    "builtins.exec": {"_args_": ["1"]},
    "nonmember.artifacts.store.os.system": {"command": "true"},
    "nonmember.artifacts.store.shutil.copy": {"src": "FILE", "dst": "FILE"},
    "nonmember.artifacts.store.write_text_atomically": {"path": "FILE", "text": "x"},
    "nonmember.cli.sync.Ledger": {"path": "FILE", "destination": "x"},
    "nonmember.corpora.Jsonl.build": {"_args_": [None]},
    "nonmembers.Thing": {},
    "lightning.Trainer.fit": {"_args_": [None]},
    "torch.optim.sgd.sgd": {"params": []},
    "torch.optim.lr_scheduler.warnings.warn": {"message": "x"},
    "torch.optim.lr_scheduler.Counter": {},
}


@pytest.fixture(autouse=True)
def resolvers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ALLOW_VARIABLE, raising=False)
    register()


@pytest.mark.parametrize("target", ATTACKS)
def test_no_other_target_is_run_wherever_it_stands(target):
    evil = {"_target_": target, **ATTACKS[target]}
    places: dict[str, Any] = {
        "data": evil,
        "data.path": CORPUS | {"path": evil},
        "data.path[1]": CORPUS | {"path": ["a", evil]},
        "data.path.inner": CORPUS | {"path": {"inner": evil | {"_partial_": True}}},
        "data._args_[0]": CORPUS | {"_args_": [evil]},
    }
    for place, node in places.items():
        with pytest.raises(ValueError, match="NONMEMBER_ALLOW_TARGETS=my_package") as error:
            instantiate(OmegaConf.create({"data": node}).data)
        assert str(error.value).startswith(f"{place}._target_ must name a settings class of nonmember; got {target!r}")


def test_interpolations_are_followed_once_and_then_checked():
    config = {"name": "builtins.print", "evil": {"_target_": "${name}"}, "hidden": "\\${evil}"}

    def built(value: str) -> Any:
        return instantiate(OmegaConf.create(config | {"data": CORPUS | {"path": value}}).data)

    with pytest.raises(ValueError, match="class of nonmember; got 'builtins"):
        built("${evil}")
    assert built("${hidden}").path == ("${evil}",)  # a text, and not a node


def test_nothing_is_built_before_all_is_checked(monkeypatch):
    built = []
    monkeypatch.setattr(Jsonl, "__post_init__", lambda self: built.append(self), raising=False)
    with pytest.raises(ValueError, match="list\\[1\\]"):
        instantiate(OmegaConf.create({"list": [CORPUS, {"_target_": "builtins.print"}]}).list)
    assert not built


def test_what_is_allowed_is_built():
    assert instantiate(None) is None
    assert instantiate({"all": [CORPUS, 1, None]}) == {"all": [Jsonl(["a.jsonl"], "id", "text"), 1, None]}
    assert instantiate(CORPUS | {"_partial_": True})(domain="law") == Jsonl(["a.jsonl"], "id", "text", domain="law")
    with pytest.raises(ValueError, match="must be a mapping with a `_target_`; got '/some/folder'"):
        instantiate("/some/folder")
    with pytest.raises(ValueError, match="must name a class; 'nonmember"):
        instantiate(CORPUS | {"_target_": "nonmember.corpora.Jsonn"})
    with pytest.raises(ValueError, match="must name a class or a function; got 'nonmember"):
        instantiate(CORPUS | {"_target_": "nonmember.corpora"})


def test_optimizers_and_schedules_of_torch_are_built():
    node = {"_target_": "torch.optim.NAdam", "_partial_": True, "decoupled_weight_decay": True}
    assert instantiate(node).keywords == {"decoupled_weight_decay": True}
    assert instantiate({"_target_": "torch.optim.lr_scheduler.StepLR", "_partial_": True}).func.__name__ == "StepLR"


def test_modules_that_the_user_names_are_allowed_and_what_they_import_is_not(monkeypatch):
    monkeypatch.setenv(ALLOW_VARIABLE, "fractions, json.decoder., my_package")
    assert instantiate({"_target_": "fractions.Fraction", "_args_": [1, 2]}) == 0.5
    assert instantiate({"_target_": "json.decoder.JSONDecoder"}) is not None
    for target in ("fractions.math.sqrt", "json.loads", "fractions_of.Fraction"):
        with pytest.raises(ValueError, match="must name a settings class"):
            instantiate({"_target_": target, "_args_": [1]})
    with pytest.raises(ValueError, match=r"no module my_package .* put the folder that has it into PYTHONPATH"):
        instantiate({"_target_": "my_package.corpora.Mine"})


def test_the_environment_is_not_read_but_for_our_own_variables(monkeypatch):
    monkeypatch.setenv("SOME_SECRET", "sk-secret")
    monkeypatch.setenv("NONMEMBER_OUTPUTS", "here")
    config = OmegaConf.create(
        {
            "ours": "${oc.env:NONMEMBER_OUTPUTS,outputs}",
            "absent": "${oc.env:NONMEMBER_NOT_SET,else}",
            "null": "${oc.env:NONMEMBER_NOT_SET,null}",
            "secret": "${oc.env:SOME_SECRET}",
            "around": "${oc.decode:'${oc.env:SOME_SECRET}'}",
            "default": "${oc.env:SOME_SECRET,x}",
            "forgotten": "${oc.env:NONMEMBER_NOT_SET}",
            "key": "${oc.env:NONMEMBER_KEY}",
        }
    )
    monkeypatch.setenv("NONMEMBER_KEY", "sk-0123456789abcdef")
    with pytest.raises(Exception, match="holds what looks like a secret, which no config may read") as error:
        _ = config.key
    assert "sk-0123" not in str(error.value)
    assert (config.ours, config.absent, config.null) == ("here", "else", None)
    for name in ("secret", "around", "default"):
        with pytest.raises(Exception, match="got 'SOME_SECRET', which no config may read") as error:
            config[name]
        assert "sk-secret" not in str(error.value)
    with pytest.raises(Exception, match="NONMEMBER_NOT_SET is not set; set it, or give the value itself"):
        _ = config.forgotten


# Hydra's own part -----------------------------------------------------------------------------------------------------

EVIL = {"_target_": "nonmember.artifacts.store.os.system", "command": "true"}
HYDRA = {
    "launcher": {"_target_": "hydra._internal.core_plugins.basic_launcher.BasicLauncher"},
    "sweeper": {"_target_": "hydra._internal.core_plugins.basic_sweeper.BasicSweeper", "params": None},
    "callbacks": {"ours": {"_target_": "nonmember.config.roots.RememberSweepFolder"}},
    "job_logging": {"handlers": {"console": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout"}}},
    "hydra_logging": None,
    "job": {"name": "x", "env_set": {}},
    "overrides": {"hydra": []},
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"callbacks": {"evil": EVIL}}, "hydra.callbacks.evil._target_ must name"),
        ({"callbacks": {"evil": {"_target_": "nonmember.corpora.Jsonl"}}}, "hydra.callbacks.evil._target_ must name"),
        ({"callbacks": {"evil": "${evil}"}}, "hydra.callbacks.evil must be a value itself"),
        ({"callbacks": {"evil": "${oc.create:${hydra.job.name}}"}}, "hydra.callbacks.evil must be a value itself"),
        ({"launcher": {"_target_": "os.system"}}, "hydra.launcher._target_ must name"),
        ({"sweeper": {"_target_": "${name}"}}, "hydra.sweeper._target_ must "),
        ({"sweeper": {"params": {"+hydra.job.env_set.X": 1}}}, "hydra.sweeper.params may not change Hydra"),
        ({"sweeper": {"params": "${evil}"}}, "hydra.sweeper.params must be a value itself"),
        ({"sweeper": {"params": "${grid}"}}, "hydra.sweeper.params._target_ must "),
        ({"job_logging": {"handlers": {"x": {"()": "os.system"}}}}, "hydra.job_logging.handlers.x.() must be one of"),
        ({"job_logging": {"handlers": {"x": {"class": "logging.handlers.SocketHandler"}}}}, "must be one of"),
        (
            {"job_logging": {"handlers": {"console": {"stream": "ext://evil.module"}}}},
            "must be one of ext://sys.stdout",
        ),
        ({"sweeper": {"max_batch_size": -1}}, "hydra.sweeper.max_batch_size must be a whole number of at least 1"),
        ({"launcher": {"n_jobs": 99999999999}}, "hydra.launcher.n_jobs must be a whole number from -1024"),
        ({"launcher": {"timeout_min": 0}}, "hydra.launcher.timeout_min must be a whole number of at least 1"),
        ({"launcher": {"mem_gb": "lots"}}, "hydra.launcher.mem_gb must be a whole number"),
        ({"launcher": None}, "hydra.launcher must be the settings of one; got null"),
        ({"sweeper": None}, "hydra.sweeper must be the settings of one; got null"),
        ({"verbose": 5}, "hydra.verbose must be true, false or loggers' names; got 5"),
    ],
)
def test_hydra_runs_nothing_else_either(change, said):
    config = {"hydra": HYDRA, "evil": EVIL, "grid": EVIL, "name": "os.system"}
    check_hydra(OmegaConf.create(config))
    with pytest.raises(ValueError) as error:
        check_hydra(OmegaConf.merge(OmegaConf.create(config), {"hydra": change}))
    assert said in str(error.value)


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_joblib_would_do_with_a_list_of_cells_is_refused(name):
    """Nothing would come of it. What its own config says is taken."""
    launcher = {"_target_": "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher", **LEFT_OUT}
    config = OmegaConf.create({"hydra": HYDRA | {"launcher": {**launcher, "n_jobs": 2, "verbose": 1}}})
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    check_hydra(config)
    config.hydra.launcher[name] = "bogus"
    with pytest.raises(ValueError, match=f"hydra.launcher.{name} must be left out, .* got 'bogus'"):
        check_hydra(config)


def test_the_defaults_of_joblib_are_those_of_its_plugin():
    plugin = pytest.importorskip("hydra_plugins.hydra_joblib_launcher.config")
    defaults = vars(plugin.JobLibLauncherConf())
    assert {name: default for name, default in defaults.items() if name in LEFT_OUT} == LEFT_OUT
    assert defaults.keys() - LEFT_OUT.keys() == {"_target_", "n_jobs", "verbose"}


def test_what_hydra_itself_asserts_is_one_sentence():
    with pytest.raises(AssertionError) as error:
        BasicSweeper.split_arguments([], 0)
    assert is_for_the_user(error.value)
    assert explain(error.value).startswith("Hydra cannot work with these settings: assert ")


def test_a_missing_sweeper_names_its_package_and_a_list_its_brackets():
    missing = MissingConfigException("not found", "hydra/sweeper/optuna", ["basic"])
    assert explain(missing).endswith("Install Optuna's sweeper: pip install hydra-optuna-sweeper.")
    with pytest.raises(ValidationError) as error:
        OmegaConf.structured(Listed).path = "a.jsonl"
    assert explain(error.value) == "path cannot be that: expected a list; write path=[...]."


def test_what_the_user_says_on_the_command_line_may_start_programs():
    words = {"overrides": {"hydra": ["hydra.launcher.setup=[module load x]"]}, "launcher": {"setup": ["module load x"]}}
    check_hydra(OmegaConf.merge(OmegaConf.create({"hydra": HYDRA}), {"hydra": words}))


def test_a_stranger_s_primary_config(nonmember, tmp_path):
    """The whole way, as `--config-dir` takes it."""
    (tmp_path / "configs").mkdir()
    stranger = tmp_path / "configs" / "stranger.yaml"
    head = "defaults: [audit, _self_]\n"
    copying = "src: FILE, dst: copied}\n"
    marks = {
        f"hydra: {{callbacks: {{x: {{_target_: shutil.copy, {copying}}}}}": "hydra.callbacks.x._target_",
        f"hydra: {{job_logging: {{handlers: {{x: {{'()': shutil.copy, {copying}}}}}}}": "logging.handlers.x.(), which",
        f"data: {{corpus: {{_target_: shutil.copy, {copying}}}": "data.corpus._target_ must name",
        "name: ${oc.env:PATH}\n": "no config may read",
    }
    for text, part in marks.items():
        stranger.write_text(head + text.replace("FILE", str(stranger)))
        said = nonmember("audit", "--config-dir", stranger.parent, "--config-name", "stranger", "world=micro")
        assert (said.status, said.err.count("\n")) == (1, 1), said
        assert part in said.err, said.err
    assert not list(tmp_path.rglob("copied"))
    assert "reads a pickle" in nonmember("audit", "--experimental-rerun", Path("x.pickle")).err
    assert "none can be shortened" in nonmember("audit", "--exp", Path("x.pickle")).err


@pytest.mark.parametrize("url", ["https://me:hunter2@host/v1", "http://hunter2@host/v1", "http://host/v1?key=hunter2"])
@pytest.mark.parametrize("many", [(), ("-m", "seed=1,2", "launcher=joblib")])
def test_a_secret_in_an_address_is_written_nowhere(url, many, nonmember, tmp_path):
    given = ("model@target=endpoint", f"target.url='{url}'", "target.model=m", "target.form=chat")
    said = nonmember("audit", *many, *given, "world=micro", "method=decop")
    assert said.status == 1
    assert "must be an address without user, password or query" in said.err
    assert "hunter2" not in said.err + said.out
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]
