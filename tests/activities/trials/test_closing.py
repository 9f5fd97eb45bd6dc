"""Measurements of a run that is closed, or was forgotten: nothing of them runs on, and nothing of them is left over."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

from orch.activities.collecting.bases import layers_named
from orch.activities.collecting.plan import Policy, carry_out, survey
from orch.activities.collecting.scene import Scene
from orch.activities.jobs import find_jobs
from orch.activities.runs import close_run_folder
from orch.activities.slots import held
from orch.activities.trials.leases import take
from orch.workflows.model.goal import CloseRun

MINE = min(os.sched_getaffinity(0))


def left(trial: Any) -> list[str]:
    """The copies that are there, and what runs wrote."""
    return [name for name in ("A", "B", "runs") if (trial.folder / name).exists()]


async def detached(rig: Any, request: Any, turnstile: Any) -> Any:
    """A trial that goes on without its worker."""
    running = asyncio.create_task(rig.ameasure(request))
    await turnstile.arrived(rig.trial(request), 1)
    return running


@pytest.mark.parametrize("provider", ["overlay", "clone"])
async def test_closing_a_run_ends_its_trials_and_removes_their_copies(
    make_rig: Callable[..., Any], turnstile: Any, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("ORCH_WORKSPACES", provider)
    rig = make_rig().with_plan(validate_=None)
    request = rig.measuring(rig.building(rig.candidate({"code.sh": turnstile.code})))
    built = rig.building(rig.plan.incumbent)
    assert (await rig.abuild(built)).failed is None  # and never measured
    running = await detached(rig, request, turnstile)

    close = CloseRun(run="round-c-r1", repo=str(rig.repo), store=rig.store.key)
    await asyncio.to_thread(close_run_folder, rig.home, close)

    assert find_jobs(rig.home.root) == []
    assert left(rig.trial(request)) == left(rig.trial(built)) == []
    assert held(rig.home.ports) == {}
    assert (await running).detail == "it ended after 0 of 4 pairs: somebody else ended it"
    lease = take(f"cpu-{MINE}")
    assert lease is not None
    os.close(lease)
    await asyncio.to_thread(close_run_folder, rig.home, close)


def test_the_copies_of_a_forgotten_run_are_collected(rig: Any) -> None:
    request = rig.building(rig.candidate({"knob": "80.0"}))
    assert rig.built(request).failed is None
    assert left(rig.trial(request)) == ["A", "B"]
    assert carry_out(survey(rig.home, frozenset(), Policy())) == []  # it may be live
    assert left(rig.trial(request)) == ["A", "B"]
    found = carry_out(survey(rig.home, frozenset({"round-c-r1"}), Policy()))
    assert [(item.kind, item.flaw) for item in found if item.kind == "run"] == [("run", "")]
    assert left(rig.trial(request)) == []


def test_what_a_built_trial_stands_on_is_not_collected(
    make_rig: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCH_WORKSPACES", "overlay")
    rig = make_rig()
    request = rig.building(rig.candidate({"knob": "80.0"}))
    assert rig.built(request).failed is None
    assert layers_named(Scene(rig.home, frozenset()))
    assert len(rig.measured(rig.measuring(request)).pairs) == 4
    assert not layers_named(Scene(rig.home, frozenset()))
