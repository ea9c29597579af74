"""A running lab server, as tests hold it."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonmember.endpoints import Limits
from nonmember.endpoints.models import Endpoint

KEY_VARIABLE = "LAB_KEY"


@dataclass(frozen=True)
class RunningLab:
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def endpoint(self, form: str = "chat", *, model: str = "lab") -> Endpoint:
        return Endpoint(self.url, model, form, KEY_VARIABLE)

    def setup(self, **settings: Any) -> None:
        """Fields of `Settings`; all others as they are by default."""
        self._send("setup", settings)

    def forget(self) -> None:
        """A new ledger."""
        self._send("forget", {})

    def ledger(self) -> dict[str, Any]:
        return self._send("ledger", None)

    def _send(self, route: str, content: dict[str, Any] | None) -> dict[str, Any]:
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/lab/{route}", data)
        with urllib.request.urlopen(request, timeout=30) as response:
            return dict(json.load(response))


@contextlib.contextmanager
def running_lab() -> Iterator[RunningLab]:
    process = subprocess.Popen(
        [sys.executable, "-m", "lab_server"],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        assert port, "the lab server did not start"
        yield RunningLab(int(port))
    finally:
        process.stdin.close()
        process.wait(timeout=10)
        process.stdout.close()


@contextlib.contextmanager
def running_model(folder: Path) -> Iterator[RunningLab]:
    """A real model behind a server, in a thread of this process: what a model needs is imported here already."""
    import uvicorn

    from lab_server.app import application
    from lab_server.causal import CausalMind

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1024)
        app = application(CausalMind(str(folder)))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield RunningLab(listening.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(timeout=60)


def limits(concurrency: int = 2, timeout: float = 10, max_retries: int = 2, **allowed: float) -> Limits:
    """Of an endpoint: no rates, budgets or prices but those that are given."""
    names = ("max_questions", "max_tokens", "max_cost")
    nothing = dict.fromkeys((*names, "input_price", "output_price"))
    return Limits(concurrency=concurrency, timeout=timeout, max_retries=max_retries, **nothing | allowed)
