"""Workers of Ray make the parts that one process makes, also where they are killed."""

from __future__ import annotations

import errno
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
    assert sorted((item["number"], item["square"]) for item in made) == [(number, number**2) for number in range(12)]
    with pytest.raises(ValueError, match=r"^-1 has no documents\.$"):
        list(engine.run(Scorer(tmp_path), [3, -1]))
    assert list(engine.run(Scorer(tmp_path), [])) == []


class Full:
    def __call__(self, part):
        if part == "full":
            raise OSError(errno.ENOSPC, "No space left on device", "/data/part-3")
        if part == "bare":
            raise OSError("the disk is gone")
        return {"number": part}


def test_parts_come_home_from_a_cluster_that_is_left_again(clusters, tmp_path):
    engine = engines.OnRay(None, num_workers=2, num_cpus=3, num_gpus=0.5)
    assert [item["number"] for item in engine.run(Scorer(tmp_path), [0, 1, 2])] == [2, 1, 0]
    (began,) = clusters.began
    assert (began["address"], began["num_cpus"], clusters.ended) == ("local", 6, 1)
    assert (clusters.asked["num_cpus"], clusters.asked["num_gpus"], clusters.asked["compute"]["size"]) == (3, 0.5, 2)
    assert list(engine.run(Scorer(tmp_path), [])) == []
    assert len(clusters.began) == 1, "nothing is started for nothing"


def test_why_a_part_was_not_made_comes_home_as_it_was_said_there(clusters, tmp_path):
    """Ray loses what an error was caused by, and the user what to do."""
    engine = engines.OnRay(None, num_workers=1, num_cpus=1, num_gpus=0)
    with pytest.raises(ValueError, match=r"^-1 has no documents\.$"):
        list(engine.run(Scorer(tmp_path), [3, -1]))
    with pytest.raises(OSError, match="No space left on device") as full:
        list(engine.run(Full(), [1, "full"]))
    assert (full.value.errno, full.value.filename) == (errno.ENOSPC, "/data/part-3")
    with pytest.raises(OSError, match="the disk is gone"):
        list(engine.run(Full(), ["bare"]))
    assert (len(clusters.began), clusters.ended) == (3, 3), "no cluster is left behind"


def test_a_cluster_is_joined_where_it_answers_and_named_where_it_does_not(clusters):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        host, port = held.getsockname()
        run = engines.OnRay(f"ray://{host}:{port}", 1, 1, 0).run
        with pytest.raises(ValueError, match=f"No Ray cluster answers at ray://{host}:{port} .*engine.address"):
            list(run(Full(), [1]))
        assert not clusters.began, "Ray itself would try for minutes"
        held.listen()
        assert list(run(Full(), [1])) == [{"number": 1}]
    assert list(engines.OnRay("auto", 1, 1, 0).run(Full(), [1])) == [{"number": 1}]
    assert [item["address"] for item in clusters.began] == [f"ray://{host}:{port}", "auto"]


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
