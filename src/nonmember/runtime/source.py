"""Which commit of this project is running, and which versions of its libraries."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import platform
import subprocess
from pathlib import Path

VERSIONS_OF = ("nonmember", "torch", "transformers", "tokenizers", "lightning", "numpy", "scipy", "scikit-learn")


@functools.cache
def commit() -> str | None:
    """The commit of the checkout that this package is imported from, with `-changed` behind it where tracked files
    differ from it; of a package installed from a repository, the commit that its installer noted. None: neither."""
    root = Path(__file__).resolve().parents[3]
    if (root / ".git").exists():
        try:
            head = _git(root, "rev-parse", "HEAD")
            return f"{head}-changed" if _git(root, "status", "--porcelain", "--untracked-files=no") else head
        except (OSError, subprocess.SubprocessError):
            return None
    noted = importlib.metadata.distribution("nonmember").read_text("direct_url.json")
    commit_id: str | None = json.loads(noted or "{}").get("vcs_info", {}).get("commit_id")
    return commit_id


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()


@functools.cache
def versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in VERSIONS_OF}
