"""May a round's plan start: every refusal and warning about lanes, entries, devices and gates."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.workflows.model.round.campaign import Revision
from orch.workflows.model.round.facts import EntryFacts, LaneFacts, PlanFacts, Source
from orch.workflows.model.round.plan import DeviceSet, Direction, EntryStatus, Gates
from orch.workflows.model.round.trial import Noise, Scale
from orch.workflows.rules.round_plan import TIGHTER, detectable, entry_flaws, flaws, loosened


def revision(entry: str, status: str, **facts: Any) -> Revision:
    given = {"campaign": "c", "round": "r1", "run": "round-c-r1", "lane": "a", "why": "gain 0.1%", **facts}
    return Revision(entry=entry, status=EntryStatus(status), **given)


def entry(name: str, status: str = "planned", /, **facts: Any) -> EntryFacts:
    given = {"planes": ("algorithm",), "hypothesis": f"what {name} expects", "headroom": 0.3, **facts}
    last = given.pop("last", None)
    return EntryFacts(id=name, status=EntryStatus(status), last=last, **given)


def lanes(*named: tuple[str, str], condition: str = "") -> tuple[LaneFacts, ...]:
    return tuple(LaneFacts(id=name, entry=pursued, condition=condition) for name, pursued in named)


def plan(*found: LaneFacts, entries: tuple[EntryFacts, ...] = (entry("x"), entry("y")), **facts: Any) -> PlanFacts:
    return PlanFacts(lanes=found, entries=entries, **facts)


def device(name: str, *cpus: int, cuda: tuple[int, ...] = ()) -> DeviceSet:
    return DeviceSet(name=name, cpus=cpus, cuda=cuda)


REJECTED = entry("x", "rejected", last=revision("x", "rejected"), tried=("a new allocator",))

REFUSED: dict[str, tuple[PlanFacts, tuple[Any, ...], str, str]] = {
    "lane twice": (
        plan(*lanes(("a", "x"), ("a", "y"))),
        ("lanes", 1, "id"),
        "lane `a` stands twice, first as number 1",
        "name of its own",
    ),
    "unknown entry": (
        plan(*lanes(("a", "tokeniser")), entries=(entry("tokenizer"),)),
        ("lanes", 0, "entry"),
        "no entry `tokeniser`",
        "did you mean `tokenizer`?",
    ),
    "unknown entry, none close": (plan(*lanes(("a", "zebra"))), ("lanes", 0, "entry"), "no entry `zebra`", "x, y"),
    "one entry for two lanes": (
        plan(*lanes(("a", "x"), ("b", "x"))),
        ("lanes", 1, "entry"),
        "lanes `a` and `b` pursue one entry, `x`",
        "an entry of its own",
    ),
    "entry kept by the file": (
        plan(*lanes(("a", "x")), entries=(entry("x", "kept"), entry("y"))),
        ("lanes", 0, "entry"),
        "`x` is not planned: it is kept",
        "planned are: y",
    ),
    "entry kept by a round": (
        plan(*lanes(("a", "x")), entries=(entry("x", "kept", last=revision("x", "kept", why="composed")),)),
        ("lanes", 0, "entry"),
        "kept since round r1 (composed)",
        "no entry is planned",
    ),
    "negative record": (
        plan(*lanes(("a", "x")), entries=(REJECTED,)),
        ("lanes", 0, "entry"),
        "was rejected since round r1 (gain 0.1%), and the lane states no changed condition",
        "`condition:`",
    ),
    "negative record by the file": (
        plan(*lanes(("a", "x")), entries=(entry("x", "rejected"),)),
        ("lanes", 0, "entry"),
        "was rejected, and the lane states no changed condition",
        "`condition:`",
    ),
    "negative record under another name": (
        plan(*lanes(("a", "z")), entries=(REJECTED, entry("z", hypothesis=" What X  expects"))),
        ("lanes", 0, "entry"),
        "`z` says what `x` says, which was rejected",
        "`condition:`",
    ),
    "the same condition once more": (
        plan(*lanes(("a", "x"), condition="A new  allocator"), entries=(REJECTED,)),
        ("lanes", 0, "condition"),
        "under this very condition",
        "since then",
    ),
    "device set twice": (
        plan(devices=(device("d", 0), device("d", 1))),
        ("devices", 1, "name"),
        "device set `d` stands twice",
        "name of its own",
    ),
    "shared processors": (
        plan(devices=(device("d", 0, 1, 2), device("e", 1, 2, 3))),
        ("devices", 1),
        "`d` and `e` overlap: cpu 1, 2",
        "of its own",
    ),
    "shared GPU": (
        plan(devices=(device("d", 0, cuda=(0,)), device("e", 1, cuda=(0,)))),
        ("devices", 1),
        "overlap: cuda 0",
        "of its own",
    ),
    "more samples than a history holds": (
        plan(LaneFacts(id="a", entry="x", submissions=60), gates=Gates(pairs=256, repetitions=2)),
        ("lanes",),
        "60 tickets of 256 pairs of 2 may take 30720 runs",
        "two rounds",
    ),
    "one set of all processors": (
        plan(devices=(device("d"), device("e", 1))),
        ("devices", 1),
        "`d` has all processors",
        "of its own",
    ),
}


@pytest.mark.parametrize(("facts", "where", "message", "mend"), REFUSED.values(), ids=REFUSED.keys())
def test_plan_is_refused_at_its_place(facts: PlanFacts, where: tuple[Any, ...], message: str, mend: str) -> None:
    (found,) = [flaw for flaw in flaws(facts) if not flaw.warning]

    assert found.where == where
    assert message in found.message
    assert mend in found.mend


def test_good_plan_has_no_flaw() -> None:
    facts = plan(*lanes(("a", "x"), ("b", "y")), devices=(device("d", 0, cuda=(0,)), device("e", 1, cuda=(1,))))

    assert flaws(facts.model_copy(update={"gates": Gates(noise=0.05)})) == ()


def test_changed_condition_lets_a_rejected_entry_in() -> None:
    assert not flaws(plan(*lanes(("a", "x"), condition="the parser was rewritten"), entries=(REJECTED,)))


def test_nothing_is_said_of_entries_that_could_not_be_read() -> None:
    assert flaws(PlanFacts(lanes=lanes(("a", "x"), ("b", "z")), entries=None)) == ()


def test_same_bottleneck_is_a_warning_that_names_the_lane_to_defer() -> None:
    entries = (entry("x", stage="Tokenize "), entry("y", stage="tokenize", headroom=0.2), entry("z", stage=""))

    (found,) = flaws(plan(*lanes(("a", "x"), ("b", "y"), ("c", "z")), entries=entries))

    assert (found.warning, found.where) == (True, ("lanes", 1, "entry"))
    assert "lanes `a` and `b` attack the same bottleneck, tokenize" in found.message
    assert "keep `b`" in found.mend


NOISE = Noise(scale=Scale.LOG, sigma=0.02, pairs=8, base=10.0)


@pytest.mark.parametrize(
    ("noise", "gates", "headroom", "direction", "said"),
    [
        (None, Gates(noise=0.1), 0.06, "lower", "2 sigma of the largest allowed noise, 6.8% with 8 pairs"),
        (NOISE, Gates(), 0.013, "lower", "2 sigma of the measured noise, 1.4% with 8 pairs"),
        (NOISE, Gates(pairs=32), 0.006, "lower", "0.7% with 32 pairs"),
        (NOISE, Gates(sigmas=4.0), 0.02, "higher", "4 sigma of the measured noise, 2.9%"),
        (Noise(scale=Scale.DIFFERENCE, sigma=0.2, pairs=8, base=-10.0), Gates(), 0.013, "lower", "1.4%"),
    ],
)
def test_headroom_below_what_can_be_measured_is_a_warning(
    noise: Noise | None, gates: Gates, headroom: float, direction: str, said: str
) -> None:
    facts = plan(
        *lanes(("a", "x")),
        entries=(entry("x", headroom=headroom),),
        noise=noise,
        gates=gates,
        direction=Direction(direction),
    )

    (found,) = flaws(facts)

    assert found.warning
    assert said in found.message


def test_headroom_above_it_is_none() -> None:
    enough = entry("x", headroom=1 - math.exp(-2 * 0.02 / math.sqrt(8)) + 1e-9)

    assert flaws(plan(*lanes(("a", "x")), entries=(enough,), noise=NOISE)) == ()


def test_headroom_below_the_rollback_line_is_a_warning() -> None:
    (found,) = flaws(
        plan(*lanes(("a", "x")), entries=(entry("x", headroom=0.05),), gates=Gates(rollback=0.1), noise=NOISE)
    )

    assert (found.warning, "below the rollback line of 10.0%" in found.message) == (True, True)


def test_of_a_metric_around_zero_nobody_can_tell_what_is_measurable() -> None:
    assert detectable(Gates(), Noise(scale=Scale.DIFFERENCE, sigma=1.0, pairs=8, base=0.0)) is None


@pytest.mark.parametrize(
    ("planes", "said"), [((), "names no planes, not exactly one"), (("a", "b"), "names 2 planes, not exactly one")]
)
def test_entry_names_exactly_one_plane(planes: tuple[str, ...], said: str) -> None:
    (found,) = entry_flaws([entry("x"), entry("y", planes=planes)])

    assert (found.where, found.source) == (("entries", 1, "plane"), Source.CAMPAIGN)
    assert said in found.message


def test_entry_stands_once() -> None:
    (found,) = entry_flaws([entry("x"), entry("x")])

    assert (found.where, found.source) == (("entries", 1, "id"), Source.CAMPAIGN)


@pytest.mark.parametrize(
    ("name", "looser", "tighter"),
    [
        ("pairs", 6, 10),
        ("repetitions", 1, 3),
        ("sigmas", 2.5, 3.5),
        ("rollback", 0.01, 0.05),
        ("noise", 0.06, 0.01),
    ],
)
def test_gates_are_tightened_never_loosened(name: str, looser: float, tighter: float) -> None:
    base = Gates(pairs=8, repetitions=2, sigmas=3.0, rollback=0.02, noise=0.05)

    (found,) = loosened(base, {name: looser})

    assert found.where == ("gates", name)
    assert f"the campaign's {getattr(base, name):g}" in found.message
    assert loosened(base, {name: tighter}) == ()
    assert loosened(base, {name: getattr(base, name)}) == ()


def test_every_number_among_the_gates_has_a_way_to_be_tighter() -> None:
    assert set(TIGHTER) == set(Gates.model_fields) - {"validator"}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=6))
def test_without_a_refusal_lanes_and_entries_are_distinct_and_known(named: list[tuple[str, str]]) -> None:
    if any(not flaw.warning for flaw in flaws(plan(*lanes(*named)))):
        return

    assert len({lane for lane, _ in named}) == len({pursued for _, pursued in named}) == len(named)
    assert {pursued for _, pursued in named} <= {"x", "y"}
