"""What `import nonmember` shows: cheap to import, complete for tab completion and type checkers."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

import pytest

import nonmember as nm

HEAVY = {"numpy", "scipy", "pandas", "pyarrow", "torch", "transformers", "lightning", "hydra", "wandb"}


def test_importing_loads_nothing():
    done = subprocess.run(
        [sys.executable, "-c", "import sys, nonmember; dir(nonmember); print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not set(done.stdout.split()) & HEAVY


@pytest.mark.parametrize("module", [nm, nm.scores, nm.stats], ids=lambda item: item.__name__)
def test_everything_public_is_there_and_listed(module):
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert getattr(module, name).__doc__ or name == "__version__", f"{name} has no docstring"
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name


def test_type_checkers_are_told(tmp_path):
    assert files("nonmember").joinpath("py.typed").is_file()
