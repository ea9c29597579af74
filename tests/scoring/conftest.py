"""A Ray that works in this process."""

from __future__ import annotations

import copy
import sys
from types import ModuleType, SimpleNamespace

import pytest

from nonmember.scoring import engines


class Clusters(ModuleType):
    """What Ray does with a worker, in this process: made once, called with rows, of which answers come back.

    began: what each cluster was joined with.   ended: how many were left again.
    """

    def __init__(self):
        super().__init__("ray")
        self.began, self.ended, self.asked = [], 0, {}
        self.data = ModuleType("ray.data")
        context = SimpleNamespace(enable_progress_bars=True)
        self.data.DataContext = SimpleNamespace(get_current=lambda: context)
        self.data.ActorPoolStrategy = lambda **given: given
        self.data.range = lambda number, **more: SimpleNamespace(map=lambda *a, **b: self._mapped(number, *a, **b))

    def init(self, **given):
        self.began.append(given)

    def shutdown(self):
        self.ended += 1

    def _mapped(self, number, worker, fn_constructor_args, **asked):
        self.asked = asked
        made = worker(*copy.deepcopy(fn_constructor_args))  # by __reduce__, as it is sent
        return SimpleNamespace(iter_rows=lambda: (made({"id": place}) for place in reversed(range(number))))


@pytest.fixture
def clusters(monkeypatch):
    ray = Clusters()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.data", ray.data)
    monkeypatch.setattr(engines, "find_spec", lambda name: ray)
    monkeypatch.setattr(engines, "reinstate", lambda: None)
    for variable in engines.SETTINGS:
        monkeypatch.setenv(variable, engines.SETTINGS[variable])
    return ray
