"""What a run left in the engine: events and bytes per candidate, and where its time went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from .contenders import Sample


@dataclass(frozen=True)
class Trace:
    """One run as the engine recorded it.

    Attributes:
        own: (events, bytes) of each candidate's own history.
        share: (events, bytes) per candidate in the parent's: all from its first child's start to its last one's end.
        steps: for each kind of activity the (waiting, working) seconds of all of them.
        phases: seconds of the whole command, by name, in order.
    """

    own: Sequence[tuple[int, int]]
    share: tuple[float, float]
    steps: dict[str, list[tuple[float, float]]] = field(repr=False)
    phases: dict[str, float] = field(repr=False)


async def trace(client: Client, sample: Sample) -> Trace:
    """Read the histories of a finished run and of its attempts."""
    parent = await _events(client, sample.run)
    names = [e.child_workflow_execution_started_event_attributes.workflow_execution.workflow_id for e in parent]
    children = [await _events(client, name) for name in names if name]
    slices = _children_part(parent)
    steps: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for events in (parent, *children):
        for name, times in _activities(events):
            steps[name].append(times)
    lives = [_seconds(events[-1].event_time) - _seconds(events[0].event_time) for events in children]
    working = [sum(sum(times) for _, times in _activities(events)) for events in children]
    steps["(between the steps of an attempt)"] = [(0.0, a - b) for a, b in zip(lives, working, strict=True)]
    return Trace(
        own=[_size(events) for events in children],
        share=(len(slices) / len(children), _size(slices)[1] / len(children)),
        steps=steps,
        phases=_phases(sample, parent, slices),
    )


def typical(trace: Trace) -> tuple[float, float, float, float]:
    """Events and bytes per candidate: its own history's (medians), the parent's share."""
    own = (median(events for events, _ in trace.own), median(size for _, size in trace.own))
    return (*own, *trace.share)


async def _events(client: Client, run: str) -> list[HistoryEvent]:
    return list((await client.get_workflow_handle(run).fetch_history()).events)


def _children_part(events: list[HistoryEvent]) -> list[HistoryEvent]:
    kinds = [event.event_type for event in events]
    first = kinds.index(EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED)
    last = len(kinds) - 1 - kinds[::-1].index(EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED)
    return events[first : last + 1]


def _activities(events: Iterable[HistoryEvent]) -> list[tuple[str, tuple[float, float]]]:
    """Each completed activity's name and its seconds from scheduled to started, and to completed."""
    by_id = {event.event_id: event for event in events}
    found = []
    for event in by_id.values():
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            ended = event.activity_task_completed_event_attributes
            scheduled, started = by_id[ended.scheduled_event_id], by_id[ended.started_event_id]
            name = scheduled.activity_task_scheduled_event_attributes.activity_type.name
            times = [_seconds(e.event_time) for e in (scheduled, started, event)]
            found.append((name, (times[1] - times[0], times[2] - times[1])))
    return found


def _phases(sample: Sample, parent: list[HistoryEvent], children: list[HistoryEvent]) -> dict[str, float]:
    marks = [sample.started_at, *(_seconds(e.event_time) for e in (parent[0], children[0], children[-1], parent[-1]))]
    marks.append(sample.started_at + sample.wall_s)
    names = (
        "command line until the run is started",
        "baseline taken and measured",
        "attempts",
        "head, gate, promotion, close",
        "command line after the run's end",
    )
    return {name: marks[i + 1] - marks[i] for i, name in enumerate(names)}


def _size(events: Sequence[HistoryEvent]) -> tuple[int, int]:
    return len(events), sum(event.ByteSize() for event in events)


def _seconds(time: Timestamp) -> float:
    return float(time.seconds) + time.nanos / 1e9
