"""Hosts whose clocks differ keep the same deadlines."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.testing import ActivityEnvironment

from orch.activities import clock
from orch.workflows.model.attempt import AgentReport
from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.outcome import Account, OutcomeKind

HOUR = 3600.0


def _offset_of(clock_ahead_s: float) -> float:
    """What an activity finds on a host whose clock is that much ahead."""
    environment = ActivityEnvironment()
    started = datetime.now(UTC) - timedelta(seconds=clock_ahead_s)
    environment.info = replace(environment.info, started_time=started)
    return environment.run(clock.offset)


@pytest.mark.parametrize("ahead", [HOUR, -HOUR, 24 * HOUR])
def test_deadline_in_a_minute_is_in_a_minute_on_a_host_whose_clock_is_off(ahead: float) -> None:
    engine_now = time.time() - ahead
    deadline = engine_now + 60.0

    left = deadline + _offset_of(ahead) - time.time()

    assert left == pytest.approx(60.0, abs=2.0)


@pytest.mark.parametrize("ahead", [0.0, 3.0, -3.0])
def test_small_difference_is_what_the_way_took(ahead: float) -> None:
    assert _offset_of(ahead) == 0.0


def test_outside_of_an_activity_there_is_one_clock() -> None:
    assert clock.offset() == 0.0


def test_pause_that_a_provider_asked_for_is_told_on_the_engines_clock() -> None:
    now = time.time()
    account = Account(error=OutcomeKind.RATE_LIMITED, retry_at=now + 60)
    report = AgentReport(exit=Exit(kind=ExitKind.OK), account=account)

    told = clock.report_of(report, HOUR).account

    assert told is not None
    assert told.retry_at == pytest.approx(now + 60 - HOUR)
