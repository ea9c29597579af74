"""The verifier: what it imports, how fast it starts, and that its numbers are right where others are known."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from made_up_audits import key
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner

import nonmember
import nonmember_verify
from nonmember.evidence.signing import Key
from nonmember.methods.dose import dose as meter
from nonmember.stats import bootstrap
from nonmember_verify import cli, commitments, envelope, resampling
from nonmember_verify.known import CONCLUSIONS, claim
from nonmember_verify.methods import dose
from nonmember_verify.methods.dose import Control, Curve, Reading
from nonmember_verify.report import Line, agree, is_below

SOURCE = Path(nonmember_verify.__file__).parent
FOUR = {"cryptography", "numpy", "pyarrow", "scipy"}


def test_it_needs_four_libraries_and_nothing_of_the_program_that_it_checks():
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {name.partition(".")[0] for name in names}
    assert found - set(sys.stdlib_module_names) - {"__future__"} == FOUR | {"nonmember_verify"}
    alone = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    assert {item.partition(">")[0] for item in alone["dependencies"]} == FOUR
    assert alone["version"] == nonmember_verify.__version__ == nonmember.__version__


def test_it_starts_at_once():
    code = "import sys, nonmember_verify.cli as c\ntry: c.main(['-h'])\nexcept SystemExit: pass\nprint(*sys.modules)"
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert time.monotonic() - started < 5, "a second, on a machine that does nothing else"
    assert not FOUR & set(done.stdout.split())


def verified(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command, env = [sys.executable, "-m", "nonmember_verify", *words], {**os.environ, **environment}
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)


def test_its_answer_is_its_exit_status(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"nothing")
    done = verified(tmp_path, "x.zip", "--json")
    assert done.returncode == 1
    assert [line["kind"] for line in json.loads(done.stdout)] == ["FAILED"]


def test_a_name_that_the_terminal_cannot_show_ends_nothing(tmp_path):
    done = verified(tmp_path, "名", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such file or directory: '\\u540d'" in done.stderr


def test_a_name_makes_no_line_of_its_own():
    line = str(Line("ok", f"cell{' ' * 200}\nok           verdict", "as the numbers say."))
    assert line == "ok           cell ok verdict: as the numbers say."


def test_a_p_that_is_alpha_is_not_below_it():
    """And one that another way rounds otherwise is."""
    assert not is_below(0.05, 0.05 - 1e-10, 0.05)
    assert is_below(0.05, np.nextafter(0.05, 0), 0.05)


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_the_bootstrap_is_the_audits_to_the_last_digit(metric):
    rng = np.random.default_rng(3)
    target = np.round(rng.normal(size=37), 1)  # with ties
    others = [np.round(target + rng.normal(size=37), 1) for _ in range(2)]
    found = resampling.resampled(others, target, metric, np.random.default_rng([5, 0]), 150)
    settings = {"metric": metric, "num_resamples": 150, "alpha": 0.05, "margin": 0.0}
    expected = bootstrap.difference_of_dependent_correlations(
        others[0], target, others[1], **settings, rng=np.random.default_rng([5, 0])
    )
    np.testing.assert_allclose(found[0] - found[1], expected.distribution, rtol=0, atol=1e-15)
    assert (1 + resampling.num_reached(found[0] - found[1], 0.0)) / 151 == expected.p_value
    assert resampling.interval_of(found[0] - found[1], 0.05) == pytest.approx(
        (expected.ci_low, expected.ci_high), abs=1e-15
    )


def test_a_reading_has_the_audits_words():
    for low, high, estimate, words in (
        (0.0, None, 3.0, "any number of readings"),
        (0.0, 0.6, 0.2, "fewer than 0.6 readings"),
        (8.0, None, 8.0, "8 readings or more"),
        (2.2, 4.1, 3.0, "about 3 readings (2.2 to 4.1)"),
        (0.4, None, 1.02, "about 1 reading (0.4 or more)"),
        (11.0, 20.4, 16.4, "about 16 readings (11 to 20)"),
    ):
        heaviest = 8.0 if estimate <= 8 else 32.0
        reading = Reading(estimate, low, high, None, 0.03, 0.2, 0.2, 0.5)
        assert dose.readings_of(reading, heaviest) == words == meter.readings_of(reading, heaviest)
        for decision in CONCLUSIONS:
            for exclude, exceed in ((1, 0.0), (2.0, 0.25)):
                told = (reading, exclude, exceed, heaviest)
                assert claim("dose", decision, **dose.words_of(*told)) == meter.claim_of(decision, *told)


def test_controls_that_make_no_curve_are_refused():
    item = np.array([0.1, 0.2])
    with pytest.raises(ValueError, match="too few controls"):
        Curve([Control(0.0, 0.0, item), Control(2.0, 0.0, item + 1)], None)


def test_commitments_hide_and_bind():
    assert commitments.root([]) == hashlib.sha256(b"").hexdigest()
    secret = bytes(32)
    item = commitments.commitment(secret, "a", "text")
    changed = [(secret, "a", "texu"), (secret, "b", "text"), (b"\1" * 32, "a", "text"), (secret, "at", "ext")]
    assert len({item, *(commitments.commitment(*other) for other in changed)}) == 5
    leaves = [commitments.commitment(secret, str(number), "x") for number in range(5)]
    node = lambda a, b: hashlib.sha256(b"\1" + a + b).digest()  # noqa: E731
    a, b, c, d, e = map(bytes.fromhex, leaves)
    assert commitments.root(leaves) == node(node(node(a, b), node(c, d)), e).hex()
    assert commitments.root(leaves[::-1]) != commitments.root(leaves)


def test_envelopes_are_the_ecosystems_own(tmp_path):
    """What we sign securesystemslib verifies, and what it signs we read."""
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    ours = Envelope.from_dict(json.loads(key().sign("urn:x", [], {"a": 1})))
    assert ours.verify([CryptoSigner(private).public_key], 1)
    line = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    statement = {
        "_type": envelope.STATEMENT_TYPE,
        "predicateType": "urn:y",
        "subject": [],
        "predicate": {"signer": {"public_key": line.decode()}},
    }
    theirs = Envelope(json.dumps(statement).encode(), envelope.PAYLOAD_TYPE, {})
    theirs.sign(CryptoSigner(private))
    found = envelope.opened(json.dumps(theirs.to_dict()).encode(), "urn:y", "it")
    assert found.statement == statement
    assert (
        found.fingerprint
        == key().fingerprint
        == "SHA256:" + base64.b64encode(hashlib.sha256(base64.b64decode(line.split()[1])).digest()).decode().rstrip("=")
    )
    with pytest.raises(ValueError, match="must state a urn:z; got 'urn:y'"):
        envelope.opened(json.dumps(theirs.to_dict()).encode(), "urn:z", "it")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["OpenSSH", "PKCS8"])
def test_keys_of_both_forms(form, tmp_path, monkeypatch):
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    forms = {"open": serialization.NoEncryption(), "closed": serialization.BestAvailableEncryption(b"x")}
    for name, encryption in forms.items():
        content = private.private_bytes(
            serialization.Encoding.PEM, getattr(serialization.PrivateFormat, form), encryption
        )
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr("getpass.getpass", lambda prompt: "x")
    assert Key.load(tmp_path / "open").fingerprint == Key.load(tmp_path / "closed").fingerprint == key().fingerprint
    made = Key.new(tmp_path / "new")
    assert not (tmp_path / "new").exists(), "nothing before it is needed"
    made.save()
    assert Key.load(tmp_path / "new").fingerprint == made.fingerprint
    assert envelope.fingerprint(envelope.public_key((tmp_path / "new.pub").read_bytes())) == made.fingerprint
    with pytest.raises(ValueError, match="already exists"):
        Key.new(tmp_path / "new")
    (tmp_path / "none").write_bytes(b"no key")
    with pytest.raises(ValueError, match="must be a private Ed25519 key in OpenSSH or PEM form"):
        Key.load(tmp_path / "none")


def test_what_is_no_key_of_ours_is_refused():
    rsa = generate_private_key(65537, 1024).public_key()
    content = rsa.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    for written, told in ((content, "; got a RSAPublicKey"), (b"no key", "in PEM or SSH form")):
        with pytest.raises(ValueError, match=f"must be a public Ed25519 key ?{told}"):
            envelope.public_key(written)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--documents", "documents.jsonl"], "Line 2 of documents.jsonl must be a JSON object with id and text"),
        (["--secret", "documents.jsonl"], "documents.jsonl does not hold the secret of commitments"),
        (["--signer", "documents.jsonl"], "must be a public Ed25519 key"),
        (["--documents", "nowhere.jsonl"], "No such file or directory: 'nowhere.jsonl'"),
        (["--model", "nowhere"], "--model must be the folder of a model; there is none at nowhere"),
    ],
)
def test_what_cannot_be_used_ends_with_a_sentence_and_status_2(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("documents.jsonl").write_text('{"id": 1, "text": "one"}\n{"id": 2}\n')
    Path("bundle.zip").write_bytes(b"nothing")
    try:
        status = cli.main(["bundle.zip", *arguments])
    except SystemExit as end:
        status = end.code
    assert (status, capsys.readouterr().err.count(said)) == (2, 1)


def test_numbers_agree_or_they_do_not():
    assert agree(None, float("nan"))
    assert agree([1.0, None], [1.0 + 1e-12, float("nan")])
    assert agree({"a": 1}, {"a": 1.0})
    for stated, found in ((None, 1.0), (1.0, None), (1.0, 1.1), (True, 1.0), ("a", 1), ([1], [1, 2]), ({"a": 1}, {})):
        assert not agree(stated, found)
    assert not agree(0.5, np.nextafter(0.5, 1), tolerance=0.0)
