"""Start the server on a free port of the loopback address and print that port."""

from __future__ import annotations

import os
import socket
import sys
import threading

os.environ.setdefault("OMP_NUM_THREADS", "1")

import uvicorn

from lab_server.app import application


def main() -> None:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(1024)
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    threading.Thread(target=end_with_parent, daemon=True).start()
    config = uvicorn.Config(application(None), log_level="critical", access_log=False, backlog=1024)
    uvicorn.Server(config).run(sockets=[listening])


def end_with_parent() -> None:
    sys.stdin.buffer.read()  # until it is closed
    os._exit(0)


main()
