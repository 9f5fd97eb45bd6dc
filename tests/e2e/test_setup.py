"""Set-up and carried paths: every copy has them, and nothing of them is taken for an agent's change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from orch import Client
from orch.activities.artifacts import PREPARED
from orch.activities.git import Git
from orch.workflows.model.goal import RunPrepared
from orch.workflows.model.reason import RunReason
from orch.workflows.model.view import RunStatus, RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]


@pytest.fixture
def contract(project: Path, tmp_path: Path) -> Path:
    """Set-up that needs a carried file, leaves an untracked file and changes a tracked one; a rung that needs both."""
    with (project / ".gitignore").open("a") as ignored:
        ignored.write("deps/\n")
    (project / "deps").mkdir()
    (project / "deps/tool").write_text("carried\n")
    (project / ".env").write_text("KEY=hush-hush\n")
    path = tmp_path / "contract.yaml"
    path.write_text(
        "goal: raise the level\n"
        "rungs:\n"
        "  - {name: level, run: grep -q carried built && grep -q hush .env && grep -q 3 level}\n"
        "setup: cp deps/tool built && echo locked >> notes.txt\n"
        "carry: [deps, .env]\n"
    )
    return path


async def test_what_setup_makes_is_there_for_agents_and_checks_and_no_change_of_theirs(
    client: Client, run_goal: RunGoal, project: Path, contract: Path
) -> None:
    """G47: nor does a carried secret that nobody ignores get into a commit."""
    given: dict[str, Any] = {"goal": "", "verify": (), "contract": contract}

    view = await run_goal("cmd:cat built deps/tool && echo 3 > level", "cmd:cat built", **given)

    assert view.status is RunStatus.SUCCEEDED
    assert "set-up changes tracked files: notes.txt; no candidate's change" in view.warnings
    winner, idle = view.iterations[0].candidates
    assert winner.paths == ("level",)
    assert idle.changed is False
    assert (project / "notes.txt").read_text() == "edited by the user\n"
    for commit in (view.baseline, winner.commit):
        assert b".env" not in _store(client, view.id).lines("ls-tree", "-r", "-z", "--name-only", str(commit))
    assert not (project / "built").exists()


async def test_agent_that_changes_what_setup_made_is_recorded(run_goal: RunGoal, project: Path, contract: Path) -> None:
    given: dict[str, Any] = {"goal": "", "verify": (), "contract": contract, "promote": "none"}

    view = await run_goal("cmd:echo more >> built; echo 3 > level", **given)

    assert set(view.iterations[0].candidates[0].paths) == {"built", "level"}


async def test_setup_that_hangs_ends_the_run_at_its_limit_before_any_agent(
    run_goal: RunGoal, project: Path, contract: Path
) -> None:
    text = contract.read_text().replace("setup: ", "setup_timeout: 1s\nsetup: echo begun; sleep 60; ")
    contract.write_text(text)
    given: dict[str, Any] = {"goal": "", "verify": (), "contract": contract}

    view = await run_goal("cmd:echo 3 > level", **given)

    assert view.reason is not None
    assert view.reason.code is RunReason.SETUP_FAILED
    assert "timed out" in str(view.reason.data["exit"])
    assert view.iterations == ()


async def test_baseline_that_cannot_be_checked_out_is_refused_before_any_agent(
    run_goal: RunGoal, project: Path, kit: Any, climb: Callable[[int], str], fingerprint: Any
) -> None:
    """A filter whose program is there and fails: nothing but a checkout can tell."""
    kit.write(project, {".gitattributes": "notes.txt filter=moody\n"})
    for key, value in (("smudge", "false"), ("clean", "cat"), ("required", "true")):
        kit.git(project, "config", f"filter.moody.{key}", value)
    before = fingerprint(project)

    view = await run_goal(climb(3))

    assert view.reason is not None
    assert view.reason.code is RunReason.PREFLIGHT_FAILED
    assert "the commit cannot be checked out: " in str(view.reason.data["detail"])
    assert "moody" in str(view.reason.data["detail"])
    assert view.iterations == ()
    assert fingerprint(project) == before


def _store(client: Client, run: str) -> Git:
    prepared = RunPrepared.model_validate_json((client.home.run(run) / PREPARED).read_text())
    return Git(client.home.store(prepared.store) / "store.git")
