"""May a round's plan start? Lanes, entries, devices and gates, over plain facts; their globs: see `scopes`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import combinations

from ..model.round.facts import EntryFacts, Flaw, LaneFacts, PlanFacts, Source, Where
from ..model.round.plan import DeviceSet, Direction, EntryStatus, Gates
from ..model.round.trial import Noise, Scale

TIGHTER = {"pairs": 1, "repetitions": 1, "sigmas": 1, "rollback": 1, "noise": -1}
"""Which way each gate becomes tighter: up or down."""

MOST_RUNS = 30_000
"""Runs of each side that all tickets of a round may take together. The samples of a run of both sides are 220 bytes of
its history, twice: as a step's result, and as an event that is kept. The engine ends a run whose history has 50 MB."""


def flaws(facts: PlanFacts) -> tuple[Flaw, ...]:
    """What is wrong with a plan, refusals and warnings, its globs aside."""
    return (
        *_twice([device.name for device in facts.devices], "device set", ("devices",), "name"),
        *_shared_devices(facts.devices),
        *_twice([lane.id for lane in facts.lanes], "lane", ("lanes",), "id"),
        *(flaw for index, lane in enumerate(facts.lanes) for flaw in _lane(index, lane, facts)),
        *_shared_entries(facts.lanes),
        *_shared_stages(facts),
        *_too_many_runs(facts),
    )


def entry_flaws(entries: Sequence[EntryFacts]) -> tuple[Flaw, ...]:
    """What is wrong with a campaign's search plan: an id twice, not exactly one plane."""
    planes = (
        Flaw(
            where=("entries", index, "plane"),
            message=f"entry `{entry.id}` names {_count(len(entry.planes), 'plane')}, not exactly one",
            mend="split it into an entry for each plane" if entry.planes else "name the one plane that it changes",
            source=Source.CAMPAIGN,
        )
        for index, entry in enumerate(entries)
        if len(entry.planes) != 1
    )
    twice = _twice([entry.id for entry in entries], "entry", ("entries",), "id")
    return (*(flaw.model_copy(update={"source": Source.CAMPAIGN}) for flaw in twice), *planes)


def loosened(base: Gates, asked: Mapping[str, float]) -> tuple[Flaw, ...]:
    """The gates that a round asks for and that are looser than the campaign's."""
    words = {1: ("below", "higher"), -1: ("above", "lower")}
    return tuple(
        Flaw(
            where=("gates", name),
            message=f"`{name}` {value:g} is {words[way][0]} the campaign's {getattr(base, name):g}: "
            "a round may tighten a gate, never loosen it",
            mend=f"leave it out, or give {getattr(base, name):g} or a {words[way][1]} value",
        )
        for name, value in asked.items()
        if (way := TIGHTER[name]) and way * (value - getattr(base, name)) < 0
    )


def detectable(gates: Gates, noise: Noise | None) -> float | None:
    """The smallest gain that a measurement of these gates can show, as a log ratio; None where nobody can tell.

    A gain counts from `sigmas` standard errors on, and the standard error of a mean over pairs is sigma / sqrt(pairs).
    Sigma is the last known noise; before there is any, the largest that the gates allow.
    """
    if noise is None:
        sigma = gates.noise
    elif noise.scale is Scale.LOG:
        sigma = noise.sigma
    elif noise.base:
        sigma = noise.sigma / abs(noise.base)
    else:
        return None
    return gates.sigmas * sigma / math.sqrt(gates.pairs)


def _lane(index: int, lane: LaneFacts, facts: PlanFacts) -> Iterator[Flaw]:
    here: Where = ("lanes", index)
    if facts.entries is None or not lane.entry:
        return
    entry = next((one for one in facts.entries if one.id == lane.entry), None)
    if entry is None:
        yield Flaw(
            where=(*here, "entry"),
            message=f"the campaign has no entry `{lane.entry}`",
            mend=_offer(lane.entry, [one.id for one in facts.entries]),
        )
        return
    yield from _status(here, lane, entry, facts.entries)
    yield from _headroom((*here, "entry"), entry, facts)


def _status(here: Where, lane: LaneFacts, entry: EntryFacts, entries: Sequence[EntryFacts]) -> Iterator[Flaw]:
    where = (*here, "entry")
    if entry.status is EntryStatus.KEPT:
        planned = [one.id for one in entries if one.status is EntryStatus.PLANNED]
        mend = f"planned are: {', '.join(planned)}" if planned else "no entry is planned: add one to the campaign"
        yield Flaw(where=where, message=f"entry `{entry.id}` is not planned: it is kept{_since(entry)}", mend=mend)
        return
    negative = entry if entry.status is EntryStatus.REJECTED else _alike(entry, entries)
    if negative is None:
        return
    said = "was rejected" if negative is entry else f"says what `{negative.id}` says, which was rejected"
    if not lane.condition.strip():
        yield Flaw(
            where=where,
            message=f"entry `{entry.id}` {said}{_since(negative)}, and the lane states no changed condition",
            mend="say in `condition:` what changed since, or take another entry",
        )
    elif _folded(lane.condition) in map(_folded, negative.tried):
        yield Flaw(
            where=(*here, "condition"),
            message=f"entry `{entry.id}` {said}{_since(negative)} under this very condition",
            mend="say what changed since then, or take another entry",
        )


