"""Outputs that are validated once the device is free, over the death of whoever does it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.activity import ActivityCancellationDetails

from orch.activities.jobs import find_jobs
from orch.workflows.errors import HostFaultError
from orch.workflows.model.round.trial import Validated

from .steps import cancelled, is_free, let_through

MINE = sorted(os.sched_getaffinity(0))


@pytest.fixture
def doubted(make_rig: Callable[..., Any], turnstile: Any) -> Any:
    """A rig whose validator waits in the turnstile."""
    rig = make_rig()
    wait = f"{turnstile.code} sh ./validate.sh"
    return rig.with_plan(validate_=rig.plan.commands.validate_.model_copy(update={"run": wait}))


async def test_outputs_are_validated_while_the_device_is_free_again(doubted: Any, turnstile: Any) -> None:
    rig = doubted
    request = rig.measuring(rig.building(rig.candidate({"knob": "80.0"})))
    trial, running = rig.trial(request), asyncio.create_task(rig.ameasure(request))
    await let_through(turnstile, trial, 1, 2)  # after the first pair
    assert not is_free(f"cpu-{MINE[0]}")
    await turnstile.arrived(trial, 3)
    assert is_free(f"cpu-{MINE[0]}")
    await let_through(turnstile, trial, 3, 4, 5)
    found = await running
    assert (len(found.pairs), found.invalid) == (4, None)


async def left_in_doubt(
    doubted: Any, turnstile: Any, environment: Any, details: ActivityCancellationDetails
) -> tuple[Any, Any]:
    """A trial that was measured, and whose validation was cancelled at its first output."""
    request = doubted.measuring(doubted.building(doubted.candidate({"knob": "80.0"})))
    trial = doubted.trial(request)
    running = asyncio.create_task(doubted.apairs(request))
    await let_through(turnstile, trial, 1, 2)
    await running
    validating = asyncio.create_task(doubted.avalidate(request, environment))
    await turnstile.arrived(trial, 3)
    await cancelled(validating, environment, details)
    return request, trial


async def test_a_worker_that_shuts_down_while_outputs_are_validated_has_none_validated_twice(
    doubted: Any, turnstile: Any, worker: Callable[[], Any]
) -> None:
    request, trial = await left_in_doubt(
        doubted, turnstile, worker(), ActivityCancellationDetails(worker_shutdown=True)
    )
    assert find_jobs(trial.folder) == [trial.folder / "check-1"]

    again = asyncio.create_task(doubted.avalidate(request))
    await let_through(turnstile, trial, 3, 4, 5)
    assert await again == Validated()
    assert turnstile.seen(trial) == 5
    assert await doubted.avalidate(request) == Validated()
    assert not (trial.folder / "A").exists()


async def test_cancelled_validation_ends_its_job_and_gives_everything_back(
    doubted: Any, turnstile: Any, worker: Callable[[], Any]
) -> None:
    _, trial = await left_in_doubt(doubted, turnstile, worker(), ActivityCancellationDetails(cancel_requested=True))
    assert find_jobs(trial.folder) == []
    assert not (trial.folder / "A").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_validator_that_is_ended_from_outside_again_and_again_says_nothing_of_the_candidate(
    doubted: Any, turnstile: Any, number: int
) -> None:
    request = doubted.measuring(doubted.building(doubted.candidate({"knob": "80.0"})))
    trial, running = doubted.trial(request), asyncio.create_task(doubted.apairs(request))
    await let_through(turnstile, trial, 1, 2)
    await running
    validating = asyncio.create_task(doubted.avalidate(request))
    for job in (1, 2, 3):
        await turnstile.arrived(trial, 2 + job)
        os.kill(json.loads((trial.folder / f"check-{job}/supervisor.json").read_text())["pid"], number)
    with pytest.raises(HostFaultError, match="the validator was ended from outside"):
        await validating

    again = asyncio.create_task(doubted.avalidate(request))
    await let_through(turnstile, trial, 6, 7, 8)
    assert await again == Validated()
