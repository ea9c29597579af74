"""Who may import whom, read off the source: mathematics without torch, methods without files, W&B in one.

Each rule is one test, which lists every file that breaks it.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "nonmember"
MODULES = sorted(SOURCE.rglob("*.py"))
FILES = {  # of all three packages, by their names in an import
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.parent.rglob("*.py"))
}

HEAVY = ("torch", "transformers", "lightning", "wandb", "hydra", "omegaconf", "datasets", "peft", "tokenizers")
# From the bottom up: each imports only what stands before it.
LAYERS = (
    "checks",
    "records",
    "stats",
    "scores",
    "runtime",
    "tracking",
    "artifacts",
    "corpora",
    "models",
    "training",
    "observations",
    "endpoints",
    "methods",
    "results",
    "advice",
    "reports",
    "audits",
    "scoring",
    "evidence",
    "config",
    "api",
    "cli",
)
HYDRA = ("config", "cli")
HYDRA_ITSELF = ("hydra", "omegaconf")
LOKY = "joblib.externals.loky"
SCREEN = 60  # lines of a function without its docstring
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


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@functools.cache
def imports(path: Path, *, only_at_import: bool = False) -> frozenset[str]:
    """Dotted names of what a file imports, in functions too; without what is for the type checker alone."""
    return frozenset(_imports(path, only_at_import))


def _imports(path: Path, only_at_import: bool) -> Iterator[str]:
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


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@functools.cache
def calls(path: Path) -> tuple[ast.Call, ...]:
    return tuple(node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))


@functools.cache
def called(path: Path) -> frozenset[str]:
    return frozenset(ast.unparse(call.func) for call in calls(path))


def within(*layers: str) -> list[Path]:
    paths = [path for path in MODULES if layer_of(path) in layers]
    assert paths, layers
    return paths


def none_but(offending: Iterable[tuple[Path, object]]) -> None:
    """Fails with every file that breaks the rule, and how; what is empty breaks none."""
    assert not {name_of(path): what for path, what in offending if what}


def test_imports_run_downwards():
    assert {layer_of(path) for path in MODULES} - {"__init__"} <= set(LAYERS), "say in LAYERS where it stands"
    none_but(
        (path, {name.partition(".")[0] for name in own(path)} - {"__version__", *LAYERS[: LAYERS.index(layer) + 1]})
        for path in MODULES
        if (layer := layer_of(path)) != "__init__"
    )


def test_no_file_imports_itself_by_way_of_others():
    """In functions too: what must be imported late is heavy, and never our own way round a circle."""
    graph = {name: imports(path) & FILES.keys() - {name} for name, path in FILES.items() if path.name != "__init__.py"}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError with the way


@functools.cache
def brought(module: str) -> frozenset[str]:
    """What importing it loads: our own modules, packages' `__init__` among them, and packages of others."""
    loaded, waiting = set[str](), [module]
    while waiting:
        name = waiting.pop()
        parents = {name.rsplit(".", n)[0] for n in range(name.count(".") + 1)} & FILES.keys()
        new = (parents if name.startswith("nonmember") else {name.partition(".")[0]}) - loaded
        loaded |= new
        waiting += [item for module in new & FILES.keys() for item in imports(FILES[module], only_at_import=True)]
    return frozenset(loaded - sys.stdlib_module_names)


def test_own_modules_are_imported_late_where_they_bring_what_is_heavy():
    """Or where they import the file themselves, by way of a package's `__init__`."""
    needless = set()
    for module, path in FILES.items():
        late = imports(path) & FILES.keys() - imports(path, only_at_import=True)
        for name in late - {item.rpartition(".")[0] for item in late}:
            brings = brought(name)
            if module not in brings and all(item.startswith("nonmember") for item in brings - brought(module)):
                needless.add(module.removeprefix("nonmember."))
    assert not needless


def test_what_is_kept_of_models_is_read_without_loading_them():
    """What observations and endpoints keep in the store is loaded without torch."""
    read = {
        (module, late.module or "")
        for module in FILES
        if module.startswith(("nonmember.observations", "nonmember.endpoints"))
        for node in ast.walk(tree_of(FILES[module]))
        if isinstance(node, ast.FunctionDef) and [item.arg for item in node.args.args] == ["self", "builder", "entry"]
        for late in (ast.ImportFrom(module), *ast.walk(node))
        if isinstance(late, ast.ImportFrom)
    }
    assert len(read) > 4
    assert not {item for item in read if "torch" in brought(item[1])}


def folder_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """The folder that a file lies in and each that it imports from, both where their ways part."""
    mine = path.relative_to(SOURCE).parts[:-1]
    for name in own(path):
        theirs = name.split(".")
        shared = next((n for n, (item, other) in enumerate(zip(mine, theirs, strict=False)) if item != other), None)
        if shared is not None and SOURCE.joinpath(*theirs[: shared + 1]).is_dir():
            yield "/".join(mine[: shared + 1]), "/".join(theirs[: shared + 1])


def test_no_two_folders_import_each_other():
    """At no depth. A package's own `__init__` stands for its folder and not beside the others."""
    pairs = {pair for path in MODULES if path.name != "__init__.py" for pair in folder_pairs(path)}
    assert len(pairs) > 100
    assert not {pair for pair in pairs if pair[::-1] in pairs}


def test_the_instrument_knows_no_paper():
    """What stands on the package is found by `_target_`; the package imports nothing of it."""
    files = SOURCE.rglob("*.py")
    assert not [path for path in files if any(name.startswith("nonmember_papers") for name in imports(path))]


