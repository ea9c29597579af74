"""A config chooses among our own classes: whoever wrote it, it runs nothing else and reads no secrets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from omegaconf import OmegaConf

from nonmember.config.roots import register
from nonmember.config.safety import ALLOW_VARIABLE, instantiate
from nonmember.corpora import Documents


@dataclass
class Listed:
    path: list[str] = field(default_factory=list)


CORPUS = {"_target_": "nonmember.corpora.Documents", "path": ["a.jsonl"], "id_field": "id", "text_field": "text"}
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
    "nonmember.corpora.Documents.build": {"_args_": [None]},
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
    monkeypatch.setattr(Documents, "__post_init__", lambda self: built.append(self), raising=False)
    with pytest.raises(ValueError, match="list\\[1\\]"):
        instantiate(OmegaConf.create({"list": [CORPUS, {"_target_": "builtins.print"}]}).list)
    assert not built


def test_what_is_allowed_is_built():
    assert instantiate(None) is None
    assert instantiate({"all": [CORPUS, 1, None]}) == {"all": [Documents(["a.jsonl"], "text", "id"), 1, None]}
    assert instantiate(CORPUS | {"_partial_": True})(domain="law") == Documents(["a.jsonl"], "text", "id", domain="law")
    with pytest.raises(ValueError, match="must be a mapping with a `_target_`; got '/some/folder'"):
        instantiate("/some/folder")
    with pytest.raises(ValueError, match="must name a class; 'nonmember"):
        instantiate(CORPUS | {"_target_": "nonmember.corpora.Documentz"})
    with pytest.raises(ValueError, match="must name a class or a function; got 'nonmember"):
        instantiate(CORPUS | {"_target_": "nonmember.corpora"})


def test_optimizers_and_schedules_of_torch_are_built():
    node = {"_target_": "torch.optim.NAdam", "_partial_": True, "decoupled_weight_decay": True}
    assert instantiate(node).keywords == {"decoupled_weight_decay": True}
    assert instantiate({"_target_": "torch.optim.lr_scheduler.StepLR", "_partial_": True}).func.__name__ == "StepLR"


def test_modules_that_the_user_names_are_allowed_and_what_they_import_is_not(monkeypatch):
    monkeypatch.setenv(ALLOW_VARIABLE, "fractions, json.decoder., my_package")
    assert instantiate({"_target_": "fractions.Fraction", "numerator": 1, "denominator": 2}) == 0.5
    assert instantiate({"_target_": "json.decoder.JSONDecoder"}) is not None
    for target in ("fractions.math.sqrt", "json.loads", "fractions_of.Fraction"):
        with pytest.raises(ValueError, match="must name a settings class"):
            instantiate({"_target_": target})
    with pytest.raises(ValueError, match=r"my_package.* put the folder that has it into PYTHONPATH"):
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
    for name in ("secret", "default"):
        with pytest.raises(Exception, match="got 'SOME_SECRET', which no config may read") as error:
            config[name]
        assert "sk-secret" not in str(error.value)
    with pytest.raises(Exception, match="NONMEMBER_NOT_SET is not set; set it, or give the value itself"):
        _ = config.forgotten


@pytest.mark.parametrize("url", ["https://me:hunter2@host/v1", "http://hunter2@host/v1", "http://host/v1?key=hunter2"])
@pytest.mark.parametrize("many", [(), ("-m", "seed=1,2", "launcher=joblib")])
def test_a_secret_in_an_address_is_written_nowhere(url, many, nonmember, tmp_path):
    given = ("model@target=endpoint", f"target.url='{url}'", "target.model=m", "target.form=chat")
    said = nonmember("audit", *many, *given, "world=micro", "method=decop")
    assert said.status == 1
    assert "must be an address without user, password or query" in said.err
    assert "hunter2" not in said.err + said.out
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("defaults: [audit, _self_]\ntarget: {trust_remote_code: true}", ()),
        ("defaults: [sweep, _self_]\ngrid: {target.trust_remote_code: 'true,false'}", ("-m", "world=own")),
    ],
)
def test_a_models_own_code_runs_only_where_the_command_line_says_so(content, words, nonmember, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "own_code.yaml").write_text(content)
    given = ("--config-dir", str(tmp_path / "mine"), "--config-name", "own_code", "target.path=x", "data.path=y")
    said = nonmember("audit", *words, *given)
    assert said.status == 1
    assert "say so on the command line, not in a file" in said.err
