"""The command line as its tests use it: called in process, on a real repository, with a state directory of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from click.testing import CliRunner, Result

from orch.cli.main import cli


class Orch(Protocol):
    """Run `orch ARGS` and return its result."""

    def __call__(self, *args: str) -> Result: ...


@pytest.fixture
def orch() -> Orch:
    """The command line, called as a user in the current folder would."""
    return lambda *args: CliRunner().invoke(cli, args, prog_name="orch")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory that does not exist yet."""
    path = tmp_path / "state"
    monkeypatch.setenv("ORCH_STATE", str(path))
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
def repo(make_repo: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project, and the current folder."""
    path = make_repo(tmp_path / "project", {"slug.py": "", "tests/test_slug.py": "", "check.sh": "exit 1\n"})
    monkeypatch.chdir(path)
    return path


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with a file of `golden/`; `ORCH_UPDATE_GOLDEN=1` writes it instead."""

    def compare(name: str, text: str) -> None:
        path = Path(__file__).with_name("golden") / name
        if os.environ.get("ORCH_UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
