"""What there is to choose from: the folders of configs, their groups, their options and what these are."""

from __future__ import annotations

from pathlib import Path

from nonmember.config.presets import described_rows, load_presets

OWN = "own"  # the table of presets for one's own models and documents
ANY_WORLD = "For models and documents of your own, and in any world"


def config_directory() -> Path:
    """The YAML tree: inside the installed package, or at the top of the repository in an editable install."""
    packaged = Path(__file__).parents[1] / "conf"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "conf"


def presets_directory() -> Path:
    """The tables of variants that need no file of their own."""
    return config_directory() / "presets"


def sweeps_directory() -> Path:
    """The sweeps: inside the installed package, or at the top of the repository."""
    packaged = Path(__file__).parents[1] / "sweep_configs"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "sweeps"


def published_sweeps() -> frozenset[str]:
    """Names of the sweeps that come with the project."""
    return frozenset(path.stem for path in sweeps_directory().glob("*.yaml"))


def groups() -> list[str]:
    """Names of all groups, sorted."""
    folders = {path.name for path in config_directory().iterdir() if path.is_dir() and path != presets_directory()}
    return sorted(folders | load_presets(presets_directory()).keys())


def options(group: str) -> list[str]:
    """Names of a group's options, sorted: its files, and its rows in the presets."""
    files = {path.stem for path in (config_directory() / group).glob("*.yaml")}
    return sorted(files | load_presets(presets_directory()).get(group, {}).keys())


def descriptions(group: str) -> dict[str, dict[str, str]]:
    """title -> name -> what it is, of each option of a group, or of the sweeps for "sweep": what is for models and
    documents of one's own comes first, then table by table of the presets, with the files that are named after it."""
    folder = sweeps_directory() if group == "sweep" else config_directory() / group
    files = {path.stem: _sentence(path) for path in sorted(folder.glob("*.yaml"))}
    found: dict[str, dict[str, str]] = {ANY_WORLD: {}}
    for path in sorted(presets_directory().glob("*.yaml"), key=lambda path: (path.stem != OWN, path.stem)):
        rows = {name: files.pop(name) for name in list(files) if group != "sweep" and name.startswith(f"{path.stem}_")}
        rows |= {name: what for row_group, name, what in described_rows(path) if row_group == group}
        found[ANY_WORLD if path.stem == OWN else _sentence(path)] = rows
    found[ANY_WORLD] = files | found[ANY_WORLD]
    return {title: rows for title, rows in found.items() if rows}


def _sentence(path: Path) -> str:
    """The first of the comment at the top of a file."""
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("# @package"):
            lines.append(line.lstrip("# ").strip())
    return " ".join(filter(None, lines)).split(". ")[0].rstrip(".:")
