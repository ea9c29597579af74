"""Workers of Ray make the parts that one process makes, also where they are killed."""

from __future__ import annotations

import os
import signal
import socket
import time

import pytest

from nonmember.scoring import engines


class Scorer:
    """Squares; the worker that comes to `deadly` first is killed there."""

    def __init__(self, folder, deadly=None):
        self.folder, self.deadly = folder, deadly

    def __call__(self, part):
        if part < 0:
            raise ValueError(f"{part} has no documents.")
        mark = self.folder / "killed"
        if part == self.deadly and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
        return {"number": part, "square": part**2}


@pytest.mark.slow
def test_a_worker_that_is_killed_is_started_again_and_its_part_is_made(tmp_path, monkeypatch):
    """20 s: a cluster is started twice."""
    pytest.importorskip("ray", reason="ray is not installed (pip install 'nonmember[ray]')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]))
    engine = engines.OnRay(None, num_workers=2, num_cpus=1, num_gpus=0)
    made = list(engine.run(Scorer(tmp_path, deadly=5), range(12)))
    assert (tmp_path / "killed").exists()
    assert sorted((one["number"], one["square"]) for one in made) == [(number, number**2) for number in range(12)]
    with pytest.raises(ValueError, match=r"^-1 has no documents\.$"):
        list(engine.run(Scorer(tmp_path), [3, -1]))
    assert list(engine.run(Scorer(tmp_path), [])) == []


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match=r"engine\.num_workers"):
        engines.OnRay(None, 0, 1, 0)
    with pytest.raises(ValueError, match=r"parts\.duplicate_ids"):
        engines.Parts(duplicate_ids="last")


def test_a_cluster_that_does_not_answer_is_named_at_once():
    pytest.importorskip("ray", reason="ray is not installed (pip install 'nonmember[ray]')")
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        host, port = held.getsockname()  # bound, and nobody listens
        with pytest.raises(ValueError, match=f"No Ray cluster answers at {host}:{port} .*engine.address"):
            list(engines.OnRay(f"{host}:{port}", 1, 1, 0).run(Scorer(None), [1]))
