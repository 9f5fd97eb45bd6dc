"""Every effect has one implementation of the same name and signature, and the worker serves nothing else."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities.home import Home
from orch.activities.registry import make_activities
from orch.workflows import effects

EFFECTS = {
    name: function
    for name, function in vars(effects).items()
    if inspect.iscoroutinefunction(function) and function.__module__ == effects.__name__
}


def _types(function: Callable[..., Any]) -> dict[str, Any]:
    return typing.get_type_hints(function)


def test_worker_serves_exactly_the_effects(tmp_path: Path) -> None:
    served = {activity.__name__ for activity in make_activities(Home(tmp_path), 1)}

    assert served == set(EFFECTS)
    assert len(EFFECTS) == 21


@pytest.mark.parametrize("name", sorted(EFFECTS))
def test_implementation_has_the_signature_of_its_effect(name: str, tmp_path: Path) -> None:
    implementation = next(a for a in make_activities(Home(tmp_path), 1) if a.__name__ == name)

    assert list(inspect.signature(implementation).parameters) == list(inspect.signature(EFFECTS[name]).parameters)
    assert _types(implementation) == _types(EFFECTS[name])
    assert implementation.__doc__ == EFFECTS[name].__doc__
