"""The secrets of a run: a file for their owner alone, and nowhere else."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from orch.activities.agents import secrets
from orch.activities.home import Home
from orch.activities.runs import close_run_folder
from orch.workflows.model.goal import CloseRun

RUN, KEY = "goal-x", "sk-do-not-tell"
ENVIRON = {"A_KEY": KEY, "B_KEY": "", "PATH": "/bin", "OTHER_KEY": "other"}
NAMES = ("A_KEY", "B_KEY", "C_KEY")


@pytest.fixture
def file(home: Home) -> Path:
    return home.run(RUN) / secrets.FILE


def close(home: Home) -> None:
    close_run_folder(home, CloseRun(run=RUN, store="none", repo="/nonexistent"))


def test_named_variables_that_are_set_are_kept_and_no_other(home: Home, file: Path) -> None:
    secrets.keep(home, RUN, NAMES, ENVIRON)

    assert secrets.find(home, RUN, (*NAMES, "OTHER_KEY", "PATH")) == {"A_KEY": KEY}
    assert "other" not in file.read_text()


def test_only_their_owner_can_read_them(home: Home, file: Path) -> None:
    secrets.keep(home, RUN, NAMES, ENVIRON)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_run_from_a_shell_never_gets_what_only_the_worker_has(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "of the worker")
    secrets.keep(home, RUN, NAMES, {})

    assert secrets.find(home, RUN, NAMES) == {}


def test_run_that_nobody_started_from_a_shell_gets_the_workers_own(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "of the worker")
    monkeypatch.setenv("B_KEY", "")
    monkeypatch.delenv("C_KEY", raising=False)

    assert secrets.find(home, RUN, NAMES) == {"A_KEY": "of the worker"}


def test_agent_gets_those_of_its_own_and_not_those_of_another(home: Home) -> None:
    secrets.keep(home, RUN, ("A_KEY", "OTHER_KEY"), ENVIRON)

    assert secrets.find(home, RUN, ("OTHER_KEY",)) == {"OTHER_KEY": "other"}


def test_they_are_forgotten_when_the_run_is_closed(home: Home, file: Path) -> None:
    secrets.keep(home, RUN, NAMES, ENVIRON)
    close(home)

    assert not file.exists()
    close(home)
