"""A round's plan as one screen of text: pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..workflows.model.round.plan import Command, DeviceSet, LanePlan, RoundPlan
from .durations import show_duration
from .render import agent_name, columns
from .talk import clean, one_line, plural, size

HEADINGS = ("lane", "entry", "plane", "headroom", "globs", "agent", "budget", "tickets")
"""The columns of the table of lanes."""

MOST_GLOBS = 3
"""Protected globs that are shown."""


def plan_lines(
    plan: RoundPlan, *, promote: str, sandbox: bool, said: Sequence[str] = (), warnings: Sequence[str] = ()
) -> list[str]:
    """The whole plan: what is measured and how, the lanes, what follows; `said` are protected globs to show first."""
    return [
        f"round {plan.id} of campaign {plan.campaign}  digest {plan.digest[:16]}",
        *columns([(f"{key}:", value) for key, value in _facts(plan, promote, said, sandbox=sandbox)]),
        "",
        *columns([HEADINGS, *(_lane(lane) for lane in plan.lanes)]),
        *(line for lane in plan.lanes for line in _words(lane)),
        *([""] if warnings else []),
        *(f"warning: {one_line(warning, 240)}" for warning in warnings),
    ]


def _facts(plan: RoundPlan, promote: str, said: Sequence[str], *, sandbox: bool) -> Iterator[tuple[str, str]]:
    gates = plan.gates
    better = "lower is better" if plan.metric.direction == "lower" else "higher is better"
    yield "incumbent", plan.incumbent[:12]
    yield "metric", clean(f"{plan.metric.name} in {plan.metric.unit}, {better}")
    limits = (
        f"{gates.pairs} pairs of {plural(gates.repetitions, 'run')} a side, {gates.sigmas:g} sigma, "
        f"rollback {100 * gates.rollback:.4g}%, noise at most {100 * gates.noise:.4g}%, A/A after every {plan.aa_every}"
    )
    yield "gates", limits
    for name in ("setup", "probe", "build", "smoke", "benchmark", "validate_"):
        command: Command | None = getattr(plan.commands, name)
        if command:
            yield name.rstrip("_"), f"{one_line(command.run, 90)}  (at most {show_duration(command.timeout_s)})"
    if gates.validator:
        yield "validator", ", ".join(f"{clean(file.path)} {file.sha256[:12]}" for file in gates.validator)
    yield "protected", _protected(list(dict.fromkeys((*said, *plan.protected))))
    yield "devices", "; ".join(map(_device, plan.devices))
    yield (
        "limits",
        (
            f"round over after {show_duration(plan.deadline_s)}, a submission holds at most {size(plan.max_bytes)} "
            f"in {plural(plan.max_files, 'file')}"
        ),
    )
    fallback = ", one fallback to the best single lane" if plan.composition == "stepwise" else ", no fallback"
    goal = "stays in the store" if promote == "none" else f"goes to {clean(promote)}"
    yield "composition", f"{plan.composition}{fallback}; a new incumbent {goal}"
    yield "sandbox", "required" if sandbox else "off: everything can read and write whatever you can"


def _lane(lane: LanePlan) -> tuple[str, ...]:
    return (
        lane.id,
        lane.entry.id,
        lane.entry.plane,
        f"{lane.entry.headroom:.1%}",
        one_line(" ".join(lane.globs), 40),
        agent_name(lane.agent),
        _budget(lane),
        str(lane.submissions),
    )


def _budget(lane: LanePlan) -> str:
    budget = lane.budget
    parts = [f"{budget.attempts} x {show_duration(budget.wall_s)}"]
    parts += [f"{budget.turns} turns"] if budget.turns else []
    parts += [f"{budget.tokens:,} tok"] if budget.tokens else []
    parts += [f"${budget.usd:.2f}"] if budget.usd else []
    return ", ".join(parts)


def _words(lane: LanePlan) -> Iterator[str]:
    stage = f" (stage {one_line(lane.entry.stage, 30)})" if lane.entry.stage else ""
    yield f"{lane.id}: {one_line(lane.entry.hypothesis, 100)}{stage}"
    if lane.condition:
        yield f"{lane.id}: changed since it was rejected: {one_line(lane.condition, 100)}"


def _device(devices: DeviceSet) -> str:
    parts = [f"cpus {','.join(map(str, devices.cpus))}" if devices.cpus else "all processors"]
    parts += [f"cuda {','.join(map(str, devices.cuda))}"] if devices.cuda else []
    parts += [f"load below {devices.load:g}"] if devices.load is not None else []
    parts += [f"governor {clean(devices.governor)}"] if devices.governor else []
    return f"{devices.name} ({', '.join(parts)})"


def _protected(globs: Sequence[str]) -> str:
    shown = ", ".join(clean(glob) for glob in globs[:MOST_GLOBS])
    return f"{shown} and {len(globs) - MOST_GLOBS} more" if len(globs) > MOST_GLOBS else shown or "nothing"
