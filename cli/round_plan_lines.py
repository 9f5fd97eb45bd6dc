"""A round's plan as one screen of text: pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..workflows.model.round.plan import Command, DeviceSet, LanePlan, RoundPlan
from .durations import show_duration
from .render import agent_name, columns, cut, fitted
from .talk import clean, one_line, plural, size

HEADINGS = ("lane", "entry", "plane", "headroom", "agent", "budget", "tickets", "globs")
"""The columns of the table of lanes."""

SPARE = ("plane", "headroom", "entry", "agent")
"""Columns that a narrow terminal does without, the first one first."""

BESIDE = 34
"""Columns beside a command: its name, and how long it may take."""

MOST_GLOBS = 3
"""Protected globs that are shown."""


def plan_lines(
    plan: RoundPlan,
    *,
    promote: str,
    sandbox: bool,
    said: Sequence[str] = (),
    warnings: Sequence[str] = (),
    screen: tuple[int, int] = (0, 0),
) -> list[str]:
    """The whole plan: what is measured and how, the lanes, what follows.

    Of protected globs those are shown first that are `said`. Lanes are fitted to a `screen` of so many columns and
    lines, zeros for any; gaps go when it is low.
    """
    width, height = screen
    table = fitted([HEADINGS, *map(_lane, plan.lanes)], width, SPARE, 20)
    facts = columns([(f"{key}:", value) for key, value in _facts(plan, promote, said, width, sandbox=sandbox)])
    told = [f"warning: {one_line(warning, 240)}" for warning in warnings]
    lines = [
        f"round {plan.id} of campaign {plan.campaign}  digest {plan.digest[:16]}",
        *facts,
        "",
        *(cut(line, width) for line in (*table, *map(_words, plan.lanes))),
        *([""] if warnings else []),
        *told,
    ]
    taken = len(lines) + len(told) + 1  # a warning takes two lines, and the prompt one
    return [line for line in lines if line] if 0 < height < taken else lines


def _facts(
    plan: RoundPlan, promote: str, said: Sequence[str], width: int, *, sandbox: bool
) -> Iterator[tuple[str, str]]:
    gates, room = plan.gates, max(width - BESIDE, 20) if width else 90
    better = "lower is better" if plan.metric.direction == "lower" else "higher is better"
    metric = f"{plan.metric.name} in {plan.metric.unit}, {better}"
    yield "metric", f"{clean(metric)}; incumbent {plan.incumbent[:12]}"
    limits = (
        f"{gates.pairs} pairs of {plural(gates.repetitions, 'run')}, {gates.sigmas:g} sigma, "
        f"rollback {100 * gates.rollback:.4g}%, noise {100 * gates.noise:.4g}%, A/A every {plan.aa_every}"
    )
    yield "gates", limits
    for name in ("setup", "probe", "build", "smoke", "benchmark", "validate_"):
        command: Command | None = getattr(plan.commands, name)
        if command:
            yield name.rstrip("_"), f"{one_line(command.run, room)}  (at most {show_duration(command.timeout_s)})"
    if gates.validator:
        yield "validator", ", ".join(f"{clean(file.path)} {file.sha256[:12]}" for file in gates.validator)
    yield "protected", _protected(list(dict.fromkeys((*said, *plan.protected))))
    yield "devices", "; ".join(map(_device, plan.devices))
    largest = f"{size(plan.max_bytes)} in {plural(plan.max_files, 'file')}"
    yield "limits", f"over after {show_duration(plan.deadline_s)}; a submission at most {largest}"
    fallback = "else the best lane" if plan.composition == "stepwise" else "or nothing"
    goal = "stays in the store" if promote == "none" else f"goes to {clean(promote)}"
    yield "composition", f"{plan.composition}, {fallback}; the result {goal}"
    if not sandbox:
        yield "sandbox", "off: everything can read and write whatever you can"


def _lane(lane: LanePlan) -> tuple[str, ...]:
    return (
        lane.id,
        lane.entry.id,
        lane.entry.plane,
        f"{lane.entry.headroom:.1%}",
        agent_name(lane.agent),
        _budget(lane),
        str(lane.submissions),
        one_line(" ".join(lane.globs), 40),
    )


def _budget(lane: LanePlan) -> str:
    budget = lane.budget
    parts = [f"{budget.attempts} x {show_duration(budget.wall_s)}"]
    parts += [f"{budget.turns} turns"] if budget.turns else []
    parts += [f"{budget.tokens:,} tok"] if budget.tokens else []
    parts += [f"${budget.usd:.2f}"] if budget.usd else []
    return ", ".join(parts)


def _words(lane: LanePlan) -> str:
    stage = f" (stage {one_line(lane.entry.stage, 30)})" if lane.entry.stage else ""
    changed = f"; changed since it was rejected: {one_line(lane.condition, 100)}" if lane.condition else ""
    return f"{lane.id}: {one_line(lane.entry.hypothesis, 100)}{stage}{changed}"


def _device(devices: DeviceSet) -> str:
    parts = [f"cpus {','.join(map(str, devices.cpus))}" if devices.cpus else "all processors"]
    parts += [f"cuda {','.join(map(str, devices.cuda))}"] if devices.cuda else []
    parts += [f"load below {devices.load:g}"] if devices.load is not None else []
    parts += [f"governor {clean(devices.governor)}"] if devices.governor else []
    return f"{devices.name} ({', '.join(parts)})"


def _protected(globs: Sequence[str]) -> str:
    shown = ", ".join(clean(glob) for glob in globs[:MOST_GLOBS])
    return f"{shown} and {len(globs) - MOST_GLOBS} more" if len(globs) > MOST_GLOBS else shown or "nothing"
