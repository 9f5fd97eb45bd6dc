"""What an agent is kept from, and what it cannot tell: variables of the user's shell, and the secrets it was given."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from orch.activities.agents import secrets
from orch.activities.agents.preparing import AgentRun
from orch.activities.agents.running import run_supervised
from orch.activities.home import Home
from orch.activities.jobs import run_job
from orch.activities.measuring.ladder import ladder_job
from orch.activities.measuring.setup import set_up
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.outcome import OutcomeKind

RUN, KEY = "goal-x", "sk-do-not-tell"
SHELL = ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "KUBECONFIG", "MADE_UP")
DONE = """echo '{"text": "done"}'; echo '{"end": "stop"}'"""


class Stage(Protocol):
    home: Home
    launch: Callable[..., AgentRun]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], set[str]]:
    """Which variables of the user's shell stand in a file of `env`'s; every one is set."""
    for name in SHELL:
        monkeypatch.setenv(name, f"value of {name}")

    def read(path: Path) -> set[str]:
        names = {line.partition("=")[0] for line in path.read_text().splitlines()}
        assert {"PATH", "HOME", "ORCH_RUN"} <= names
        return names & set(SHELL)

    return read


async def test_no_variable_of_the_users_shell_reaches_agent_set_up_or_rung(
    stage: Stage, seen: Callable[[Path], set[str]]
) -> None:
    run = stage.launch(f"env > seen-by-agent; {DONE}")
    tree = run.place.folder / "tree"
    contract = Contract(goal="x", rungs=(Rung(name="a", run="env > seen-by-rung"),), setup="env > seen-by-setup")

    await set_up(run.place, tree, contract, (), sandbox=False)
    await run_supervised(run)
    await run_job(run.place.folder / "rungs", ladder_job(run.place, contract, gate=True, sandbox=False))

    assert [seen(tree / f"seen-by-{who}") for who in ("setup", "agent", "rung")] == [set(), set(), set()]
    assert os.environ["MADE_UP"]


async def test_agent_that_prints_its_key_shows_the_name_of_it_everywhere(stage: Stage) -> None:
    secrets.keep(stage.home, RUN, ("TALKER_KEY",), {"TALKER_KEY": KEY})
    words = """echo "{\\"text\\": \\"it is $TALKER_KEY\\"}"; echo "$TALKER_KEY" >&2; echo '{"end": "stop"}'"""
    run = stage.launch(words)

    ran = await run_supervised(run)

    assert ran.report.message == "it is [TALKER_KEY]"
    assert ran.report.stderr.head == "[TALKER_KEY]\n"
    assert ran.answer.endswith("it is [TALKER_KEY]")
    written = [path for path in run.place.folder.rglob("*") if path.is_file() and KEY in path.read_text()]
    assert written == []


async def test_key_in_what_the_agent_wrote_into_its_own_files_is_not_told_either(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from talker import TalkerAgent  # type: ignore[import-not-found]

    from orch.activities.agents.said import Failed

    said = [Failed(OutcomeKind.REFUSED, f"401 for {KEY}", None)]
    monkeypatch.setattr(TalkerAgent, "leftovers", lambda *_: iter(said))
    secrets.keep(stage.home, RUN, ("TALKER_KEY",), {"TALKER_KEY": KEY})

    ran = await run_supervised(stage.launch("echo '{\"turn\": 1}'"))

    assert ran.outcome.detail == "401 for [TALKER_KEY]"
    assert ran.report.account is not None
    assert ran.report.account.detail == "401 for [TALKER_KEY]"


async def test_agent_that_breaks_a_limit_of_the_host_has_an_outcome_of_its_own(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCH_LIMIT_FILE", "1m")
    run = stage.launch("exec dd if=/dev/zero of=big bs=1M count=3")

    ran = await run_supervised(run)

    assert (ran.outcome.kind, ran.outcome.detail) == (OutcomeKind.RESOURCE_LIMIT, "1 MiB in one file")
