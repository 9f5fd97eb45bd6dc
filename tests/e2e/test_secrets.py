"""Secrets by reference, in a real run: those have them who may, and no place that a run is read from shows one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from orch import Client
from orch.activities.agents import secrets
from orch.workflows.errors import RefusedError
from orch.workflows.model.view import RunView

pytestmark = [pytest.mark.engine]

RunGoal = Callable[..., Awaitable[RunView]]

TOKEN, LOGIN = "tok-kept-from-all-7351", "log-kept-from-all-9127"
CONTRACT = """
goal: raise the level
secrets:
  TOKEN: env:THE_TOKEN
  LOGIN: {from: "cmd:printf %s-%s log-kept from-all-9127", to: [setup]}
setup: echo "$LOGIN" > installed-with; test -z "$TOKEN"
rungs:
  - {name: told, run: 'cat told installed-with; test -z "$TOKEN$LOGIN" && test -s told'}
  - {name: never, run: 'cat told >&2; exit 1'}
"""


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A contract with a secret for agents and one for set-up, whose rungs print both."""
    monkeypatch.setenv("THE_TOKEN", TOKEN)
    path = tmp_path / "contract.yaml"
    path.write_text(CONTRACT)
    return {"goal": "", "verify": (), "contract": path, "max_iterations": 1, "promote": "none"}


async def test_secrets_reach_who_may_have_them_and_are_shown_nowhere(
    client: Client, run_goal: RunGoal, given: dict[str, Any]
) -> None:
    view = await run_goal('cmd:echo "$TOKEN$LOGIN"; echo "$TOKEN" > told; cat installed-with', **given)

    (candidate,) = view.iterations[0].candidates
    assert (candidate.rungs_passed, candidate.rungs_total) == (1, 2)
    job = client.home.run(view.id) / "attempts" / "i1-c1-b1" / "agent"
    assert (job / "1-stdout").read_text() == "[TOKEN]\n[LOGIN]\n"
    read = (client.home.engine, client.home.run(view.id))
    files = [path for folder in read for path in folder.rglob("*") if path.is_file() and "tree" not in path.parts]
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []
    assert [path for path in files if LOGIN.encode() in path.read_bytes()] == []
    assert not (client.home.run(view.id) / secrets.DECLARED).exists()


async def test_reference_that_fails_refuses_the_start(
    run_goal: RunGoal, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THE_TOKEN")

    with pytest.raises(RefusedError, match="secret TOKEN: THE_TOKEN is not set"):
        await run_goal("cmd:true", **given)
