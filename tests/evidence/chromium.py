"""Chromium by its own protocol, without a driver program: opens a page and tells what it did."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 30.0  # seconds


class Browser:
    def __init__(self, binary: str, folder: Path):
        arguments = (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--remote-debugging-port=0",
        )
        self.process = subprocess.Popen(
            [binary, *arguments, f"--user-data-dir={folder}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        port, path = self._address(folder / "DevToolsActivePort")
        from websocket import create_connection

        address = f"ws://127.0.0.1:{port}{path}"
        self.socket = create_connection(address, timeout=PATIENCE, suppress_origin=True)
        self.numbers, self.events, self.session = itertools.count(1), list[dict[str, Any]](), ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def _address(self, path: Path) -> list[str]:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            if path.is_file() and len(lines := path.read_text().splitlines()) == 2:
                return lines
            time.sleep(0.05)
        self.process.kill()
        pytest.skip("the browser does not start")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self.numbers)
        session = {"sessionId": self.session} if self.session else {}
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters, **session}))
        while True:
            said = json.loads(self.socket.recv())
            if said.get("id") == number:
                assert "error" not in said, said
                return dict(said["result"])
            self.events.append(said)

    def open(self, address: str) -> None:
        """Waits until it is loaded; `events` are those since."""
        self.events.clear()
        self.ask("Page.navigate", url=address)
        while not any(item["method"] == "Page.loadEventFired" for item in self.events):
            self.events.append(json.loads(self.socket.recv()))

    def told(self, method: str) -> list[dict[str, Any]]:
        self.run("0")  # what was said before the answer is there
        return [item["params"] for item in self.events if item["method"] == method]

    def run(self, script: str) -> Any:
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def show(self, width: int, scheme: str) -> None:
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=width < 500)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(PATIENCE)


def started(folder: Path) -> Browser:
    """Skips the test where there is none."""
    pytest.importorskip("websocket", reason="websocket-client is not installed (selenium brings it)")
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    if not binary:
        pytest.skip("no chromium on this machine")
    return Browser(binary, folder)
