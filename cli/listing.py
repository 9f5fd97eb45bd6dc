"""The list of runs: what the engine knows, and what older runs left on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from temporalio.client import Client as Temporal
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from ..activities.artifacts import LEDGER, read_events
from ..activities.home import Home
from ..workflows.model.base import Value
from ..workflows.model.event import Event, RunEnded
from ..workflows.model.goal import GoalRequest
from ..workflows.model.round.view import RoundView
from ..workflows.model.view import RunStatus
from .link import RPC_TIMEOUT, Link
from .round_words import round_title
from .talk import one_line
from .views import AnyView, view_of

KINDS = ("goal", "round")
"""The kinds of runs there are."""

KIND = SearchAttributeKey.for_keyword("OrchKind")
REPO = SearchAttributeKey.for_keyword("OrchRepo")
STATUS = SearchAttributeKey.for_keyword("OrchStatus")

_ENDS = {
    WorkflowExecutionStatus.FAILED: RunStatus.FAILED,
    WorkflowExecutionStatus.TIMED_OUT: RunStatus.FAILED,
    WorkflowExecutionStatus.CANCELED: RunStatus.CANCELLED,
    WorkflowExecutionStatus.TERMINATED: RunStatus.CANCELLED,
}


class RunRow(Value):
    """One line of `orch list`.

    Attributes:
        id: the run's id.
        kind: `goal` and so on.
        status: where it is.
        repo: the user's working tree.
        goal: the goal's first line, or which round of which campaign.
        promote: where a success goes.
        started_at: ISO 8601, UTC.
        ended_at: the same; None while it is open.
    """

    id: str
    kind: str
    status: RunStatus
    repo: str = ""
    goal: str = ""
    promote: str = ""
    started_at: str = ""
    ended_at: str | None = None


def read_ledger(home: Home, run: str) -> tuple[Event, ...]:
    """The events that lie in the run's folder."""
    return read_events(home.run(run) / LEDGER)


def has_ended(events: Iterable[Event]) -> bool:
    """Whether the run's end is among the events: from then on the folder holds the whole truth."""
    return any(isinstance(event, RunEnded) for event in events)


def search_attributes(request: GoalRequest) -> TypedSearchAttributes:
    """What makes a run findable."""
    pairs = ((KIND, "goal"), (REPO, request.label or request.repo), (STATUS, RunStatus.RUNNING.value))
    return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in pairs])


def memo(request: GoalRequest) -> dict[str, str]:
    """What `orch list` shows of a run without asking its workflow."""
    noted = {"goal": one_line(request.contract.goal, 100), "promote": str(request.promote)}
    return {**noted, "repo": request.repo} if request.label else noted


async def list_runs(link: Link, *, live: bool = False) -> list[RunRow]:
    """All runs, newest first; `live` leaves out what has ended."""
    known = [] if link.unused else await link.call(lambda temporal: _asked(temporal, live=live))
    ids = {row.id for row in known}
    older = [] if live else [row for row in _on_disk(link) if row.id not in ids]
    return sorted([*known, *older], key=lambda row: (row.started_at, row.id), reverse=True)


async def _asked(temporal: Temporal, *, live: bool) -> list[RunRow]:
    kinds = ", ".join(f'"{kind}"' for kind in KINDS)
    query = f"OrchKind IN ({kinds})" + (' AND ExecutionStatus = "Running"' if live else "")
    return [await _row(found) async for found in temporal.list_workflows(query, rpc_timeout=RPC_TIMEOUT)]


async def _row(found: WorkflowExecution) -> RunRow:
    said = found.typed_search_attributes
    noted = await _noted(found)
    return RunRow(
        id=found.id,
        kind=said.get(KIND) or "goal",
        status=_status(found, said.get(STATUS) or "running"),
        repo=str(noted.get("repo") or said.get(REPO) or ""),
        goal=str(noted.get("goal", "")),
        promote=str(noted.get("promote", "")),
        started_at=_iso(found.start_time) or "",
        ended_at=_iso(found.close_time),
    )


async def _noted(found: WorkflowExecution) -> Mapping[str, Any]:
    """The memo; one run that cannot be read must not hide the others."""
    from ..worker.codec import UnreadablePayloadError

    try:
        return await found.memo()
    except UnreadablePayloadError as error:
        return {"goal": f"(unreadable: {error.message})"}


def _status(found: WorkflowExecution, said: str) -> RunStatus:
    """What the run said of itself, unless its workflow was ended from outside."""
    return (_ENDS.get(found.status) if found.status else None) or RunStatus(said)


def _iso(time: datetime | None) -> str | None:
    return time.astimezone(UTC).isoformat(timespec="milliseconds") if time else None


def _on_disk(link: Link) -> list[RunRow]:
    folders = (link.home.root / "runs").glob(f"*/{LEDGER}")
    ledgers = (read_ledger(link.home, path.parent.name) for path in folders)
    return [_row_of(view_of(events)) for events in ledgers if has_ended(events)]


def _row_of(view: AnyView) -> RunRow:
    return RunRow(
        id=view.id,
        kind=view.kind,
        status=view.status,
        repo=view.repo,
        goal=round_title(view) if isinstance(view, RoundView) else one_line(view.goal, 100),
        promote=view.promote,
        started_at=view.started_at,
        ended_at=view.ended_at,
    )
