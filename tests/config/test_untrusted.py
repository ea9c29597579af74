"""Somebody else's config describes an audit, and nothing around it: whatever it says, and wherever it says it."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path

import hydra
import pytest
import yaml
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import setup_globals
from omegaconf import OmegaConf

from nonmember.audits.question import Audit
from nonmember.config.choices import config_directory
from nonmember.config.compose import explained
from nonmember.config.roots import checked, register
from nonmember.config.safety import check_hydra, instantiate
from nonmember.config.untrusted import MAX_CELLS, check_code, check_file, check_params
from nonmember.corpora import Jsonl
from nonmember.corpora.sources.hub import Hub
from nonmember.methods import RankAgreement
from nonmember.models import Pretrained
from nonmember.models.kinds.scratch import Scratch, TrainedTokenizer
from nonmember.scores import Loss

FILE = Path("theirs.yaml")
# What a file says -> the key that is refused.
REFUSED = {
    "target: {trust_remote_code: true}": "target.trust_remote_code",
    "target: {trust_remote_code: 'false'}": "target.trust_remote_code",
    "target: {trust_remote_code: '${seed}'}": "target.trust_remote_code",
    "method: {models: [{base: {trust_remote_code: 1}}]}": "method.models.base.trust_remote_code",
    "grid: {target.trust_remote_code: 'true,false'}": "grid.target.trust_remote_code",
    "method: {given: {dose: {target.trust_remote_code: true}}}": "method.given.dose.target.trust_remote_code",
    "target: {url: 'http://evil/v1'}": "target.url",
    "target: {key_variable: AWS_SECRET_ACCESS_KEY}": "target.key_variable",
    "target: {extra_headers: {X-Id: 'env:AWS_SECRET_ACCESS_KEY'}}": "target.extra_headers.X-Id",
    "target: {extra_query: {id: '${a}nv:AWS_SECRET_ACCESS_KEY'}}": "target.extra_query.id",
    "name: env:HOME": "name",
    "grid: {+target.extra_query.id: 'env:A,env:B'}": "grid.+target.extra_query.id",
    "engine: {address: 'ray://evil:10001'}": "engine.address",
    "logger: {wandb: {mode: online}}": "logger.wandb.mode",
    "logger: {wandb: {mode: '${name}'}}": "logger.wandb.mode",
    "logger: {tensorboard: {make_logger: {save_dir: /home/me}}}": "logger.tensorboard.make_logger.save_dir",
    "logger: {mine: {make_logger: {version: ../../home}}}": "logger.mine.make_logger.version",
    "trainer: {callbacks: {mine: {filename: ../../x}}}": "trainer.callbacks.mine.filename",
    "callbacks: {model_checkpoint: {dirpath: /home/me}}": "callbacks.model_checkpoint.dirpath",
    "logger: {wandb: {log_text: true}}": "logger.wandb.log_text",
    "logger: {wandb: {directory: /home/me}}": "logger.wandb.directory",
    "page_text: true": "page_text",
    "truth: infinigram": "truth",  # text of the documents would be sent
    "truth: '${name}'": "truth",
    "trainer: {make_trainer: {default_root_dir: /home/me}}": "trainer.make_trainer.default_root_dir",
    "trainer: {make_trainer: {profiler: pytorch}}": "trainer.make_trainer.profiler",
    "outputs: /home/me": "outputs",
    "store: {a: b}": "store.a",
    "export: /home/me/.local": "export",
    "folder: /home/me": "folder",
    "hydra: '${evil}'": "hydra",
    "hydra: null": "hydra",
    "hydra.run: {dir: x}": "hydra.run.dir",
    "hydra: {run: {dir: /home/me}}": "hydra.run.dir",
    "hydra: {sweep: {subdir: ../..}}": "hydra.sweep.subdir",
    "hydra: {output_subdir: ../x}": "hydra.output_subdir",
    "hydra: {runtime: {output_dir: /home/me}}": "hydra.runtime.output_dir",
    "hydra: {overrides: {hydra: [hydra.launcher.setup=x]}}": "hydra.overrides.hydra",
    "hydra: {searchpath: ['pkg://antigravity']}": "hydra.searchpath",
    "hydra: {job: {name: .bashrc}}": "hydra.job.name",
    "hydra: {job: {chdir: true}}": "hydra.job.chdir",
    "hydra: {job: {env_set: {LD_PRELOAD: x}}}": "hydra.job.env_set.LD_PRELOAD",
    "hydra: {job: {env_copy: [HOME]}}": "hydra.job.env_copy",
    "hydra: {job_logging: {handlers: {x: {filename: /home/me/.bashrc}}}}": "hydra.job_logging.handlers.x.filename",
    "hydra: {job_logging: {formatters: {simple: {format: 'rm -r x'}}}}": "hydra.job_logging.formatters.simple.format",
    "hydra: {hydra_logging: {filters: {x: {'()': os.system}}}}": "hydra.hydra_logging.filters.x.()",
    "hydra: {help: {template: x}}": "hydra.help.template",
    "hydra: {verbose: true}": "hydra.verbose",
    "hydra: {sweeper: {_target_: x.Sweeper}}": "hydra.sweeper._target_",
    "hydra: {sweeper: {max_batch_size: -1}}": "hydra.sweeper.max_batch_size",
    "hydra: {launcher: null}": "hydra.launcher",
    "hydra: {launcher: {_target_: x.Launcher}}": "hydra.launcher._target_",
    "hydra: {launcher: {setup: [rm -r x]}}": "hydra.launcher.setup",
    "hydra: {launcher: {python: ./x}}": "hydra.launcher.python",
    "hydra: {launcher: {srun_args: [x]}}": "hydra.launcher.srun_args",
    "hydra: {launcher: {additional_parameters: {output: x}}}": "hydra.launcher.additional_parameters.output",
    "hydra: {launcher: {submitit_folder: /home/me}}": "hydra.launcher.submitit_folder",
    "hydra: {launcher: {pre_dispatch: 9**9**9}}": "hydra.launcher.pre_dispatch",
    "hydra: {launcher: {ray: {init: {address: evil}}}}": "hydra.launcher.ray.init.address",
}
ALLOWED = (
    "name: mine",
    "target: {path: some/model, trust_remote_code: false, url: null}",
    "logger: {wandb: {mode: offline, log_text: false, entity: my-team}}",
    "method: {alpha: 0.1}\ndata: {path: [a.jsonl], id_field: url}",
    "hydra: {}",
    "hydra: {mode: MULTIRUN, sweeper: {params: {seed: '1,2'}}, launcher: {n_jobs: 2, partition: gpu, timeout_min: 5}}",
)


@pytest.mark.parametrize("text", REFUSED)
def test_what_only_the_command_line_may_say(text):
    with pytest.raises(ValueError) as error:
        check_file(yaml.safe_load(text), FILE)
    assert str(error.value).startswith(f"theirs.yaml sets {REFUSED[text]}, which only the command line may")


@pytest.mark.parametrize("text", ALLOWED)
def test_what_a_file_may_say(text):
    check_file(yaml.safe_load(text), FILE)


# Where Hydra takes files from, and where it puts what they say. `x` is the primary config.
MAIN = "defaults: [audit, {}, _self_]\n"
PLACES = {
    "a group": ({"x": MAIN.format("override model@target: evil"), "model/evil": "trust_remote_code: true"}, "target"),
    "a package": ({"x": MAIN.format("evil@hydra.job_logging"), "evil": "root: {level: x}"}, "hydra.job_logging"),
    "a header": ({"x": MAIN.format("evil"), "evil": "# @package hydra.run\ndir: x"}, "hydra.run.dir"),
    "the top": ({"x": MAIN.format("evil@_global_"), "evil": "outputs: x"}, "outputs"),
    "Hydra's group": (
        {"x": MAIN.format("override hydra/launcher: evil"), "hydra/launcher/evil": "setup: [x]"},
        "hydra.launcher.setup",
    ),
    "a folder above": ({"x": MAIN.format("../theirs/evil"), "evil": "hydra: {verbose: true}"}, "hydra.verbose"),
    "an experiment": (
        {"x": MAIN.format("override experiment: evil"), "experiment/evil": "# @package _global_\npage_text: true"},
        "page_text",
    ),
    "its search path": ({"x": MAIN.format("hydra/config") + "hydra: {searchpath: ['pkg://antigravity']}"}, "hydra.sea"),
}


def compose(folder: Path, **files: str) -> None:
    for file, text in files.items():
        path = folder / "theirs" / f"{file}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    register()
    GlobalHydra.instance().clear()
    with explained(), checked(), initialize_config_dir(str(folder / "theirs"), version_base=None):
        hydra.compose("x", [f"hydra.searchpath=[file://{config_directory()}]"])


@pytest.mark.parametrize("place", PLACES)
def test_wherever_a_file_is_put(place, tmp_path):
    files, key = PLACES[place]
    with pytest.raises(ValueError, match=rf"theirs/\S+\.yaml sets {key}\S*, which only the command line may"):
        compose(tmp_path, **files)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1", r"x\.yaml, line \d cannot be read as YAML"),
        ("name: a\nname: b", r"x\.yaml, line 2 cannot be read as YAML: found duplicate key name"),
        ("[1]", r"x\.yaml must hold keys with values"),
        ("? null\n: 1", r"x\.yaml cannot be read as YAML: Incompatible key type"),
        ("defaults: [x, _self_]", "A config leads back to itself"),
        (MAIN.format("nosuch"), "There is no sweep nosuch"),
    ],
)
def test_a_file_that_cannot_be_read(text, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        compose(tmp_path, x=text)


def test_no_text_becomes_a_part_of_a_config():
    register()
    for value in (
        "${oc.create:{a: 1}}",
        "${oc.decode:'{a: 1}'}",
        "${oc.select:b,{a:1}}",
        "${oc.env:NONMEMBER_X,{a:1}}",
    ):
        with pytest.raises(Exception, match=r"a text must not become|must have a plain value"):
            _ = OmegaConf.create({"x": value}).x
    assert OmegaConf.create({"x": "${oc.select:b,3}", "y": "${oc.select:x}"}).y == 3


def test_arguments_of_our_classes_have_names():
    """Else the sixth of a model would be its remote code."""
    node = {"_target_": "nonmember.models.Pretrained", "_args_": ["x", None, "float32", None, True]}
    with pytest.raises(ValueError, match=r"target\._args_ must be left out"):
        instantiate(OmegaConf.create({"target": node}).target)


def test_no_code_by_way_of_an_architecture_or_an_address():
    source = {"name": None, "split": "train", "revision": "abc", "text_field": "text", "id_field": None}
    for path, files in (("https://evil/x", None), ("a/b", "x::https://evil/y"), ("a/b", ["x", "s3://evil/y"])):
        with pytest.raises(ValueError, match="Hub reads data sets of the hub by their names; got the address"):
            Hub(path=path, data_files=files, **source)
    tokenizer = TrainedTokenizer(Jsonl("a", "id", "text"), 300)
    for name in ("auto_map", "attn_implementation", "_attn_implementation", "quantization_config"):
        with pytest.raises(ValueError, match=f"got {name}, which loads code"):
            Scratch("gpt_neox", {"hidden_size": 8, name: "evil/kernel"}, tokenizer, 1)


def test_a_model_is_a_model():
    """And neither another spec nor what would make one."""
    jsonl = Jsonl("a", "id", "text")
    for other in (jsonl, functools.partial(Pretrained, "x")):
        with pytest.raises(ValueError, match="target must be a model or null"):
            Audit(other, None, jsonl, RankAgreement(Loss(), "spearman", 100, 0.05, max_tokens=64), 1, "documents")


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"target.trust_remote_code": "true,false"}, "target.trust_remote_code"),
        ({"+target": "{trust_remote_code:true},{path:x}"}, "target.trust_remote_code"),
        ({"target": "choice({base:{trust_remote_code:true}})"}, "target.base.trust_remote_code"),
        ({"++outputs": "/home/me"}, "outputs"),
        ({"logger.wandb.mode": "online"}, "logger.wandb.mode"),
        ({"hydra/launcher": "joblib"}, "may not change Hydra"),
        ({"~hydra.callbacks": "x"}, "may not change Hydra"),
        ({"seed": "range(1,10000000000)"}, "at most 100,000 cells"),
        ({"seed": "range(1,1000)", "name": "range(1,1000)"}, "at most 100,000 cells"),
    ],
)
def test_the_grid_of_a_sweep(params, said):
    assert MAX_CELLS == 100_000
    check_params({"seed": "1,2", "data.domain": "choice(a,b)", "k": "[1,2],[3]"})
    with pytest.raises(ValueError, match=said):
        check_params(params)


CONTROL = ("\n", "\r", "\x00", "\x0b", "\x1b", "\x7f", "\x85", "\u2028", "\u2029")
LAUNCHER = {"_target_": "hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher"}


@pytest.mark.parametrize("sign", CONTROL)
def test_no_value_of_a_launcher_begins_a_line_of_its_script(sign):
    value = f"a{sign}touch x"
    names = ("comment", "partition", "account", "qos", "constraint", "exclude", "gres", "name")
    changes = [{name: value} for name in names]
    changes += [{"additional_parameters": {"mail-user": value}}, {"additional_parameters": {value: 1}}]
    changes += [{"srun_args": ["x", value]}, {"comment": "${name}"}, {"submitit_folder": "${name}/%j"}]
    hydra = {"sweeper": {}, "callbacks": {}, "job_logging": None, "hydra_logging": None}
    check_hydra(OmegaConf.create({"name": "x", "hydra": {**hydra, "launcher": {**LAUNCHER, "comment": "a 'b' $c; d"}}}))
    for change in changes:
        with pytest.raises(ValueError, match="must have no line break or other control character"):
            check_hydra(OmegaConf.create({"name": value, "hydra": {**hydra, "launcher": {**LAUNCHER, **change}}}))


@pytest.mark.parametrize("hidden", ["${hydra:job.config_name}", "${later}"])
def test_what_is_known_only_later_is_refused(hidden, monkeypatch):
    """The name of a file, say, which is the stranger's too."""
    setup_globals()
    monkeypatch.setattr(HydraConfig.instance(), "cfg", None)  # as before a run
    hydra = {"sweeper": {}, "callbacks": {}, "job_logging": None, "hydra_logging": None, "launcher": LAUNCHER}
    params = {"sweeper": {"params": {"target": f"{{trust_{hidden}:true}}"}}}
    for change in (params, {"launcher": {**LAUNCHER, "comment": hidden}}):
        config = OmegaConf.create({"later": "${hydra:job.name}", "hydra": {**hydra, **change}})
        with pytest.raises(ValueError, match="must be a value itself"):
            check_hydra(config)


def test_code_of_models_in_what_is_bundled(nonmember, tmp_path):
    folder = tmp_path / "audit"
    folder.mkdir()
    (folder / "result.json").write_text("{}")
    (folder / "config.json").write_text('{"method": {"base": {"trust_remote_code": true}}}')
    said = nonmember("bundle", folder, "--new-key", "key", "--out", "mine.zip")
    assert said.status == 1
    assert "method.base.trust_remote_code=True: code that comes with a model would run" in said.err
    assert "--trust-remote-code" in said.err
    check_code({"target": {"trust_remote_code": False}}, FILE, "")


@pytest.mark.parametrize(
    ("target", "allowed"), [("optuna.samplers.TPESampler", True), ("optuna.samplers.os.system", False)]
)
def test_samplers_of_optuna_are_known_by_name(target, allowed):
    empty: dict[str, dict[str, str]] = {name: {} for name in ("launcher", "callbacks", "job_logging", "hydra_logging")}
    config = OmegaConf.create({"hydra": {"sweeper": {"sampler": {"_target_": target}}, **empty}})
    with contextlib.nullcontext() if allowed else pytest.raises(ValueError, match="is not run"):
        check_hydra(config)
