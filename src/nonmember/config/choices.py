"""What there is to choose from: the folders of configs, their groups, their options and what these are."""

from __future__ import annotations

import re
from pathlib import Path

OWN = "own"  # the world of one's own models and documents
ANY_WORLD = "For models and documents of your own, and in any world"


def config_directory() -> Path:
    """The YAML tree: inside the installed package, or at the top of the repository in an editable install."""
    packaged = Path(__file__).parents[1] / "conf"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "conf"


def sweeps_directory() -> Path:
    """The sweeps: inside the installed package, or at the top of the repository."""
    packaged = Path(__file__).parents[1] / "sweep_configs"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "sweeps"


def groups() -> list[str]:
    """Names of all groups, sorted."""
    return sorted(path.name for path in config_directory().iterdir() if path.is_dir())


def options(group: str) -> list[str]:
    """Names of a group's options, sorted."""
    return sorted(path.stem for path in (config_directory() / group).glob("*.yaml"))


def descriptions(group: str) -> dict[str, dict[str, str]]:
    """title -> name -> what it is, of each option of a group, or of the sweeps for "sweep": what is for models and
    documents of one's own comes first, then world by world what is named after it."""
    folder = sweeps_directory() if group == "sweep" else config_directory() / group
    worlds = [name for name in options("world") if name != OWN and group not in ("sweep", "world")]
    found: dict[str, dict[str, str]] = {world: {} for world in (OWN, *worlds)}
    for path in sorted(folder.glob("*.yaml")):
        named_after = [world for world in worlds if path.stem.startswith(f"{world}_")]
        found[max(named_after, key=len, default=OWN)][path.stem] = _sentence(path)
    title = {world: _sentence(config_directory() / "world" / f"{world}.yaml") for world in worlds}
    return {title.get(world, ANY_WORLD): rows for world, rows in found.items() if rows}


def _sentence(path: Path) -> str:
    """The first of the comment at the top of a file."""
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("# @package"):
            lines.append(line.lstrip("# ").strip())
    return re.split(r"(?<=[.?]) ", " ".join(filter(None, lines)))[0].rstrip(".:")
