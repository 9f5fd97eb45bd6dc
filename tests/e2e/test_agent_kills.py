"""S15, S16, S20: a killed worker costs no agent its work, and nobody is paid twice or put into another place."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch import Client
from orch.activities.agents import resting
from orch.worker.records import read_worker
from orch.workflows.model.view import CandidateView, RunStatus, RunView

pytestmark = [pytest.mark.engine]

Talks = Callable[..., str]

TELL = 'echo "$(pwd -P) $id" >> $HOME/where'
LIMIT = "429 usage limit reached, try again in"


class Scene:
    """Runs that go on at the same time; the worker is killed once, when all of them are where it hurts.

    Attributes:
        gate: the file whose agents wait until the worker is dead.
    """

    def __init__(self, client: Client, repo: Path, gate: Path, *, count: int) -> None:
        self.client, self.gate = client, gate
        self._repo, self._ready = repo, asyncio.Barrier(count)

    async def run(self, sign: str | Path, *agents: str, **options: Any) -> RunView:
        """The end of a run whose worker was killed after it had shown a sign, a file in its attempts' folder."""
        given = {"goal": "raise", "repo": self._repo, "verify": ("grep -q 2 level",), "promote": "none", **options}
        run = await self.client.start_goal(agent=agents, **given)
        async with asyncio.timeout(60):
            while not (self.client.home.run(run) / "attempts" / sign).exists():
                await asyncio.sleep(0.05)
            if await self._ready.wait() == 0:
                self._kill()
        return await self.client.result(run)

    def _kill(self) -> None:
        worker = read_worker(self.client.home)
        assert worker is not None
        os.kill(worker.pid, signal.SIGKILL)
        self.gate.touch()

    def where(self, view: RunView, name: str) -> list[str]:
        """Where each launch of an attempt stood, and in which session; all stood in the attempt's working copy."""
        attempt = self.client.home.run(view.id) / "attempts" / name
        lines = [line.split() for line in (attempt / "home/where").read_text().splitlines()]
        assert {folder for folder, _ in lines} == {str(attempt.resolve() / "tree")}
        return [session for _, session in lines]


async def test_killed_worker_costs_nobody_anything(client: Client, project: Path, talks: Talks, tmp_path: Path) -> None:
    scene = Scene(client, project, tmp_path / "gate", count=4)

    await asyncio.gather(
        _session_goes_on(scene, talks), _launched_again(scene, talks), _rests(scene, talks), _reviews(scene, talks)
    )


def wait(scene: Scene) -> str:
    """The words by which an agent shows its sign and waits."""
    return f"touch $HOME/ready; until [ -e {scene.gate} ]; do sleep 0.05; done"


async def _session_goes_on(scene: Scene, talks: Talks) -> None:
    """The second attempt's share of the session's total is counted once, and it stands in its own place."""
    spec = talks(
        f"{TELL}; begin; say one 60; if [ $ORCH_ITERATION = 2 ]; then {wait(scene)}; fi; say two 40\n"
        "echo $(( $(cat level) + 1 )) > level; stop",
        "claude",
    )

    view = await scene.run("i2-c1-b2/home/ready", spec)

    candidates = [iteration.candidates[0] for iteration in view.iterations]
    assert view.status is RunStatus.SUCCEEDED
    assert [(c.usage.tokens, c.usage.usd, c.launches) for c in candidates] == [(100, 100.0, 1)] * 2
    assert scene.where(view, "i1-c1-b1") == scene.where(view, "i2-c1-b2") == [candidates[0].session]


async def _launched_again(scene: Scene, talks: Talks) -> None:
    """The second launch in the same attempt takes up the same session in the same place."""
    limit = f"touch $HOME/told; fail '{LIMIT} 1s'; exit"
    spec = talks(f"{TELL}; begin; say one 10; [ -e $HOME/told ] || {{ {limit}; }}; {wait(scene)}\necho 2 > level; stop")

    view = await scene.run("i1-c1-b1/home/ready", spec)

    candidate = _only(view)
    assert (candidate.outcome, candidate.launches, candidate.usage.tokens) == ("done", 2, 20)
    assert scene.where(view, "i1-c1-b1") == [candidate.session] * 2


async def _rests(scene: Scene, talks: Talks) -> None:
    """A rest is over when its time has come, whoever was dead meanwhile."""
    work = f"if [ -e {scene.gate} ]; then echo 2 > level; stop; else fail '{LIMIT} 4s'; fi"
    spec = talks(f"{TELL}; begin; say one 10; {work}")

    view = await scene.run(resting._resting(scene.client.home, spec), spec)

    candidate = _only(view)
    assert (candidate.outcome, candidate.launches, candidate.usage.tokens) == ("done", 2, 20)
    assert scene.where(view, "i1-c1-b1") == [candidate.session] * 2


async def _reviews(scene: Scene, talks: Talks) -> None:
    """The reviewer is asked once."""
    reviewer = talks(f"{TELL}; begin; say hm 10; {wait(scene)}; approve")

    view = await scene.run("i1-c0-b0/review/home/ready", "cmd:echo 2 > level", sign_off=reviewer)

    assert (view.iterations[0].review, view.usage.tokens) == ("approved: fine", 10)
    assert len(scene.where(view, "i1-c0-b0/review")) == 1


def _only(view: RunView) -> CandidateView:
    assert view.status is RunStatus.SUCCEEDED
    (iteration,) = view.iterations
    return iteration.candidates[0]
