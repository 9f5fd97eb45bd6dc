"""A round's report: what it draws, and that nothing foreign becomes markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from orch.cli.reporting.axes import Axis
from orch.cli.reporting.branches import branches
from orch.cli.reporting.gains_plot import gains_plot
from orch.cli.reporting.goal_page import goal_page
from orch.cli.reporting.markup import Html
from orch.cli.reporting.page import POLICY
from orch.cli.reporting.round_page import RoundReport, round_page
from orch.cli.reporting.rounds_chain import rounds_chain
from orch.cli.reporting.samples import samples
from orch.cli.reporting.timeline import timeline
from orch.cli.round_chain import in_order, of_document, of_view
from orch.workflows.model.round.campaign import Revision
from orch.workflows.model.round.event import TicketMeasured
from orch.workflows.model.round.lane import LaneEnd
from orch.workflows.model.round.plan import Command, Commands, EntryStatus
from orch.workflows.model.round.trial import Scale
from orch.workflows.model.view import RunStatus, RunView
from orch.workflows.rules.round_document import Document, round_document
from orch.workflows.rules.round_projection import project_round

from .events import PLAN, Story, lane
from .stories import STORIES, composed, fallen_back, fruitless

VOID = {"meta", "br"}


class Outline(HTMLParser):
    """Reads a page; elements that are not closed in order are an error."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page(name: str) -> str:
    events = STORIES[name]()
    return round_page(RoundReport(project_round(events), events))


def drawn(drawing: Html) -> dict[str, int]:
    """How many elements of each class a drawing has; it is well-formed XML."""
    counts: dict[str, int] = {}
    for element in ET.fromstring(drawing).iter():
        for name in (element.get("class") or "").split():
            counts[name] = counts.get(name, 0) + 1
    return counts


def texts(drawing: Html) -> list[str]:
    return ["".join(one.itertext()) for one in ET.fromstring(drawing).iter("text")]


@pytest.mark.parametrize("name", STORIES)
def test_a_report_is_well_formed_and_asks_for_nothing(name: str) -> None:
    outline = Outline(page(name))

    tags = {tag for tag, _ in outline.tags}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form", "a", "base"}
    assert {attrs["content"] for _, attrs in outline.tags if attrs.get("http-equiv")} == {POLICY}
    assert not any(
        key in {"src", "href", "xlink:href"} or key.startswith("on") for _, attrs in outline.tags for key in attrs
    )
    assert not re.search(r"url\(|@import|//", page(name).partition("</style>")[0].partition("<style>")[2])


def test_everything_of_a_round_is_in_its_report() -> None:
    view = project_round(composed())
    said = " ".join(Outline(page("composed")).text)

    for ticket in view.tickets:
        assert ticket.ticket in said
    for word in (
        "tokens",
        "cache",
        "output",
        "skipped: within the noise",
        "0.04 (0.04)",
        "the build failed",
        "crashed",
    ):
        assert word in said
    assert view.new_incumbent is not None
    assert view.new_incumbent[:12] in said


def test_lanes_branch_off_and_picks_are_composed_along_a_chain() -> None:
    drawing = branches(project_round(composed()))

    counts = drawn(drawing)
    assert counts["track"] == 3
    assert counts["ring"] == 3
    assert counts["cross"] == 4, "three rejected tickets and a skipped lane"
    assert (counts["node"], counts["won"], counts["left"]) == (2, 1, 1)
    told = texts(drawing)
    assert told.index("tokens  algorithm") < told.index("cache  memory") < told.index("output  io")
    assert "skipped, ratio 0.04 (0.04)" in told


def test_a_fallback_breaks_the_chain_where_the_head_failed() -> None:
    drawing = branches(project_round(fallen_back()))

    assert drawn(drawing)["left"] == 1
    assert {"head measured anew", "best lane alone measured anew"} <= set(texts(drawing))


def test_an_incumbent_that_stays_is_drawn_as_the_old_one() -> None:
    drawing = branches(project_round(fruitless()))

    assert "won" not in drawn(drawing)
    assert "the incumbent stays" in texts(drawing)
    assert "no workspace: set-up failed: exit 1" in texts(drawing)


def test_every_measured_gain_has_its_bar() -> None:
    view = project_round(composed())
    found = sum(ticket.evaluation is not None for ticket in view.tickets) + len(view.steps[1:]) + len(view.reruns)

    counts = drawn(gains_plot(view))

    assert counts["bar"] == found == 8
    assert counts["worse"] == 2, "the bar and the mark of the regression"
    assert counts["left"] == 1, "the rollback line"


def test_a_metric_of_differences_has_its_axis_in_the_unit() -> None:
    view = project_round(composed())
    lanes = tuple(
        one.model_copy(
            update={
                "tickets": tuple(
                    ticket.model_copy(
                        update={"evaluation": ticket.evaluation.model_copy(update={"scale": Scale.DIFFERENCE})}
                    )
                    for ticket in one.tickets
                    if ticket.evaluation
                )
            }
        )
        for one in view.lanes
    )

    drawing = gains_plot(view.model_copy(update={"lanes": lanes, "steps": (), "reruns": ()}))

    assert "left" not in drawn(drawing)
    assert all(not text.endswith("%") for text in texts(drawing))


