"""Who may import whom, read off the source: mathematics without torch, methods without files, W&B in one."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "nonmember"
MODULES = sorted(SOURCE.rglob("*.py"))

HEAVY = (
    "torch",
    "transformers",
    "lightning",
    "wandb",
    "hydra",
    "omegaconf",
    "datasets",
    "peft",
    "tokenizers",
)
# From the bottom up: each imports only what stands before it.
LAYERS = (
    "checks", "records", "stats", "scores", "runtime", "tracking", "artifacts", "corpora", "models", "training",
    "observations", "endpoints", "generated", "methods", "results", "reports", "audits", "config", "api", "cli",
)  # fmt: skip
HYDRA = ("config", "cli")
OPENERS = {
    "open",
    "read_text",
    "write_text",
    "read_bytes",
    "write_bytes",
    "mkdir",
    "unlink",
    "read_table",
    "write_table",
}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path, *, only_at_import: bool = False) -> Iterator[str]:
    """Dotted names of what a file imports, in functions too; without what is for the type checker alone."""
    waiting: list[ast.AST] = [tree_of(path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
        elif not (only_at_import and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            waiting.extend(ast.iter_child_nodes(node))


def packages(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)}


def own(path: Path) -> set[str]:
    """Which parts of nonmember a file imports: "store", "models.specs", ..."""
    return {name.removeprefix("nonmember.") for name in imports(path) if name.startswith("nonmember.")}


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))


each_module = pytest.mark.parametrize("path", MODULES, ids=name_of)


def within(*folders: str) -> pytest.MarkDecorator:
    paths = [path for path in MODULES if path.relative_to(SOURCE).parts[0] in folders]
    assert paths, folders
    return pytest.mark.parametrize("path", paths, ids=name_of)


@each_module
def test_imports_run_downwards(path):
    layer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if layer != "__init__":
        assert layer in LAYERS, f"{layer}: say in LAYERS where it stands"
        others = {name.partition(".")[0] for name in own(path)} - {layer, "__version__"}
        assert others <= set(LAYERS[: LAYERS.index(layer)])


@within("scores", "stats")
def test_mathematics_takes_arrays(path):
    assert packages(path) <= {"__future__", "nonmember", *sys.stdlib_module_names, "numpy", "scipy", "sklearn"}
    others = {name.partition(".")[0] for name in own(path)}
    assert others <= {"records", "checks", path.relative_to(SOURCE).parts[0]}


@within("records", "results")
def test_what_touches_the_disk_can_be_read_without_the_stack(path):
    assert not packages(path) & set(HEAVY)


@within("methods")
def test_methods_neither_train_nor_open_files(path):
    assert not packages(path) & {"torch", "lightning", "hydra", "omegaconf", "wandb", "pyarrow", "datasets"}
    forbidden = ("artifacts.store", "observations.passes", "training.run", "models.loading")
    assert not [name for name in own(path) if name.startswith(forbidden)]
    called = {ast.unparse(call.func).rpartition(".")[2] for call in calls(path)}
    assert not called & OPENERS


@each_module
def test_hydra_stays_with_configs_and_commands(path):
    """The engine can be used from a notebook."""
    if path.relative_to(SOURCE).parts[0] not in HYDRA:
        assert not packages(path) & {"hydra", "omegaconf", "argparse"}


@each_module
def test_wandb_stays_with_tracking(path):
    if name_of(path) not in ("tracking/trackers.py", "tracking/online.py"):
        assert "wandb" not in packages(path)


@each_module
def test_nothing_runs_what_it_reads(path):
    assert not packages(path) & {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
    for call in calls(path):
        options = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert options.get("trust_remote_code") != "True", ast.unparse(call)
        if ast.unparse(call.func).endswith("torch.load"):
            assert options.get("weights_only") == "True", ast.unparse(call)
        if ast.unparse(call.func).endswith(("np.load", "numpy.load")):
            assert options.get("allow_pickle", "False") == "False", ast.unparse(call)
        assert ast.unparse(call.func) not in {"eval", "exec", "compile"}


@each_module
def test_nothing_prints_or_exits_but_the_entries(path):
    called = {ast.unparse(call.func) for call in calls(path)}
    assert "print" not in called
    if name_of(path) not in ("cli/main.py", "cli/__main__.py", "runtime/interruption.py"):
        assert not called & {"exit", "quit", "sys.exit", "os._exit"}


@within(*HYDRA)
def test_commands_import_nothing_heavy_before_their_task_runs(path):
    early = {one.partition(".")[0] for one in imports(path, only_at_import=True)}
    assert not early & (set(HEAVY) - {"hydra", "omegaconf"})


LOADED = """
import sys
import nonmember.{module}
print(*sorted(name for name in sys.modules if "." not in name))
"""


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("cli.main", [*HEAVY, "numpy", "pyarrow", "rich", "scipy"]),
        (
            "cli.audit",
            [name for name in HEAVY if name not in ("hydra", "omegaconf")] + ["numpy", "pyarrow", "rich"],
        ),
        ("results.result", HEAVY),
        ("artifacts.store", HEAVY),
        ("scores", HEAVY),
        ("api", [*HEAVY, "numpy", "pandas", "pyarrow", "scipy"]),
    ],
)
def test_importing_loads_nothing_heavy(module, forbidden):
    """Also through others, which the source of one file cannot show."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(module=module)], capture_output=True, text=True, check=True
    )
    assert not set(done.stdout.split()) & set(forbidden)
