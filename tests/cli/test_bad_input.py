"""Bad input gets one sentence (expected, came, what to do), a failing exit, and costs nothing made before.

Everything here goes through the command line, with two-layer models and 40 documents.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from command_line import numbers, only, rows_of, write_rows
from marks import slow

DOCUMENTS = "documents.jsonl"  # those of the sound question


def refused(said, *parts: str) -> str:
    """The one sentence, after checks that it is one."""
    assert said.status == 1, said
    assert said.err.startswith("nonmember ")
    assert said.err.count("\n") == 1, said.err
    assert "Traceback" not in said.err + said.out
    for part in parts:
        assert part in said.err
    return said.err


def snapshot(folder: Path = Path("outputs")) -> dict[str, bytes]:
    """The bytes of every finished result and store entry."""
    files = [*folder.glob("store/*/[!.]*/*"), *folder.rglob("result.json")]
    return {str(path): path.read_bytes() for path in files if path.is_file()}


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("finished") / "outputs"


@pytest.fixture
def finished(nonmember, ask, texts, kept) -> dict[str, bytes]:
    """The sound question was answered before: its folders are here. Made once for all tests."""
    if not kept.exists():
        documents = write_rows(kept.parent / DOCUMENTS, rows_of(texts))
        assert nonmember(*ask(documents=documents)).status == 0
        shutil.copytree("outputs", kept)
    shutil.copytree(kept, "outputs", dirs_exist_ok=True)
    before = snapshot()
    assert len(before) > 8
    return before


@pytest.fixture
def nothing_is_lost(finished) -> Iterator[None]:
    yield
    after = snapshot()
    assert {name: after.get(name) for name in finished} == finished


@pytest.fixture
def documents(tmp_path) -> Callable[..., Path]:
    """documents(rows, "name.jsonl.gz"): JSON lines beside those of the sound question."""

    def write(rows, name: str = "bad.jsonl") -> Path:
        return write_rows(tmp_path / name, rows)

    return write


@pytest.fixture
def damaged_model(make_model, tmp_path) -> Callable[..., Path]:
    """damaged_model(change): a copy of a model whose tensors `change` has altered in place."""

    def make(change: Callable[[dict], None], name: str = "damaged") -> Path:
        folder = tmp_path / name
        shutil.copytree(make_model(0), folder)
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return folder

    return make


# ----------------------------------------------------------------------------------------- documents


@pytest.mark.slow
def test_fewer_than_30_left(nonmember, ask, documents, texts, nothing_is_lost):
    rows = [*rows_of(texts[:29]), {"id": "short", "text": "moss fern"}]
    said = nonmember(*ask("cleaning.min_words=5", documents=documents(rows)))
    refused(
        said,
        "has 29 documents",
        "needs at least 30",
        "dropped on the way: 1 too_short",
        "Give more documents or loosen",
    )


@pytest.mark.slow
def test_a_document_of_one_token_is_excluded(nonmember, ask, documents, texts, tmp_path):
    said = nonmember(*ask(documents=documents([*rows_of(texts), {"id": "short", "text": "a"}])))
    assert (said.status, said.err) == (0, "")
    result = json.loads(only(tmp_path, "outputs/audits/*/*/result.json").read_text())
    assert (result["statistics"]["num_documents"], len(result["exclusions"]["documents"]["suspect"])) == (40, 1)
    assert result["exclusions"]["documents"] == {
        "suspect": {"short": "target: no scored token: the text has fewer than two tokens"}
    }
    assert not [warning for warning in result["verdict"]["warnings"] if "could not be scored" in warning], (
        "1 of 41 is little"
    )


@pytest.mark.slow
def test_many_documents_of_one_token_make_the_result_invalid(nonmember, ask, documents, texts, tmp_path):
    rows = rows_of(texts[:30]) + [{"id": letter, "text": letter} for letter in "abcdefghijk"]
    said = nonmember(*ask(documents=documents(rows)))
    assert said.status == 0
    result = json.loads(only(tmp_path, "outputs/audits/*/*/result.json").read_text())
    assert (len(result["exclusions"]["documents"]["suspect"]), result["verdict"]["decision"]) == (11, "invalid")
    assert "nothing may be concluded" in result["verdict"]["allowed_claim"]


def test_truncated_gzip(nonmember, ask, documents, texts, nothing_is_lost):
    path = documents(rows_of(texts), "bad.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-200])
    refused(nonmember(*ask(documents=path)), "bad.jsonl.gz is truncated or damaged", "again")


# -------------------------------------------------------------------------------------------- models


def test_folder_without_weights(nonmember, ask, make_model, tmp_path):
    folder = tmp_path / "bare"
    shutil.copytree(make_model(0), folder, ignore=shutil.ignore_patterns("*.safetensors"))
    refused(nonmember(*ask(target=folder)), "model could be loaded", "safetensors weights")


INNER = "gpt_neox.layers.1.mlp.dense_h_to_4h.weight"


def remove(weights):
    del weights[INNER]


def cut(weights):
    weights[INNER] = weights[INNER][:3]


@pytest.mark.slow
@pytest.mark.parametrize("change", [remove, cut])
def test_weights_of_another_model(nonmember, ask, damaged_model, change):
    """transformers would go on with random ones."""
    refused(nonmember(*ask(target=damaged_model(change))), "Take both from one save_pretrained", INNER)


@pytest.mark.slow
@pytest.mark.parametrize(("role", "value"), [("target", "nan"), slow("reference", "inf")])
def test_logits_that_are_not_finite(nonmember, ask, damaged_model, nothing_is_lost, role, value):
    def spoil(weights):
        weights[INNER][0, 0] = float(value)

    said = nonmember(*ask(**{role: damaged_model(spoil)}))
    refused(said, "damaged cannot be used: its logits are no numbers")


def test_tokenizers_that_disagree(nonmember, ask, make_model, nothing_is_lost):
    said = nonmember(*ask(reference=make_model(1, words="MOSS FERN REED PINE " * 9)))
    refused(said, "of the documents' tokens", "needs 99%", "Choose a reference with the target's tokenizer")


@pytest.mark.slow
def test_padding_rows_are_fine(nonmember, ask, make_model, tmp_path):
    """More rows than tokens, as in Pythia: 50,304 rows for 50,277 tokens; and not as many in both models."""
    said = nonmember(*ask(target=make_model(0, extra_rows=24), reference=make_model(1, extra_rows=8)))
    assert (said.status, said.err) == (0, "")
    assert json.loads(only(tmp_path, "outputs/audits/*/*/result.json").read_text())["statistics"]["num_documents"] == 40


@pytest.mark.slow
def test_tokenizer_larger_than_the_model(nonmember, ask, make_model, nothing_is_lost):
    said = nonmember(*ask(target=make_model(0, extra_rows=-10)))
    refused(said, "has 280 entries, but the model only 270", "do not belong together")


@pytest.mark.slow
def test_no_gpu_here(nonmember, ask):
    import torch

    if torch.cuda.is_available() or torch.backends.mps.is_available():
        pytest.skip("there is one")
    refused(nonmember(*ask("trainer=gpu")), "This trainer is not available here", "trainer=cpu")


@pytest.mark.slow
def test_wandb_without_an_account(nonmember, ask, monkeypatch, tmp_path):
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    refused(nonmember(*ask("logger=wandb")), "W&B could not start in mode 'online'", "logger.wandb.mode=offline")


# --------------------------------------------------------------------------------------------- disks


@pytest.mark.parametrize("kind", ["observations", "models"])
def test_a_flipped_byte_in_the_store(nonmember, ask, finished, kind):
    path = max(Path("outputs/store", kind).glob("[!.]*/*"), key=lambda path: path.stat().st_size)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    damaged = snapshot()
    # Another question, so that the answer is not simply found.
    refused(
        nonmember(*ask("method.alpha=.1")),
        f"{path.parent} is damaged",
        f"{path.name} was changed",
        "Remove that folder",
    )
    assert snapshot() == damaged, "nothing is overwritten or removed"
    shutil.rmtree(path.parent)
    assert nonmember(*ask("method.alpha=.1")).status == 0
    again = snapshot()
    assert {name: untimed(again, name) for name in finished} == {name: untimed(finished, name) for name in finished}


def untimed(files: dict[str, bytes], name: str) -> object:
    """Byte for byte, but for how long an artifact took."""
    if not name.endswith("sidecar.json"):
        return files[name]
    return {key: value for key, value in json.loads(files[name]).items() if key != "made"}


@pytest.mark.slow
@pytest.mark.usefixtures("finished")
def test_a_result_that_cannot_be_read_is_made_again_and_kept(nonmember, ask, kept):
    arguments = ask(documents=kept.parent / DOCUMENTS)
    path = only(Path(), "outputs/audits/*/*/result.json")
    whole = json.loads(path.read_text())
    path.write_text(path.read_text()[:100])
    refused(nonmember("table", "outputs"), "result.json is not a result", "Move it away and run the audit again")
    assert nonmember(*arguments).status == 0
    again = json.loads(path.read_text())
    assert (again["statistics"]["value"], again["provenance"]["keys"]) == (
        whole["statistics"]["value"],
        whole["provenance"]["keys"],
    )
    assert len(only(Path(), "outputs/audits/*/*/result-unreadable-*.json").read_text()) == 100


def test_the_output_folder_is_a_file(nonmember, ask, tmp_path):
    (tmp_path / "taken").write_text("mine")
    refused(nonmember(*ask("outputs=taken")), "taken", "outputs=FOLDER")
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere; see the test with a read-only mount")
def test_read_only_output_folder(nonmember, ask, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    refused(nonmember(*ask("outputs=locked")), "Permission denied", "locked", "outputs=FOLDER")


@contextlib.contextmanager
def no_file_larger_than(num_bytes: int) -> Iterator[None]:
    """Writes beyond fail in whatever library, in C++ and Rust too, with EFBIG; on a full disk with ENOSPC."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_bytes", "more", "kinds"),
    [
        (2_000, (), set()),  # the run's own config
        pytest.param(12_000, (), set(), marks=pytest.mark.slow),  # the first observations
        (30_000, (), {"observations"}),  # the distilled reference's weights
        pytest.param(  # a resume point
            100_000, ("trainer.checkpoint_seconds=0",), {"observations"}, marks=pytest.mark.slow
        ),
    ],
    ids=["config", "observations", "weights", "resume"],
)
def test_no_room_left(nonmember, ask, finished, num_bytes, more, kinds):
    """Whichever writer meets the end of the disk first. With room again, work goes on to equal numbers."""
    uninterrupted = read_result()
    shutil.rmtree("outputs")
    arguments = ask(*more)
    with no_file_larger_than(num_bytes):
        said = nonmember(*arguments)
    refused(said, os.strerror(errno.EFBIG), "outputs=FOLDER", "Everything finished before is kept.")
    before = snapshot()
    assert {Path(name).parts[2] for name in before} - {"notes"} == kinds, "what was finished is there"
    assert nonmember(*arguments).status == 0
    after = snapshot()
    assert {name: after[name] for name in before} == before, "and used, not made again"
    assert numbers(read_result()) == numbers(uninterrupted)


def read_result(name: str = "mine") -> dict:
    return json.loads(only(Path("outputs/audits", name), "*/result.json").read_text())


MOUNTS = (
    shutil.which("unshare")
    and not subprocess.run(
        ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
    ).returncode
)


@pytest.mark.slow
@pytest.mark.skipif(not MOUNTS, reason="this machine does not let us mount a small disk")
@pytest.mark.parametrize("options", ["size=64k", "size=150k", "ro"])
@pytest.mark.parametrize("logger", ["none", "wandb"])
def test_a_disk_of_its_own(ask, tmp_path, options, logger):
    """A really full, or read-only, disk, in a process of its own."""
    (tmp_path / "disk").mkdir()
    command = [sys.executable, "-m", "nonmember.cli", *ask("outputs=disk", f"logger={logger}")]
    script = f'mount -t tmpfs -o {options} tmpfs disk && "$@"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("nonmember audit: ")]
    assert len(said) == 1, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    if options == "ro":
        assert "Read-only file system" in said[0]
    else:
        assert "No space left on device" in said[0]
    assert "outputs=FOLDER" in said[0]
