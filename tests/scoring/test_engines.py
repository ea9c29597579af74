"""Workers of Ray, the real one, make the parts that one process makes, also where they are killed."""

from __future__ import annotations

import errno
import os
import signal

import pytest

from nonmember.scoring.engines import OnRay


class Scorer:
    """Squares; the worker that comes to `deadly` first is killed there."""

    def __init__(self, folder, deadly=None):
        self.folder, self.deadly = folder, deadly

    def __call__(self, part):
        if part < 0:
            raise ValueError(f"{part} has no documents.")
        if part == 99:
            raise OSError(errno.ENOSPC, "No space left on device", "/data/part-3")
        mark = self.folder / "killed"
        if part == self.deadly and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"number": part, "square": part**2}


@pytest.fixture
def engine(monkeypatch):
    pytest.importorskip("ray", reason="ray is not installed (pip install 'nonmember[ray]')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")]))
    return OnRay(None, num_workers=2, num_cpus=1, num_gpus=0)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_started_again_and_its_part_is_made(engine, tmp_path):
    made = list(engine.run(Scorer(tmp_path, deadly=5), range(12)))
    assert (tmp_path / "killed").exists()
    assert sorted((item["number"], item["square"]) for item in made) == [(number, number**2) for number in range(12)]


@pytest.mark.slow
def test_why_a_part_was_not_made_comes_home_as_it_was_said_there(engine, tmp_path):
    with pytest.raises(ValueError, match="has no documents") as refused:
        list(engine.run(Scorer(tmp_path), [3, -1]))
    assert str(refused.value) == "-1 has no documents."
    with pytest.raises(ValueError, match="No space left on device: '/data/part-3'"):
        list(engine.run(Scorer(tmp_path), [1, 99]))