def test_the_timeline_holds_every_measurement_attempt_and_pause() -> None:
    events = composed()

    counts = drawn(timeline(project_round(events), events))

    assert (counts["agent"], counts["ticket"], counts["guard"], counts["step"]) == (4, 5, 3, 3)
    assert (counts["pause"], counts["bar"]) == (1, 6)


def test_every_run_of_the_benchmark_is_a_point() -> None:
    measured = next(event for event in composed() if isinstance(event, TicketMeasured))

    counts = drawn(samples(measured.measurement, PLAN.metric))

    assert (counts["a"], counts["b"], counts["mean"]) == (8, 8, 2)
    assert samples(None, PLAN.metric) == ""


def document(name: str, **facts: str) -> Document:
    events = STORIES[name]()
    return {**round_document(events, project_round(events)), **facts}


def test_rounds_of_a_campaign_are_a_chain_of_incumbents() -> None:
    first = project_round(composed())
    assert first.new_incumbent is not None
    lost = document("fruitless", run="2", round="r2", incumbent=first.new_incumbent, started_at="2026-03-05")
    odd = document("fallen_back", run="3", round="r3", started_at="2026-03-06")

    drawing = rounds_chain(in_order(first, [odd, lost]), "3")

    counts = drawn(drawing)
    assert (counts["won"], counts["none"], counts["cross"]) == (2, 1, 1)
    assert [text for text in texts(drawing) if text in {"r1", "r2", "r3"}] == ["r3", "r2", "r1"]
    assert {"no gain", "tokens, output"} <= set(texts(drawing))


def test_a_campaigns_only_round_is_no_chain() -> None:
    assert rounds_chain(in_order(project_round(composed()), []), "") == ""


@pytest.mark.parametrize("name", ["composed", "fallen_back", "fruitless"])
def test_a_round_reads_the_same_from_its_document(name: str) -> None:
    view = project_round(STORIES[name]())

    assert of_document(document(name)) == replace(of_view(view), why=of_document(document(name)).why)  # type: ignore[union-attr]


def test_a_round_that_goes_on_is_shown_as_it_stands_not_as_it_was_recorded() -> None:
    view = project_round(composed())

    assert in_order(view, [document("composed")]) == [of_view(view)]


@pytest.mark.parametrize(
    "other", [{}, {"schema": 2}, {"schema": 1}, {**document("composed"), "plan": None}, {"schema": 1, "composition": 3}]
)
def test_a_document_that_is_not_understood_is_left_out(other: Document) -> None:
    view = project_round(composed())

    assert in_order(view, [other]) == [of_view(view)]


EVIL = "</title></style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;\u202e\x00"


def test_foreign_text_stays_text() -> None:
    evil = lane("tokens", "algorithm", EVIL, agent=f"cmd:{EVIL}")
    commands = Commands(benchmark=Command(run=EVIL))
    metric = PLAN.metric.model_copy(update={"unit": "<b>"})
    it = Story(PLAN.model_copy(update={"lanes": (evil,), "commands": commands, "metric": metric, "protected": (EVIL,)}))
    it.ready(EVIL)
    it.guard()
    it.open()
    ticket = it.submit("tokens", "a")
    it.take(ticket)
    it.pause(EVIL)
    it.measured(ticket, "tokens", 0.9, why=EVIL)
    it.end("tokens", LaneEnd.BROKEN, EVIL)
    view = project_round(it.events)

    row = Revision(
        campaign="parser",
        round="r1",
        run="x",
        entry="e",
        lane="tokens",
        status=EntryStatus.KEPT,
        why=EVIL,
        condition=EVIL,
    )
    chain = [replace(of_view(view), name=EVIL, why=EVIL), of_view(view)]

    outline = Outline(round_page(RoundReport(view, it.events, chain, [row])))

    assert not {tag for tag, _ in outline.tags} & {"script", "img", "b"}
    assert any("<script>alert(1)</script>" in text for text in outline.text)
    assert not any("\x00" in text or "\u202e" in text for text in outline.text)


def test_foreign_text_stays_text_in_the_report_of_a_goal() -> None:
    view = RunView(
        id="goal-x", kind="goal", status=RunStatus.RUNNING, goal=EVIL, repo=EVIL, started_at="", warnings=(EVIL,)
    )

    assert not {tag for tag, _ in Outline(goal_page(view)).tags} & {"script", "img"}


def test_values_that_are_all_alike_can_be_drawn() -> None:
    measured = next(event for event in composed() if isinstance(event, TicketMeasured)).measurement
    run = measured.pairs[0].a[0]
    pairs = tuple(pair.model_copy(update={"a": (run,), "b": (run,)}) for pair in measured.pairs)

    assert drawn(samples(measured.model_copy(update={"pairs": pairs}), PLAN.metric))["a"] == 8
    assert Axis.over(0.0, 0.0, 0.0, 1.0).at(0.0) == 0.0
