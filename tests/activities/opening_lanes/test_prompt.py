"""What a lane's agent is told: everything it needs, on one screen, and no more than is so."""

from __future__ import annotations

from typing import Any

from orch.activities.lanes.prompt import lane_prompt
from orch.workflows.model.round.plan import (
    Command,
    Commands,
    DeviceSet,
    Direction,
    Entry,
    FileHash,
    Gates,
    LaneBudget,
    LanePlan,
    Metric,
    RoundPlan,
)

DEADLINE = 1_800_000_000.0


def lane(**facts: Any) -> LanePlan:
    hypothesis = "A table of the first bytes is faster than a search."
    entry = Entry(id="e", plane="algorithm", stage="lexer", hypothesis=hypothesis, headroom=0.25)
    return LanePlan(
        **{"id": "fast", "entry": entry, "globs": ("src/lexer/**", "!src/lexer/gen.py"), "agent": "claude", **facts}
    )


def told(one: LanePlan, **facts: Any) -> str:
    commands = {"benchmark": Command(run="python3 bench.py"), **facts.pop("commands", {})}
    plan = RoundPlan(
        **{
            "id": "r",
            "campaign": "c",
            "campaign_digest": "a" * 64,
            "incumbent": "0" * 40,
            "metric": Metric(name="time", direction=Direction.LOWER, unit="ms"),
            "gates": Gates(validator=(FileHash(path="check.py", sha256="b" * 64),)),
            "devices": (DeviceSet(name="cpu"),),
            "commands": Commands(**commands),
            "lanes": (one,),
            "protected": ("bench/**",),
            **facts,
        }
    )
    return lane_prompt(plan, one, DEADLINE)


def test_a_lane_is_told_its_aim_its_files_how_to_hand_over_and_its_limits() -> None:
    budget = LaneBudget(attempts=2, wall_s=1800, turns=40, tokens=200_000, usd=1.5)
    text = told(lane(budget=budget, submissions=4), commands={"build": Command(run="make")})
    parts = [
        "## Goal", "Improve `time` (ms, lower is better)",
        "## This lane: `fast`", "A table of the first bytes is faster", "one plane, `algorithm`", "lexer", "25%",
        "## Files", "- src/lexer/**\n- !src/lexer/gen.py", "Never", "- bench/**\n- /check.py",
        "## Handing over",
        "`.orch/round submit`", "`.orch/round status TICKET --wait", "Only tickets", "decides nothing",
        "## What is run", "- build: `make`\n- benchmark: `python3 bench.py`",
        "## Limits", "4 different submissions", "2 launches", "1800 s, 40 turns", "200,000 tokens and $1.5",
        "2027-01-15 08:00:00 UTC",
    ]  # fmt: skip
    places = [text.find(part) for part in parts]
    assert -1 not in places, parts[places.index(-1)]
    assert [text.index(part) for part in parts if part.startswith("##")] == sorted(
        text.index(part) for part in parts if part.startswith("##")
    )


def test_it_fits_one_screen() -> None:
    lines = told(lane()).splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 120


def test_there_is_nothing_about_what_is_not_so() -> None:
    text = told(lane(), protected=(), gates=Gates())
    assert not [word for word in ("Never", "tokens", "$", "turns", "build:", "tried before", "None") if word in text]


def test_an_entry_that_was_rejected_before_says_what_has_changed() -> None:
    assert "tried before; what has changed since: the cache is gone." in told(lane(condition="the cache is gone"))
