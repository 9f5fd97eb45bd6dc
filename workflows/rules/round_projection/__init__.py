"""The projection of a round: what people see of it, read from its ledger; any prefix of one is a live round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...model.event import Event, RunEnded, RunPromoted
from ...model.round import event as ev
from ...model.round.view import RoundPhase, RoundView
from ...model.view import PromotedView, RunStatus
from .chain import rerun_views, step_views
from .devices import device_views, guard_view, queue_view
from .lanes import lane_views
from .reading import last, measurements

__all__ = ["project_round"]


def project_round(events: Sequence[Event]) -> RoundView:
    """Read a round's view from its events, in ledger order; without any it is a nameless running view."""
    started, ended = last(events, ev.RoundStarted), last(events, RunEnded)
    if started is None:
        return RoundView(id="", status=RunStatus.RUNNING)
    plan, over = started.plan, ended is not None
    devices = device_views(events, [device.name for device in plan.devices], over=over)
    lanes, blind, usage = lane_views(events, plan.lanes, over=over)
    tickets = [ticket for lane in lanes for ticket in lane.tickets]
    view = RoundView(
        id=started.run,
        status=RunStatus(ended.status) if ended else RunStatus.RUNNING,
        reason=ended.reason if ended else None,
        phase=_phase(events),
        campaign=plan.campaign,
        round=plan.id,
        repo=started.repo,
        plan_digest=started.plan_digest,
        started_at=started.at,
        ended_at=ended.at if ended else None,
        incumbent=plan.incumbent,
        metric=plan.metric,
        gates=plan.gates,
        noise=devices[0].noise,
        guards=guard_view(events),
        queue=queue_view(devices, tickets),
        devices=devices,
        lanes=lanes,
        rejects=dict(sorted(Counter(ticket.cause.value for ticket in tickets if ticket.cause).items())),
        promote=str(started.promote),
        usage=usage,
        device_hours=sum(found.held_s for _, found in measurements(events)) / 3600,
        warnings=blind,
    )
    return view.model_copy(update=_prepared(events, view.warnings) | _closed(events))


def _prepared(events: Sequence[Event], warnings: tuple[str, ...]) -> dict[str, object]:
    """What the host found."""
    ready = last(events, ev.RoundReady)
    if ready is None:
        return {}
    return {"incumbent": ready.incumbent, "sandbox": ready.sandbox, "warnings": (*ready.warnings, *warnings)}


def _closed(events: Sequence[Event]) -> dict[str, object]:
    """What composition came to, and where it went."""
    decided, recorded = last(events, ev.RoundDecided), last(events, ev.RoundRecorded)
    return {
        "decided": decided is not None,
        "new_incumbent": decided.incumbent if decided else None,
        "chain": decided.chain if decided else (),
        "steps": step_views(events),
        "reruns": rerun_views(events),
        "promoted": _promoted(last(events, RunPromoted)),
        "record": recorded.record if recorded else None,
    }


def _phase(events: Sequence[Event]) -> RoundPhase:
    """The furthest point that was reached."""
    kinds = {type(event) for event in events}
    reached: dict[type[Event], RoundPhase] = {
        RunEnded: RoundPhase.ENDED,
        ev.RoundDecided: RoundPhase.RECORDING,
        ev.PicksMade: RoundPhase.COMPOSING,
        ev.LaneStarted: RoundPhase.SEARCHING,
        ev.RoundReady: RoundPhase.CALIBRATING,
    }
    return next((phase for kind, phase in reached.items() if kind in kinds), RoundPhase.PREPARING)


def _promoted(event: RunPromoted | None) -> PromotedView | None:
    if event is None:
        return None
    it = event.promotion
    return PromotedView(tree=it.tree, mode=it.target.mode, branch=it.target.branch, paths=it.paths, refused=it.refused)
