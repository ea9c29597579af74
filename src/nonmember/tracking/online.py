"""Checks quickly whether W&B can be reached, where W&B itself retries for 100 seconds. Does not import wandb."""

from __future__ import annotations

import netrc
import os
import socket
import urllib.parse
import urllib.request

CONNECT_SECONDS = 5


class Unreachable(ValueError):
    """W&B cannot be reached, or not without a key: no later run will fare better."""


def require_online(base_url: str) -> None:
    """Raise Unreachable at once where a run could not be sent: no key for that server, or no way to it."""
    address = urllib.parse.urlsplit(base_url)
    host = address.hostname or ""
    if not has_key(host):
        raise Unreachable(
            f"W&B in mode 'online' needs a key for {host}: set WANDB_API_KEY, or stay offline "
            "(logger.wandb.mode=offline; sync --mode offline)."
        )
    if {address.scheme, "all"} & urllib.request.getproxies().keys() and not urllib.request.proxy_bypass(host):
        return  # only the proxy can tell
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise Unreachable(
            f"W&B in mode 'online' cannot be reached at {host}:{port} ({error}): check the network and WANDB_BASE_URL, "
            "or stay offline (logger.wandb.mode=offline; sync --mode offline)."
        ) from error


def has_key(host: str) -> bool:
    """Whether there is something to log in with; what it is stays with W&B."""
    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    try:
        return netrc.netrc(os.environ.get("NETRC")).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False