def _alike(entry: EntryFacts, entries: Sequence[EntryFacts]) -> EntryFacts | None:
    """A rejected entry under another id that says the same of the same plane."""
    mine = (entry.planes, _folded(entry.hypothesis))
    others = (one for one in entries if one.id != entry.id and one.status is EntryStatus.REJECTED)
    return next((one for one in others if (one.planes, _folded(one.hypothesis)) == mine), None)


def _headroom(where: Where, entry: EntryFacts, facts: PlanFacts) -> Iterator[Flaw]:
    least = detectable(facts.gates, facts.noise)
    if entry.headroom is None:
        return
    said = f"entry `{entry.id}`: its headroom of {entry.headroom:.1%}"
    sign = -1 if facts.direction is Direction.LOWER else 1
    if least is not None and sign * math.log1p(sign * entry.headroom) < least:
        known = "measured" if facts.noise else "largest allowed"
        line = f"{facts.gates.sigmas:g} sigma of the {known} noise, {sign * math.expm1(sign * least):.1%}"
        yield Flaw(
            where=where,
            message=f"{said} is below {line} with {facts.gates.pairs} pairs: a win could not be told from noise",
            mend="more `pairs:`, a quieter device set, or another entry",
            warning=True,
        )
    if entry.headroom < facts.gates.rollback:
        yield Flaw(
            where=where,
            message=f"{said} is below the rollback line of {facts.gates.rollback:.1%}: no gain could pass",
            mend="another entry",
            warning=True,
        )


def _shared_entries(lanes: Sequence[LaneFacts]) -> Iterator[Flaw]:
    for index, lane in enumerate(lanes):
        first = next((one.id for one in lanes[:index] if one.entry and one.entry == lane.entry), None)
        if first is not None:
            yield Flaw(
                where=("lanes", index, "entry"),
                message=f"lanes `{first}` and `{lane.id}` pursue one entry, `{lane.entry}`",
                mend="give each lane an entry of its own",
            )


def _shared_stages(facts: PlanFacts) -> Iterator[Flaw]:
    """Lanes whose gains will overlap: they attack the same stage or resource."""
    known = {entry.id: entry for entry in facts.entries or ()}
    pursued = [(index, lane, known[lane.entry]) for index, lane in enumerate(facts.lanes) if lane.entry in known]
    for (_, left, one), (index, right, other) in combinations(pursued, 2):
        if one.id != other.id and one.stage.strip() and _folded(one.stage) == _folded(other.stage):
            smaller = left.id if (one.headroom or 0) < (other.headroom or 0) else right.id
            yield Flaw(
                where=("lanes", index, "entry"),
                message=f"lanes `{left.id}` and `{right.id}` attack the same bottleneck, {other.stage.strip()}: "
                "their gains will hardly add up",
                mend=f"keep `{smaller}`, whose headroom is not larger, for a later round",
                warning=True,
            )


def _too_many_runs(facts: PlanFacts) -> Iterator[Flaw]:
    tickets, gates = sum(lane.submissions for lane in facts.lanes), facts.gates
    runs = tickets * gates.pairs * gates.repetitions
    if runs > MOST_RUNS:
        yield Flaw(
            where=("lanes",),
            message=f"{tickets} tickets of {gates.pairs} pairs of {gates.repetitions} may take {runs} runs of a side: "
            f"a round's history holds {MOST_RUNS}",
            mend="fewer `submissions:`, fewer `repetitions:`, or two rounds",
        )


def _shared_devices(devices: Sequence[DeviceSet]) -> Iterator[Flaw]:
    for (_, one), (index, other) in combinations(enumerate(devices), 2):
        if one.name == other.name:
            continue
        cpus, cuda = set(one.cpus) & set(other.cpus), set(one.cuda) & set(other.cuda)
        whole = [device.name for device in (one, other) if not device.cpus]
        if not (cpus or cuda or whole):
            continue
        what = (
            f"`{whole[0]}` has all processors"
            if whole
            else ", ".join(f"{kind} {_numbers(common)}" for kind, common in (("cpu", cpus), ("cuda", cuda)) if common)
        )
        yield Flaw(
            where=("devices", index),
            message=f"device sets `{one.name}` and `{other.name}` overlap: {what}",
            mend="give each processors and devices of its own",
        )


def _twice(names: Sequence[str], what: str, where: Where, key: str) -> Iterator[Flaw]:
    for index, name in enumerate(names):
        if name and name in names[:index]:
            yield Flaw(
                where=(*where, index, key),
                message=f"{what} `{name}` stands twice, first as number {names.index(name) + 1}",
                mend=f"give each {what} a name of its own",
            )


def _since(entry: EntryFacts) -> str:
    return f" since round {entry.last.round} ({entry.last.why})" if entry.last else ""


def _offer(word: str, known: Sequence[str]) -> str:
    close = get_close_matches(word, known, n=1)
    return f"did you mean `{close[0]}`?" if close else f"known: {', '.join(known)}"


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _count(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


def _numbers(found: set[int]) -> str:
    return ", ".join(map(str, sorted(found)))
