"""Rules and model are pure: what they may import is listed, everything else is forbidden."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import orch.workflows

WORKFLOWS = Path(orch.workflows.__path__[0])
PURE = {
    *("__future__", "typing", "re", "math", "enum", "dataclasses", "fractions"),
    *("collections", "functools", "itertools", "operator"),
    "difflib",
}
MODEL_ALSO = {"calendar", "hashlib", "json", "pydantic"}
EFFECTS = {"open", "print", "input", "eval", "exec", "__import__", "breakpoint"}

RULES = sorted((WORKFLOWS / "rules").glob("*.py"))
PARTS = sorted((WORKFLOWS / "rules").glob("*/*.py"))
"""The files of rules that are folders."""

ESTIMATION = sorted((WORKFLOWS / "estimation").glob("*.py"))
MODEL = sorted((WORKFLOWS / "model").glob("*.py"))
ROUND = sorted((WORKFLOWS / "model" / "round").glob("*.py"))
ALL = [*RULES, *PARTS, *ESTIMATION, *MODEL, *ROUND]


def imports(path: Path) -> Iterator[str]:
    """Every imported module, relative ones with their dots."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def foreign(path: Path, allowed: set[str], *prefixes: str) -> list[str]:
    def own(name: str) -> bool:
        return any(name.startswith(each) and not name.removeprefix(each).startswith(".") for each in prefixes)

    return [
        name
        for name in imports(path)
        if not own(name) and (name.startswith(".") or name.partition(".")[0] not in allowed)
    ]


def test_all_rules_and_values_are_looked_at() -> None:
    assert len(RULES) + len(MODEL) >= 12
    assert {"bar.py", "student.py"} <= {path.name for path in ESTIMATION}
    assert {"plan.py", "trial.py"} <= {path.name for path in ROUND}
    assert {"tournament.py", "progress.py", "stuck.py", "feedback.py", "budget.py", "projection.py"} <= {
        path.name for path in RULES
    }


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_rules_import_the_model_estimation_and_pure_modules_only(path: Path) -> None:
    assert foreign(path, PURE, "..model.", "..estimation.") == []


@pytest.mark.parametrize("path", ESTIMATION, ids=lambda path: path.name)
def test_estimation_imports_the_model_itself_and_pure_modules_only(path: Path) -> None:
    assert foreign(path, PURE, "..model.", ".") == []


@pytest.mark.parametrize("path", PARTS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_parts_of_a_rule_import_the_model_and_one_another_only(path: Path) -> None:
    own = [name for name in imports(path) if name.startswith(".") and not name.startswith("..")]
    assert set(foreign(path, PURE, "...model.")) == set(own)


@pytest.mark.parametrize("path", MODEL, ids=lambda path: path.name)
def test_values_import_other_values_and_pure_modules_only(path: Path) -> None:
    assert foreign(path, PURE | MODEL_ALSO, ".") == []


@pytest.mark.parametrize("path", ROUND, ids=lambda path: path.name)
def test_values_of_rounds_import_other_values_and_pure_modules_only(path: Path) -> None:
    assert foreign(path, PURE | MODEL_ALSO, ".", "..") == []


@pytest.mark.parametrize("path", ALL, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_nothing_calls_an_effect(path: Path) -> None:
    calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    assert not EFFECTS & {func.id for func in calls if isinstance(func, ast.Name)}


@pytest.mark.parametrize(
    "line",
    [
        "import os",
        "import random as r",
        "from time import time",
        "from datetime import datetime",
        "from temporalio import workflow",
        "from .stuck import stuck",
        "from ..errors import OrchError",
        "from .. import effects",
    ],
)
def test_the_scan_sees_a_forbidden_import(line: str, tmp_path: Path) -> None:
    path = tmp_path / "rule.py"
    path.write_text(f"def f():\n    {line}\n")
    assert foreign(path, PURE, "..model.")
