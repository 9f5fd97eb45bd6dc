"""A round as text: goldens for the shapes people meet, and a word for every state."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from orch.cli import round_words as words
from orch.cli.event_lines import event_line
from orch.cli.exits import ExitStatus, status_of
from orch.cli.live import live_lines
from orch.cli.render import cut
from orch.cli.reporting.round_page import RoundReport, round_page
from orch.cli.round_event_lines import round_line
from orch.cli.round_render import queue_lines, round_lines, round_summary
from orch.workflows.model.outcome import OutcomeKind
from orch.workflows.model.promotion import PromoteMode
from orch.workflows.model.reason import PromotionReason, Reason, RunReason
from orch.workflows.model.round.event import BindingCancelled, RoundEvent
from orch.workflows.model.round.lane import LaneEnd
from orch.workflows.model.round.lane_view import LaneState
from orch.workflows.model.round.plan import Direction, Metric
from orch.workflows.model.round.ticket import Cause, TicketState
from orch.workflows.model.round.trial import Evaluation, Judgement, Scale
from orch.workflows.model.round.view import RoundPhase, RoundView
from orch.workflows.model.view import PromotedView, RunStatus
from orch.workflows.rules.round_projection import project_round

from .events import PLAN, Story
from .stories import STORIES, composed, live

Golden = Callable[[str, str], None]


def view(name: str) -> RoundView:
    return project_round(STORIES[name]())


@pytest.mark.parametrize("name", STORIES)
def test_a_round_reads_as_its_golden_file(name: str, golden: Golden) -> None:
    golden(f"{name}.txt", "\n".join(round_lines(view(name), link="http://127.0.0.1:1/page")) + "\n")


def test_devices_of_a_short_round_are_held_for_seconds_and_not_for_no_hours() -> None:
    short = view("live").model_copy(update={"device_hours": 12 / 3600})

    assert round_summary(short).endswith(", 12s on devices")
    assert ">12s<" in round_page(RoundReport(short, live()))


def test_the_live_table_shows_queue_devices_lanes_and_the_newest_tickets(golden: Golden) -> None:
    golden("live-table.txt", "\n".join(live_lines(view("live"), datetime(2026, 3, 4, 9, 5, tzinfo=UTC), 120)) + "\n")


def test_a_narrow_terminal_does_without_spare_columns_and_keeps_the_words(golden: Golden) -> None:
    lines = live_lines(view("live"), datetime(2026, 3, 4, 9, 5, tzinfo=UTC), 80, 23)

    golden("live-table-80.txt", "".join(f"{cut(line, 80)}\n" for line in lines))
    assert all("agent at work" in cut(line, 80) for line in lines[6:9])


def test_a_low_terminal_shows_the_newest_tickets_that_it_has_room_for() -> None:
    it = Story()
    it.ready()
    it.open()
    names = [it.submit("tokens", str(n)) for n in range(30)]

    lines = live_lines(project_round(it.events), datetime(2026, 3, 4, 9, 5, tzinfo=UTC), 80, 23)

    shown = [name for name in names if any(name in line for line in lines)]
    assert len(lines) == 23
    assert shown == names[-len(shown) :]
    assert len(shown) == 10


def test_no_device_set_is_called_idle_while_it_is_held_without_a_ticket() -> None:
    it = Story()
    it.ready()
    calibrating = queue_lines(project_round(it.events))
    composing = queue_lines(view("composed").model_copy(update={"ended_at": None, "phase": RoundPhase.COMPOSING}))

    assert calibrating[0] == "queue: not open yet: the incumbent is measured against itself"
    assert composing[0] == "queue: over: the composition is measured"
    assert not [line for line in (*calibrating, *composing) if "idle" in line]


def test_a_ticket_that_is_built_ahead_waits_for_its_device_set() -> None:
    it = Story()
    it.ready()
    it.open()
    first, ahead = it.submit("tokens", "a"), it.submit("cache", "b")
    it.take(first)
    it.take(ahead, ahead=True)
    seen = project_round(it.events)

    assert [ticket.state for ticket in seen.tickets] == [TicketState.MEASURING, TicketState.QUEUED]
    assert seen.queue.length == 1
    assert [words.ticket_words(ticket) for ticket in seen.tickets] == ["measuring", "queued, next on cpu-a"]


def test_every_event_has_its_line(golden: Golden) -> None:
    events = composed()

    golden("events.txt", "".join(f"{event_line(event, events[0])}\n" for event in events))


@pytest.mark.parametrize("kind", RoundEvent.__args__, ids=lambda kind: kind.__name__)
def test_no_event_of_a_round_is_told_by_its_type_alone(kind: type[Any]) -> None:
    stories = [event for story in STORIES.values() for event in story()]
    it = Story()
    it.record(BindingCancelled, lane="tokens", ordinal=1, why="late")
    it.rest("tokens", 900)
    it.go_on("tokens", 900)
    found = next(event for event in (*stories, *it.events) if isinstance(event, kind))

    assert round_line(found, PLAN.metric)


def test_foreign_text_moves_no_cursor() -> None:
    it = Story()
    it.ready("look\x1b[2J out\nthere")
    it.open("tokens")
    it.end("tokens", LaneEnd.BROKEN, "gone\x1b]0;title\x07\u202e")

    text = "\n".join([*round_lines(project_round(it.events)), *(event_line(e, it.events[0]) for e in it.events)])

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "warning: look\\x1b[2J out there" in text


@pytest.mark.parametrize(
    ("known", "kinds"),
    [
        (words.LANE_ENDS, LaneEnd),
        (words.LANE_STATES, LaneState),
        (words.CAUSES, Cause),
        (words.VERDICTS, Judgement),
        (words.TICKET_STATES, TicketState),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_state_has_its_words(known: dict[Any, str], kinds: Any) -> None:
    assert set(known) == set(kinds)
    assert all(known.values())


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (RunReason.INCUMBENT_FAILS, ExitStatus.REFUSED),
        (RunReason.TOO_NOISY, ExitStatus.REFUSED),
        (RunReason.NO_GAIN, ExitStatus.UNSUCCESSFUL),
        (RunReason.PREFLIGHT_FAILED, ExitStatus.REFUSED),
        (RunReason.CANCELLED, ExitStatus.UNSUCCESSFUL),
    ],
)
def test_a_round_that_failed_says_why_and_what_helps(code: RunReason, status: ExitStatus) -> None:
    ended = view("fruitless").model_copy(update={"reason": Reason[RunReason](code=code, data={"why": "noise 0.4"})})

    assert status_of(ended) is status
    assert words.round_sentence(Reason[RunReason](code=code, data={"why": "noise 0.4"})).endswith("(why: noise 0.4)")
    step = words.round_next_step(ended)
    assert bool(step) is (code is not RunReason.PREFLIGHT_FAILED)
    assert "{" not in step


def test_a_round_that_succeeded_ends_with_zero() -> None:
    assert status_of(view("composed")) is ExitStatus.SUCCEEDED


def test_the_next_step_after_a_round_leads_to_its_result() -> None:
    done, waiting = view("composed"), view("fallen_back")
    worktree = PromotedView(tree="a" * 40, mode=PromoteMode.WORKTREE)
    refused: Reason[PromotionReason] = Reason(code=PromotionReason.EDITED)

    assert words.round_next_step(done).startswith(f"git log -p {PLAN.incumbent}..faster")
    assert words.round_next_step(waiting) == (
        f"orch diff {waiting.id}, then: orch promote {waiting.id} --to branch:NAME"
    )
    assert words.round_next_step(done.model_copy(update={"promoted": worktree})).startswith("review with git diff")
    kept = done.model_copy(
        update={
            "status": RunStatus.FAILED,
            "reason": Reason[RunReason](code=RunReason.PROMOTION_REFUSED),
            "promoted": PromotedView(tree=None, mode=PromoteMode.WORKTREE, refused=refused),
        }
    )
    assert words.round_next_step(kept).startswith("mend that, then: orch promote ")
    assert words.round_next_step(view("live")) == f"orch watch {done.id}"


@pytest.mark.parametrize(
    ("unit", "log", "text"),
    [
        (None, None, ""),
        (0.1, 0.2, "the same bottleneck as a lane before"),
        (-0.1, None, "the same bottleneck as a lane before"),
        (0.4, 0.6, "overlaps in part"),
        (0.64, 1.0, "orthogonal"),
        (1.0, 1.5, "orthogonal"),
        (1.0, None, "orthogonal"),
        (1.4, 1.9, "reinforced by the lanes before"),
    ],
)
def test_interaction_ratios_are_told_in_words(unit: float | None, log: float | None, text: str) -> None:
    step = view("composed").steps[2].model_copy(update={"interaction_log": log, "interaction": unit})

    assert words.interaction_words(step) == text


def test_a_metric_that_may_be_negative_is_told_in_its_unit() -> None:
    metric = Metric(name="profit", direction=Direction.HIGHER, unit="EUR")
    found = Evaluation(verdict=Judgement.PASSED, scale=Scale.DIFFERENCE, gain=1.25, gain_unit=1.25, error=0.1, pairs=8)
    events = [
        event.model_copy(update={"evaluation": found}) if event.type == "ticket_measured" else event for event in live()
    ]
    seen = project_round(events).model_copy(update={"metric": metric})

    assert any("+1.25 EUR ±0.1 EUR" in line for line in round_lines(seen))


@pytest.mark.parametrize("kind", OutcomeKind)
def test_a_lanes_attempt_is_told_however_it_ended(kind: OutcomeKind) -> None:
    it = Story()
    it.open("tokens")
    it.settle("tokens", 1, kind)

    assert event_line(it.events[-1], it.events[0]).split("  ", 1)[1].startswith("lane tokens: attempt 1: ")