def test_mathematics_takes_arrays():
    known = {"__future__", "nonmember", *sys.stdlib_module_names, "numpy", "scipy", "sklearn", "threadpoolctl"}
    none_but((path, packages(path) - known) for path in within("scores", "stats"))
    none_but(
        (path, {name.partition(".")[0] for name in own(path)} - {"records", "checks", layer_of(path)})
        for path in within("scores", "stats")
    )


def test_what_touches_the_disk_can_be_read_without_the_stack():
    none_but((path, packages(path) & set(HEAVY)) for path in within("records", "results"))


def test_methods_neither_train_nor_open_files():
    stack = {"torch", "lightning", "hydra", "omegaconf", "wandb", "pyarrow", "datasets"}
    forbidden = ("artifacts.store", "observations.passes", "training.run", "models.loading")
    none_but((path, packages(path) & stack) for path in within("methods"))
    none_but((path, [name for name in own(path) if name.startswith(forbidden)]) for path in within("methods"))
    none_but((path, {name.rpartition(".")[2] for name in called(path)} & OPENERS) for path in within("methods"))


def test_hydra_stays_with_configs_and_commands():
    """The engine can be used from a notebook."""
    none_but((p, packages(p) & {"hydra", "omegaconf", "argparse"}) for p in MODULES if layer_of(p) not in HYDRA)


def test_wandb_stays_with_tracking():
    theirs = "tracking/trackers.py"
    none_but((path, packages(path) & {"wandb"}) for path in MODULES if name_of(path) not in theirs)


def test_nothing_runs_what_it_reads():
    """joblib also reads files, in a way that runs what they hold; its processes (loky) read none."""
    readers = {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
    none_but(
        (path, [item for item in imports(path) if item.partition(".")[0] in readers and not item.startswith(LOKY)])
        for path in MODULES
    )
    none_but((path, called(path) & {"eval", "exec", "compile"}) for path in MODULES)
    none_but((path, [ast.unparse(call) for call in calls(path) if unpickles(call)]) for path in MODULES)


def test_models_and_their_tokenizers_bring_no_code():
    """transformers asks on the terminal where it is not told; `where` and `location` come from the command line."""
    none_but((path, [ast.unparse(call) for call in calls(path) if may_ask(call)]) for path in MODULES)


def may_ask(call: ast.Call) -> bool:
    function = ast.unparse(call.func)
    told = {keyword.arg or ast.unparse(keyword.value) for keyword in call.keywords}
    loads = function.startswith("Auto") and function.endswith((".from_pretrained", ".from_config"))
    return loads and not told & {"trust_remote_code", "where", "location(spec)"}


def test_no_option_of_a_command_can_be_shortened():
    """By one's beginning: what is refused or asked for by its name would pass under another."""
    verifier = SOURCE.parent / "nonmember_verify" / "cli.py"
    parsers = [
        call
        for path in (*MODULES, verifier)
        for call in calls(path)
        if ast.unparse(call.func).endswith(("ArgumentParser", ".add_parser"))
    ]
    assert len(parsers) > 2
    assert not [
        ast.unparse(call)
        for call in parsers
        if "allow_abbrev=False" not in {ast.unparse(item) for item in call.keywords}
    ]


def unpickles(call: ast.Call) -> bool:
    function = ast.unparse(call.func)
    options = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    return (
        options.get("trust_remote_code") == "True"
        or (function.endswith("torch.load") and options.get("weights_only") != "True")
        or (function.endswith(("np.load", "numpy.load")) and options.get("allow_pickle", "False") != "False")
    )


def test_nothing_prints_or_exits_but_the_entries():
    entries = ("cli/main.py", "cli/__main__.py", "runtime/interruption.py")
    none_but((path, called(path) & {"print"}) for path in MODULES)
    ends = {"exit", "quit", "sys.exit", "os._exit"}
    none_but((path, called(path) & ends) for path in MODULES if name_of(path) not in entries)


def test_commands_import_nothing_heavy_before_their_task_runs():
    none_but(
        (path, {item.partition(".")[0] for item in imports(path, only_at_import=True)} & set(HEAVY) - set(HYDRA_ITSELF))
        for path in within(*HYDRA)
    )


LOADED = """
import importlib, sys
for module in sys.argv[1:]:
    importlib.import_module("nonmember." + module)
    print(*sorted(name for name in sys.modules if "." not in name))
"""
BESIDE_HYDRA = {*HEAVY} - {*HYDRA_ITSELF}


@pytest.mark.parametrize(
    "forbidden",
    [
        {
            "api": {*HEAVY, "numpy", "pandas", "pyarrow", "scipy"},
            "cli.main": {*HEAVY, "numpy", "pyarrow", "rich", "scipy"},
            "cli.audit": {*HEAVY, "numpy", "pyarrow", "rich"} - {"hydra", "omegaconf"},
        },
        {
            **{name: {*HEAVY} for name in ("artifacts.store", "results.result", "scores", "audits.cell")},
            **{name: {*BESIDE_HYDRA, "pandas"} for name in ("api.auditing", "api.planting")},
        },
    ],
)
def test_importing_loads_nothing_heavy(forbidden):
    """One after the other, the lightest first; also through others, which the source of one file cannot show."""
    done = subprocess.run([sys.executable, "-c", LOADED, *forbidden], capture_output=True, text=True, check=True)
    for (module, heavy), loaded in zip(forbidden.items(), done.stdout.splitlines(), strict=True):
        assert not heavy.intersection(loaded.split()), module


def test_a_function_fits_a_screen():
    long = set()
    for module, path in FILES.items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
                if node.body[-1].end_lineno - first.lineno + 1 > SCREEN:
                    long.add(f"{module}: {node.name}")
    assert not long
