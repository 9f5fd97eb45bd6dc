"""What a client asks of schedules: create, look, pause, run now, delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from temporalio.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
)
from temporalio.service import RPCError, RPCStatusCode

from ..workflows.errors import RefusedError
from ..workflows.host import ORCH_QUEUE
from ..workflows.model.base import Value
from ..workflows.model.goal import GoalRequest
from .link import RPC_TIMEOUT, Link
from .nearest import nearest
from .placing import priority
from .talk import one_line

T = TypeVar("T")

OVERLAPS = {
    "skip": ScheduleOverlapPolicy.SKIP,
    "buffer-one": ScheduleOverlapPolicy.BUFFER_ONE,
    "buffer-all": ScheduleOverlapPolicy.BUFFER_ALL,
    "cancel-other": ScheduleOverlapPolicy.CANCEL_OTHER,
    "terminate-other": ScheduleOverlapPolicy.TERMINATE_OTHER,
    "allow-all": ScheduleOverlapPolicy.ALLOW_ALL,
}
"""What happens when it is time while the last run still runs."""


class Timing(Value):
    """When a schedule acts, and what it does about missed, overlapping and failed runs.

    Attributes:
        cron: cron lines; empty when `every_s` is given.
        every_s: seconds between runs.
        time_zone: an IANA name that the cron lines are read in.
        overlap: a key of OVERLAPS.
        catchup_s: runs missed by more than this are left out.
        pause_on_failure: whether a run that did not succeed pauses the schedule.
        jitter_s: a random delay of at most this.
    """

    cron: tuple[str, ...] = ()
    every_s: float | None = None
    time_zone: str = "UTC"
    overlap: str = "skip"
    catchup_s: float = 3600.0
    pause_on_failure: bool = True
    jitter_s: float | None = None


class ScheduleRow(Value):
    """One schedule as it stands.

    Attributes:
        id: its name.
        paused: whether it rests.
        note: why, or who said so.
        next_at: when it acts next; None when paused or over.
        goal: what it starts.
        runs: how often it acted.
        skipped: how often the overlap policy left a run out.
        recent: when it acted last, oldest first.
    """

    id: str
    paused: bool
    note: str = ""
    next_at: datetime | None = None
    goal: str = ""
    runs: int = 0
    skipped: int = 0
    recent: tuple[datetime, ...] = ()


async def create(link: Link, name: str, request: GoalRequest, timing: Timing) -> None:
    """Create a schedule that starts the request's run; refused when its name is taken."""
    from ..worker.state import host_id

    temporal = await link.temporal()
    fixed = request.model_copy(update={"run": name, "host": host_id(link.home)})
    goal = one_line(request.contract.goal, 100)
    action = ScheduleActionStartWorkflow(
        "Scheduled",
        fixed,
        id=name,
        task_queue=ORCH_QUEUE,
        static_summary=one_line(goal, 60),
        priority=priority(fixed),
    )
    schedule = Schedule(action=action, spec=_spec(timing), policy=_policy(timing))
    try:
        await temporal.create_schedule(name, schedule, memo={"goal": goal}, rpc_timeout=RPC_TIMEOUT)
    except ScheduleAlreadyRunningError:
        raise RefusedError(f"a schedule {name} exists", hint=f"orch schedule delete {name}, or another --id") from None
    except RPCError as error:
        if error.status is RPCStatusCode.INVALID_ARGUMENT:
            raise RefusedError(
                f"the schedule cannot be used: {error.message}", hint="see --cron and --time-zone"
            ) from None
        raise


def _spec(timing: Timing) -> ScheduleSpec:
    every = [ScheduleIntervalSpec(every=timedelta(seconds=timing.every_s))] if timing.every_s else []
    jitter = timedelta(seconds=timing.jitter_s) if timing.jitter_s else None
    return ScheduleSpec(
        cron_expressions=list(timing.cron), intervals=every, jitter=jitter, time_zone_name=timing.time_zone
    )


def _policy(timing: Timing) -> SchedulePolicy:
    return SchedulePolicy(
        overlap=OVERLAPS[timing.overlap],
        catchup_window=timedelta(seconds=timing.catchup_s),
        pause_on_failure=timing.pause_on_failure,
    )


async def list_schedules(link: Link) -> list[str]:
    """The names of all schedules."""
    if link.unused:
        return []
    temporal = await link.temporal()
    return sorted([found.id async for found in await temporal.list_schedules(rpc_timeout=RPC_TIMEOUT)])


async def show(link: Link, name: str) -> ScheduleRow:
    """One schedule as it stands."""
    return await _row(name, await _with(link, name, lambda handle: handle.describe(rpc_timeout=RPC_TIMEOUT)))


async def pause(link: Link, name: str, note: str) -> None:
    """Let it rest."""
    _refuse_plain(link, note)
    await _with(link, name, lambda handle: handle.pause(note=note or None, rpc_timeout=RPC_TIMEOUT))


async def resume(link: Link, name: str, note: str) -> None:
    """Let it act again."""
    _refuse_plain(link, note)
    await _with(link, name, lambda handle: handle.unpause(note=note or None, rpc_timeout=RPC_TIMEOUT))


async def run_now(link: Link, name: str) -> None:
    """Act once, now, by its own overlap policy."""
    await _with(link, name, lambda handle: handle.trigger(rpc_timeout=RPC_TIMEOUT))


async def delete(link: Link, name: str) -> None:
    """Forget it; runs it started go on."""
    await _with(link, name, lambda handle: handle.delete(rpc_timeout=RPC_TIMEOUT))


async def _with(link: Link, name: str, ask: Callable[[ScheduleHandle], Awaitable[T]]) -> T:
    if link.unused:
        raise _unknown(name, [])
    try:
        return await link.call(lambda temporal: ask(temporal.get_schedule_handle(name)))
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise _unknown(name, await list_schedules(link)) from None
        raise


def _refuse_plain(link: Link, note: str) -> None:
    """The engine keeps notes of schedules as they are written."""
    from ..worker.keys import load_keys

    if note and load_keys(link.home):
        raise RefusedError("the note would not be encrypted", hint="leave out --note")


def _unknown(name: str, known: list[str]) -> RefusedError:
    close = nearest(name, known)
    hint = f"did you mean {close}?" if close else "`orch schedule list` shows all"
    return RefusedError(f"no schedule {name}", hint=hint)


async def _row(name: str, found: ScheduleDescription) -> ScheduleRow:
    coming = [time.astimezone(UTC) for time in found.info.next_action_times]
    return ScheduleRow(
        id=name,
        paused=found.schedule.state.paused,
        note=found.schedule.state.note or "",
        next_at=None if found.schedule.state.paused else next(iter(coming), None),
        goal=str((await found.memo()).get("goal", "")),
        runs=found.info.num_actions,
        skipped=found.info.num_actions_skipped_overlap,
        recent=tuple(action.started_at.astimezone(UTC) for action in found.info.recent_actions),
    )
