"""`round-ledger.json`: everything of a round, negatives included, in a shape that does not drift unseen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from orch.workflows.model.round import event as ev
from orch.workflows.model.round.trial import Measurement
from orch.workflows.rules import round_document as rule
from orch.workflows.rules.round_document import Document, round_document
from orch.workflows.rules.round_projection import project_round

from .shapes import shape
from .stories import STORIES, composed, fallen_back, fruitless

Golden = Callable[[str, str], None]

PAGE = Path(__file__).parents[2] / "docs" / "round-ledger.md"


def document(name: str) -> Document:
    events = STORIES[name]()
    return round_document(events, project_round(events))


def test_the_documents_have_the_shapes_that_readers_know(golden: Golden) -> None:
    """A change here is a change for whoever reads these files: raise SCHEMA when an old reader would misread it."""
    ledgers = [document(name) for name in ("composed", "fallen_back", "fruitless")]
    views = [project_round(story()).model_dump(mode="json") for story in STORIES.values()]

    golden("round-ledger.shape", shape(*ledgers))
    golden("show.shape", shape(*views))


def test_every_key_of_the_document_is_explained() -> None:
    page = PAGE.read_text(encoding="utf-8")

    told = {key for part in page.split("`")[1::2] for key in part.replace("[]", "").split(".")}
    plan = {"plan", "entry", "budget", "noise", "rejects"}
    keys = {
        key
        for line in shape(*(document(name) for name in ("composed", "fallen_back", "fruitless"))).splitlines()
        for key in line.partition(":")[0].replace("[]", "").split(".")
        if not plan & set(line.partition(":")[0].replace("[]", "").split(".")[:-1])
    }
    assert keys - told - {"", "{}"} == set()


@pytest.mark.parametrize("name", ["composed", "fallen_back", "fruitless", "live"])
def test_the_document_is_plain_json_that_reads_back_equal(name: str) -> None:
    found = document(name)

    text = json.dumps(found, sort_keys=True, separators=(",", ":"), allow_nan=False)
    assert json.loads(text) == found
    assert text == json.dumps(document(name), sort_keys=True, separators=(",", ":"))


def test_every_lane_ticket_and_attempt_is_in_it_negatives_too() -> None:
    found = document("composed")
    view = project_round(composed())

    assert [lane["id"] for lane in found["lanes"]] == ["tokens", "cache", "output"]
    tickets = [ticket for lane in found["lanes"] for ticket in lane["tickets"]]
    assert [ticket["ticket"] for ticket in tickets] == [ticket.ticket for ticket in view.tickets]
    assert {ticket["cause"] for ticket in tickets} == {None, "protected_path", "build_failed", "link_escapes"}
    assert "regression" in {ticket["evaluation"]["verdict"] for ticket in tickets if ticket["evaluation"]}
    attempts = found["lanes"][1]["attempts"]
    assert [(one["ordinal"], one["outcome"]["kind"]) for one in attempts] == [(1, "crashed"), (2, "done")]
    assert attempts[0]["usage"]["usd"] == 0.05
    assert found["rejects"] == view.rejects


def test_every_raw_value_is_in_it() -> None:
    events = composed()
    found = document("composed")

    measured = [event.measurement for event in events if isinstance(event, ev.TicketMeasured | ev.HeadRerun)]
    values = [run.value for one in measured for pair in one.pairs for run in (*pair.a, *pair.b)]
    told = [ticket["measurement"] for lane in found["lanes"] for ticket in lane["tickets"] if ticket["measurement"]] + [
        rerun["measurement"] for rerun in found["composition"]["reruns"]
    ]
    kept = [value for one in told for pair in one["pairs"] for value in (*pair["a"], *pair["b"])]
    assert sorted(kept) == sorted(value for value in values if value is not None)
    assert found["samples"] == "whole"


def test_a_document_that_would_be_too_large_names_the_events_that_hold_the_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rule, "MAX_VALUES", 20)
    events = composed()

    found = document("composed")

    assert found["samples"] == "by_event"
    for guard in found["guards"]:
        assert guard["measurement"]["pairs"] is None
        event = events[guard["measurement"]["event"] - 1]
        assert isinstance(event, ev.GuardMeasured)
        assert isinstance(event.measurement, Measurement)
        assert event.measurement.pairs


def test_the_composition_tells_picks_steps_ratios_and_reruns() -> None:
    found = document("composed")["composition"]

    assert [pick["lane"] for pick in found["picks"]] == ["tokens", "cache", "output"]
    assert [step["result"] for step in found["steps"]] == ["first", "skipped", "added"]
    assert [step["measurement"] is None for step in found["steps"]] == [True, False, False]
    assert found["steps"][2]["interaction_log"] == project_round(composed()).steps[2].interaction_log
    assert [rerun["fallback"] for rerun in document("fallen_back")["composition"]["reruns"]] == [False, True]


def test_a_pause_has_its_beginning_and_its_end() -> None:
    (pause,) = document("composed")["pauses"]
    (open_pause,) = document("live")["pauses"]

    assert (pause["device"], pause["why"]) == ("cpu-a", "the incumbent differs from itself by 5 %")
    assert pause["from"] < pause["to"]
    assert open_pause["to"] is None


def test_a_round_that_keeps_its_incumbent_has_a_document_all_the_same() -> None:
    found = document("fruitless")

    assert (found["new_incumbent"], found["new_tree"], found["chain"]) == (None, None, [])
    assert found["composition"] == {"picks": [], "steps": [], "reruns": []}
    assert found["queue"]["tickets"] == len(project_round(fruitless()).tickets) == 1


def test_queue_waits_are_summed_up() -> None:
    view = project_round(composed())
    waits = sorted(ticket.wait_s for ticket in view.tickets if ticket.wait_s is not None)

    assert document("composed")["queue"] == {
        "tickets": 5,
        "median_s": waits[2],
        "longest_s": waits[-1],
        "total_s": pytest.approx(sum(waits)),
    }


def test_a_ledger_without_its_beginning_has_no_document() -> None:
    with pytest.raises(ValueError, match="beginning"):
        round_document([], project_round([]))


def test_a_fallback_is_what_the_chain_holds() -> None:
    found = document("fallen_back")

    assert found["chain"] == [project_round(fallen_back()).reruns[-1].commit]
    assert [lane["kept"] for lane in found["lanes"]] == [True, False, False]
