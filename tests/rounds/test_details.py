"""What the Web UI shows of a round: lanes, tickets and composition, in Markdown that foreign text cannot break."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.workflows.details import MAX_CHARS
from orch.workflows.model.round.lane import LaneEnd
from orch.workflows.model.round.ticket import Cause
from orch.workflows.round_details import LANES, STEPS, TICKETS, round_details
from orch.workflows.rules.round_projection import project_round

from .events import PLAN, Story, lane
from .stories import STORIES, composed

Golden = Callable[[str, str], None]


def tables(text: str) -> list[list[list[str]]]:
    """The cells of each table."""
    found: list[list[list[str]]] = []
    before = ""
    for line in text.splitlines():
        if line.startswith("|"):
            if not before.startswith("|"):
                found.append([])
            found[-1].append([cell.strip() for cell in line.replace("\\|", "¦").strip("|").split("|")])
        before = line
    return found


@pytest.mark.parametrize("name", STORIES)
def test_details_read_as_their_golden_file(name: str, golden: Golden) -> None:
    golden(f"{name}.md", round_details(project_round(STORIES[name]())).replace("\u00a0", "") + "\n")


def test_lanes_composition_and_tickets_are_tables() -> None:
    lanes, steps, tickets = tables(round_details(project_round(composed())))

    assert (lanes[0], steps[0], tickets[0]) == (list(LANES), list(STEPS), list(TICKETS))
    assert [row[0] for row in lanes[2:]] == ["★ tokens", "cache", "★ output"]
    assert [row[1:3] for row in steps[2:]] == [["tokens", "first"], ["cache", "skipped"], ["output", "added"]]
    assert len(tickets[2:]) == len(project_round(composed()).tickets)


def test_details_of_a_large_round_keep_the_newest_tickets() -> None:
    it = Story(PLAN.model_copy(update={"lanes": tuple(lane(f"lane-{n}", "p", "s") for n in range(16))}))
    it.ready("w" * 500)
    it.open()
    names = [it.refuse(f"lane-{n % 16}", str(n), Cause.OUT_OF_SCOPE, "x" * 400) for n in range(400)]

    text = round_details(project_round(it.events))

    assert len(text) < MAX_CHARS + 200
    assert names[-1] in text
    assert names[0] not in text
    assert f"earlier tickets: `orch show {project_round(it.events).id}`" in text


@given(text=st.text(max_size=300))
def test_foreign_text_never_adds_a_cell_or_a_line(text: str) -> None:
    odd = lane("tokens", "algorithm", "lexing", agent=text or "x")
    it = Story(PLAN.model_copy(update={"lanes": (odd,), "metric": PLAN.metric.model_copy(update={"unit": text[:20]})}))
    it.ready(text)
    it.open()
    it.refuse("tokens", "a", Cause.MALFORMED, text)
    ticket = it.submit("tokens", "b")
    it.take(ticket)
    it.measured(ticket, "tokens", 0.9, why=text)
    it.pause(text)
    it.end("tokens", LaneEnd.BROKEN, text)

    lanes, tickets = tables(round_details(project_round(it.events)))

    assert [len(row) for row in lanes] == [len(LANES)] * 3
    assert [len(row) for row in tickets] == [len(TICKETS)] * 4
