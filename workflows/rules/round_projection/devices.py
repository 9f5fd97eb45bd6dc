"""The queue and the device sets: what each measures or waits for, and how much of the time it was held."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from ...model.event import Event
from ...model.round import event as ev
from ...model.round.lane_view import TicketView
from ...model.round.ticket import TicketState
from ...model.round.view import DeviceState, DeviceView, GuardView, QueueView
from .reading import cut, every, measurements

Span = tuple[float, float]
"""When a measurement ended, in Unix seconds, and how long it held its device set before."""


def queue_view(devices: Sequence[DeviceView], tickets: Iterable[TicketView]) -> QueueView:
    """How many tickets wait, and whether none is measured."""
    paused = [device for device in devices if device.state is DeviceState.PAUSED]
    length = sum(ticket.state is TicketState.QUEUED for ticket in tickets)
    if not paused or len(paused) < len(devices):
        return QueueView(length=length)
    return QueueView(paused=True, why=cut("; ".join(dict.fromkeys(device.why for device in paused))), length=length)


def guard_view(events: Sequence[Event]) -> GuardView:
    """The measurements of the incumbent against itself."""
    results = [event.result for event in every(events, ev.GuardMeasured)]
    failed = sum(not result.passed for result in results)
    return GuardView(measured=len(results), failed=failed, why=cut(results[-1].why) if results else "")


def device_views(events: Sequence[Event], names: Sequence[str], *, over: bool) -> tuple[DeviceView, ...]:
    """The device sets in the plan's order."""
    spans: dict[str, list[Span]] = defaultdict(list)
    for end, found in measurements(events):
        spans[found.device].append((end, found.held_s))
    noise = {event.measurement.device: event.noise for event in every(events, ev.GuardMeasured) if event.noise}
    window = _window(events)
    return tuple(
        DeviceView(
            name=name,
            noise=noise.get(name),
            measurements=len(spans[name]),
            held_s=sum(seconds for _, seconds in spans[name]),
            busy=_share(spans[name], window) if window else None,
        ).model_copy(update={} if over else _now(name, events))
        for name in names
    )


def _window(events: Sequence[Event]) -> tuple[float, float] | None:
    """From the first ticket to the last event of measuring; None before there is such a time."""
    begin = next((event.time for event in events if isinstance(event, ev.TicketQueued)), None)
    if begin is None:
        return None
    decided = next((event.time for event in events if isinstance(event, ev.RoundDecided)), None)
    end = events[-1].time if decided is None else decided
    return (begin, end) if end > begin else None


def _share(spans: Iterable[Span], window: tuple[float, float]) -> float:
    begin, end = window
    held = sum(max(0.0, min(there, end) - max(there - seconds, begin)) for there, seconds in spans)
    return round(min(held / (end - begin), 1.0), 4)


def _now(name: str, events: Sequence[Event]) -> dict[str, object]:
    """What a device set is at: one ticket is measured while the next is built."""
    built: dict[str, int] = {}
    at: ev.DeviceTurned | None = None
    paused = waiting = back = ""
    for event in events:
        match event:
            case ev.TicketTaken() if event.device == name or event.ticket == back:
                waiting = back = ""
                if event.device == name:
                    built[event.ticket] = event.measurement
            case ev.DeviceTurned(device=device) if device == name:
                at = event if event.measurement else None
                built.pop(event.ticket or "", None)
            case ev.TicketPutBack(device=device) if device == name:
                waiting, back, at = event.why, event.ticket, None
            case ev.TicketMeasured() | ev.TicketRejected():
                at = None if at and at.ticket == event.ticket else at
                waiting, back = ("", "") if event.ticket == back else (waiting, back)
                built.pop(event.ticket, None)
            case ev.GuardMeasured() if event.measurement.device == name:
                at = None
            case ev.QueuePaused(device=device) if device == name:
                paused = event.why
            case ev.QueueResumed(device=device) if device == name:
                paused = ""
            case _:
                pass
    state = DeviceState.MEASURING if at else DeviceState.WAITING if waiting else DeviceState.IDLE
    return {
        "state": DeviceState.PAUSED if paused else state,
        "ticket": (at.ticket or "") if at else back,
        "ordinal": at.measurement if at else 0,
        "ahead": next(iter(built), ""),
        "why": cut(paused or waiting),
    }
