"""Servers of others on the loopback address, each in a process of its own that ends with the test."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TRANSFORMERS = Path(sys.executable).with_name("transformers")
HERE = Path(__file__).parent
PATIENCE = 240  # seconds until a server has to answer


@contextmanager
def transformers_serve(folder: Path) -> Iterator[str]:
    """The address of `transformers serve`, up to and including /v1. The model is called as its folder is."""
    command = [str(TRANSFORMERS), "serve", str(folder), "--device", "cpu", "--host", "127.0.0.1", "--port"]
    with _running(command, []) as url:
        yield url


@contextmanager
def llama_server(gguf: Path, *, exact: bool = False) -> Iterator[str]:
    """The address of llama.cpp's server, up to and including /v1. The model is called smollm2."""
    with _running([sys.executable, "-m", "llama_server", str(gguf)], ["exact"] if exact else []) as url:
        yield url


@contextmanager
def _running(command: list[str], last: list[str]) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [*command, str(port), *last],
        env=os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": paths},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            _wait_for(port, server)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.kill()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert server.poll() is None, "the server came to its end"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except urllib.error.HTTPError as error:
            if error.code != 503:  # llama.cpp's while it reads the model
                return
        except OSError:
            pass
        time.sleep(0.5)
    raise AssertionError("the server did not start")
