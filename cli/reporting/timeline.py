"""A round over time: when each lane's agent was at work, and what each device set measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...workflows.model.event import Event
from ...workflows.model.round import event as ev
from ...workflows.model.round.trial import Measurement
from ...workflows.model.round.view import RoundView
from ..durations import show_duration
from ..talk import one_line
from .axes import Axis
from .marks import drawing, hint, label
from .markup import Html, el

WIDTH, ROW, TOP, LEFT, RIGHT = 1000.0, 30.0, 14.0, 130.0, 980.0

LEGEND = (
    "grey: an agent at work, with a stroke for each ticket it submitted; blue: tickets; outlined: the incumbent "
    "against itself; green: composition and reruns; shaded: paused"
)


@dataclass(frozen=True)
class _Bar:
    """A time on a row, in Unix seconds."""

    row: str
    begin: float
    end: float
    kind: str
    about: str


def timeline(view: RoundView, events: Sequence[Event]) -> Html:
    """The drawing; nothing before anything took time."""
    bars = [*_attempts(events), *_pauses(events), *_measured(events)]
    if not bars:
        return Html("")
    start, last = events[0].time, max(event.time for event in events)
    axis = Axis.of_time(last - start, LEFT, RIGHT)
    rows = [*(f"lane {lane.id}" for lane in view.lanes), *(f"device {device.name}" for device in view.devices)]
    places = {row: TOP + ROW * n for n, row in enumerate(rows)}
    bottom = TOP + ROW * len(rows)
    names = (label(one_line(row.partition(" ")[2], 16), LEFT - 10, y + 17, None, "end") for row, y in places.items())
    return drawing(
        WIDTH,
        bottom + 28,
        "agents and device sets over time",
        axis.grid(TOP - 6, bottom, lambda seconds: show_duration(seconds) if seconds else "0"),
        *names,
        *(_drawn(bar, axis, start, places[bar.row]) for bar in bars if bar.row in places),
        *_submissions(events, axis, start, places),
    )


def _drawn(bar: _Bar, axis: Axis, start: float, y: float) -> Html:
    x = axis.at(max(bar.begin - start, 0.0))
    width = max(axis.at(bar.end - start) - x, 1.5)
    inset = {"pause": 1.0, "agent": 9.0}.get(bar.kind, 5.0)
    shape = el("rect", x=x, y=y + inset, width=width, height=ROW - 2 * inset, rx=2, class_=bar.kind)
    return hint(f"{bar.about}, {show_duration(bar.end - bar.begin)}", shape)


def _attempts(events: Sequence[Event]) -> Iterator[_Bar]:
    """From claim to settlement; one that was not settled goes on to the last event."""
    last = events[-1].time
    settled = {(e.lane, e.ordinal): e for e in events if isinstance(e, ev.BindingSettled)}
    for event in events:
        if isinstance(event, ev.BindingClaimed):
            end = settled.get((event.lane, event.ordinal))
            about = f"attempt {event.ordinal}" + (f": {end.outcome.kind.value.replace('_', ' ')}" if end else "")
            yield _Bar(f"lane {event.lane}", event.time, end.time if end else last, "agent", about)


def _pauses(events: Sequence[Event]) -> Iterator[_Bar]:
    begun: dict[str, tuple[float, str]] = {}
    for event in events:
        if isinstance(event, ev.QueuePaused):
            begun[event.device] = (event.time, one_line(event.why, 120))
        elif isinstance(event, ev.QueueResumed) and event.device in begun:
            begin, why = begun.pop(event.device)
            yield _Bar(f"device {event.device}", begin, event.time, "pause", f"paused: {why}")
    for device, (begin, why) in begun.items():
        yield _Bar(f"device {device}", begin, events[-1].time, "pause", f"paused: {why}")


def _measured(events: Sequence[Event]) -> Iterator[_Bar]:
    for event in events:
        match event:
            case ev.GuardMeasured():
                word = "passed" if event.result.passed else "failed"
                yield _bar(event, event.measurement, "guard", f"the incumbent against itself: {word}")
            case ev.TicketMeasured():
                yield _bar(event, event.measurement, "ticket", event.ticket)
            case ev.StepComposed(measurement=Measurement() as found):
                yield _bar(event, found, "step", f"lane {event.step.lane} on the head before it")
            case ev.HeadRerun():
                yield _bar(event, event.measurement, "step", f"measured anew: {', '.join(event.rerun.lanes)}")
            case _:
                pass


def _bar(event: Event, found: Measurement, kind: str, about: str) -> _Bar:
    end = found.free_at or event.time
    return _Bar(f"device {found.device}", end - found.held_s, end, kind, about)


def _submissions(events: Sequence[Event], axis: Axis, start: float, places: dict[str, float]) -> Iterator[Html]:
    for event in events:
        if isinstance(event, ev.TicketQueued):
            x, y = axis.at(event.time - start), places[f"lane {event.submission.lane}"]
            yield hint(event.submission.ticket, el("path", d=f"M{x:.1f} {y + 5}v{ROW - 10}", class_="bar"))
