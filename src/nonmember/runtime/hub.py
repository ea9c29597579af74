"""Whether something of the Hugging Face hub can be read: its client would try again for half a minute."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import getproxies


def why_out_of_reach(kind: Literal["models", "datasets"], name: str) -> str:
    """Empty where it is in the hub's cache, or the hub may be asked."""
    if _is_cached(kind, name):
        return ""
    if is_offline():
        return "HF_HUB_OFFLINE is set, and it is not in the hub's cache"
    if getproxies():  # which know addresses that this machine does not
        return ""
    host = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co").hostname
    try:
        socket.getaddrinfo(host, None)
    except OSError as error:
        return f"there is no way to {host} from here ({error.strerror}), and it is not in the hub's cache"
    return ""


def is_offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON")


def _is_cached(kind: str, name: str) -> bool:
    home = os.environ.get("HF_HOME") or str(Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()
    return (cache / f"{kind}--{name.replace('/', '--')}").is_dir()
