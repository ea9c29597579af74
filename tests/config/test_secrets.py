"""A secret that was put where its variable belongs is refused before anything is written, and repeated nowhere."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

from nonmember.checks import hidden, looks_like_secret, names_a_secret, refuse_secrets
from nonmember.cli import main
from nonmember.endpoints.models import Endpoint
from nonmember.runtime.terminal import LogFormatter

# Made up, in the forms in which services give them out.
LETTERS = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA"
SECRETS = [
    "sk-wrong-0123456789",
    *(f"{start}{LETTERS}" for start in ("sk-proj-", "sk-ant-api03-", "hf_", "ghp_", "github_pat_", "glpat-", "AIza")),
    *(f"{start}{LETTERS}" for start in ("xoxb-", "gsk_", "r8_", "xai-", "nvapi-", "pypi-", "npm_", "wandb_v1_")),
    *(f"{start}{LETTERS}" for start in ("sk_live_", "Bearer ")),
    f"sk-or-v1-{'0a1b' * 16}",
    "AKIAIOSFODNN7EXAMPLE",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{LETTERS}",
    "Basic dXNlcjpwYXNz",
    "-----BEGIN PRIVATE KEY-----",
    f"https://host/v1/{'sk-' + LETTERS}/x",
]
NONE = [
    "",
    "OPENAI_API_KEY",
    "/data/sk-learn-documentation-2024",
    "task-description-of-2024",
    "disk-0123456789abcdef",
    "wiki/sk-20231101",
    "0123456789abcdef" * 4,
    "EleutherAI/pythia-160m",
    "hf_internal_testing_models",
    "max_tokens",
    "Bearer env:KEY",
    "secret_garden_1911_chapter_one",
    "gsk_",
    "local-models-of-this-project-and-others",
    "ghp_x",
    "npm_packages_of_2024_and_their_docs_in_full",
]


@pytest.mark.parametrize("text", SECRETS)
def test_what_looks_like_a_secret(text):
    assert looks_like_secret(text)
    assert LETTERS[:9] not in hidden(f"got '{text}' there")
    with pytest.raises(ValueError, match="holds what looks like a secret") as raised:
        refuse_secrets(["seed=1", f"+target.remark='{text}'"])
    assert text not in str(raised.value)


@pytest.mark.parametrize("text", NONE)
def test_what_does_not(text):
    assert not looks_like_secret(text)
    refuse_secrets([f"data.path={text}", "--key", text, f"--secret={text}"])


def test_names_of_secrets():
    secret = "api_key target.api_key x-api-key Authorization password client_secret apikey Ocp-Apim-Subscription-Key"
    secret += " aws_secret_access_key token hf_token x-functions-key"
    others = "key_variable max_tokens tokenizer stop_token_ids secretary keys api-version mask_token monkey passages"
    assert all(map(names_a_secret, secret.split()))
    assert not any(map(names_a_secret, [*others.split(), "cluster_key"]))


@pytest.mark.parametrize(
    "given",
    [
        "target.key_variable=hunter2secret",
        "+target.api_key=hunter2secret",
        "++target.extra.password=hunter2secret",
        "+target.extra_headers.authorization=hunter2secret",
        "target.url=https://host/sk-hunter2secret-0123456789/v1",
        "method._target_=sk-hunter2secret-0123456789",
        "no_such_key=sk-hunter2secret-0123456789",
        "sk-hunter2secret-0123456789",
    ],
)
@pytest.mark.parametrize("many", [(), ("-m", "launcher=joblib", "seed=1,2")])
def test_a_secret_on_the_command_line_is_written_nowhere(given, many, nonmember, tmp_path):
    model = ("model@target=endpoint", "target.url=http://h/v1", "target.model=m")
    said = nonmember("audit", *many, *model, "world=micro", "method=decop", given)
    assert said.status == 1
    assert said.err.count("\n") == 1
    assert "not repeated here" in said.err
    assert "hunter2" not in said.err + said.out
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]


def test_the_values_of_a_sweep_are_looked_at_one_by_one():
    refuse_secrets(["target.key_variable=KEY_A,KEY_B", "reference.key_variable='choice(A, B)'"])
    with pytest.raises(ValueError, match="must be the name of an environment variable"):
        refuse_secrets(["target.key_variable=KEY_A,hunter2"])


@pytest.mark.parametrize("key", ["key_variable: hunter2secret", "api_key: hunter2secret", "api_key: 20240101"])
def test_a_secret_in_a_file_is_written_nowhere(key, nonmember, tmp_path):
    (tmp_path / "mine.yaml").write_text(f"defaults: [audit, _self_]\ntarget:\n  {key}\n")
    said = nonmember(
        "audit",
        f"--config-dir={tmp_path}",
        "--config-name=mine",
        "model@target=endpoint",
        "target.url=http://h/v1",
        "target.model=m",
        "world=micro",
        "method=decop",
    )
    assert said.status == 1
    assert "hunter2" not in said.err + said.out
    assert "20240101" not in said.err + said.out
    assert not list(tmp_path.glob("outputs/**/.hydra"))


def test_nothing_that_looks_like_one_is_printed_or_logged(capsys):
    secret = f"sk-proj-{LETTERS}"
    record = logging.LogRecord("n", logging.INFO, "", 0, "sent %s", (secret,), None)
    assert secret not in LogFormatter("%(message)s").format(record)
    try:
        raise RuntimeError(json.dumps({"key": secret}))
    except RuntimeError as error:
        main._print_without_secrets(type(error), error, error.__traceback__)
    printed = capsys.readouterr().err
    assert printed.startswith("Traceback")
    assert secret not in printed
    with pytest.raises(ValueError, match="got '\\*\\*\\*'") as raised:
        Endpoint("http://h/v1", "m", secret, "KEY")
    assert secret not in str(raised.value)
    assert sys.excepthook is not main._print_without_secrets, "only the command takes it"


def test_configs_of_this_project_hold_none():
    root = Path(__file__).parents[2]
    for path in [*root.glob("conf/**/*.yaml"), *root.glob("sweeps/*.yaml"), *root.glob("docs/*.md")]:
        assert not looks_like_secret(path.read_text(encoding="utf-8")), path
