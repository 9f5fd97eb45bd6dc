"""What a pilot shows: the document of `--json`, and the same as lines of text. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean, median

from ..workflows.gains import share
from ..workflows.model.base import Value
from ..workflows.model.round.pilot import Arm, Decision, PilotPlan, PilotRule, PilotRun, Speed, Spread
from ..workflows.model.round.plan import Direction
from ..workflows.rules.pilot import decide, spread
from ..workflows.rules.speed_model import speed
from .durations import show_duration
from .render import columns


class ModelCheck(Value):
    """The speed model against what was measured; both from the start of an arm's first round to its last decision.

    Attributes:
        loads: what it was fed: means over the runs of S, where no lane waits for another.
        expected: what it expects of these.
        serial_s: median measured seconds of S.
        parallel_s: the same of P.
        speedup: of the measured medians.
        off: expected by measured parallel seconds, less 1.
    """

    loads: str
    expected: Speed
    serial_s: float
    parallel_s: float
    speedup: float | None
    off: float | None


class PilotReport(Value):
    """The whole document of a pilot."""

    pilot: str
    digest: str
    round_digest: str
    rule: PilotRule
    decision: Decision
    runs: tuple[PilotRun, ...]
    measures: dict[str, dict[Arm, Spread]]
    model: ModelCheck | None


MEASURES: dict[str, Callable[[PilotRun], float | None]] = {
    "device_s": lambda run: run.device_s,
    "busy": lambda run: run.busy,
    "wait_s": lambda run: fmean(run.waits_s) if run.waits_s else 0.0,
    "tickets": lambda run: float(sum(lane.submissions for lane in run.lanes)),
    "tokens": lambda run: None if run.tokens is None else float(run.tokens),
    "usd": lambda run: run.usd,
    "lost_in_composition": lambda run: float(run.lost),
}
"""The secondary measures of a run; None is unknown."""

HEADINGS = ("run", "target after", "ended after", "gain", "tickets", "wait", "device", "busy", "lost", "rejected")


def report(pilot: PilotPlan, runs: Sequence[PilotRun]) -> PilotReport:
    """Everything that the runs so far show."""
    return PilotReport(
        pilot=pilot.id,
        digest=pilot.digest,
        round_digest=pilot.round.digest,
        rule=pilot.rule,
        decision=decide(runs, pilot.rule),
        runs=tuple(runs),
        measures={name: found for name, of in MEASURES.items() if (found := _per_arm(runs, of))},
        model=check_model(runs, len(pilot.round.devices)),
    )


def check_model(runs: Sequence[PilotRun], devices: int) -> ModelCheck | None:
    """The model fed with the runs of S, beside the measured times; None while an arm has no run."""
    serial, parallel = ([run for run in runs if run.arm is arm] for arm in (Arm.SERIAL, Arm.PARALLEL))
    if not serial or not parallel:
        return None
    expected = [_expected(run, devices) for run in serial]
    whole_s, whole_p = (median(run.ended_s + run.fixed_s for run in arm) for arm in (serial, parallel))
    model = Speed(
        serial_s=fmean(one.serial_s for one in expected),
        parallel_s=fmean(one.parallel_s for one in expected),
        speedup=fmean(one.speedup or 1.0 for one in expected),
    )
    return ModelCheck(
        loads=_loads(serial),
        expected=model,
        serial_s=whole_s,
        parallel_s=whole_p,
        speedup=whole_s / whole_p if whole_p else None,
        off=model.parallel_s / whole_p - 1 if whole_p else None,
    )


def _expected(run: PilotRun, devices: int) -> Speed:
    once = max((lane.measure_s for lane in run.lanes), default=0.0)
    return speed(run.lanes, devices=devices, picks=run.composed, rerun_s=once, fixed_s=run.fixed_s)


def _loads(runs: Sequence[PilotRun]) -> str:
    lanes = [lane for run in runs for lane in run.lanes]
    count = len(runs[0].lanes)
    agent, tickets = fmean(lane.agent_s for lane in lanes), fmean(lane.submissions for lane in lanes)
    return f"N {count}, A {agent:.1f} s, s {tickets:.1f}, M {fmean(lane.measure_s for lane in lanes):.1f} s"


def _per_arm(runs: Sequence[PilotRun], of: Callable[[PilotRun], float | None]) -> dict[Arm, Spread]:
    found = {arm: [value for run in runs if run.arm is arm and (value := of(run)) is not None] for arm in Arm}
    return {arm: spread(values) for arm, values in found.items() if values}


def report_lines(shown: PilotReport, direction: Direction) -> list[str]:
    """The report as text: the verdict, every run, medians and ranges, the model."""
    decision, rule = shown.decision, shown.rule
    aim = f"{rule.fraction:g} of {rule.target:.0%}"
    lines = [
        f"{shown.pilot}: {decision.label}",
        f"P (all lanes in one round) is {decision.verdict.value} than S (one lane per round)"
        if decision.verdict.value != "not distinguishable"
        else "P (all lanes in one round) and S (one lane per round) are not distinguishable",
        f"why: {decision.why}",
        f"rule: {aim} reached first in every pair, median time ratio below {rule.threshold:g}, gain not lower",
        "",
        *columns([HEADINGS, *(_row(run, direction) for run in shown.runs)]),
        "",
        *columns([("", *(f"{arm.value} median (range)" for arm in Arm)), *_spreads(shown, direction)]),
    ]
    ratio = decision.ratio
    lines += [f"time ratio P/S: {_range(ratio, '{:.2f}'.format)}"] if ratio else []
    return [*lines, *_model_lines(shown.model)]


def _spreads(shown: PilotReport, direction: Direction) -> list[tuple[str, ...]]:
    rows = {"time to target, s": shown.decision.times, "final gain": shown.decision.gains, **shown.measures}
    scale = next((run.scale for run in shown.runs), "log")
    forms: dict[str, Callable[[float], str]] = {"final gain": lambda gain: _gain(gain, scale, direction)}
    return [
        (
            name.replace("_", " "),
            *(_range(found[arm], forms.get(name, "{:.3g}".format)) if arm in found else "-" for arm in Arm),
        )
        for name, found in rows.items()
    ]


def _range(found: Spread, show: Callable[[float], str]) -> str:
    return f"{show(found.median)} ({show(found.low)} to {show(found.high)})"


def _row(run: PilotRun, direction: Direction) -> tuple[str, ...]:
    rejected: Counter[str] = Counter(run.rejected)
    return (
        f"{run.arm.value}{run.pair + 1}",
        "never" if run.reached_s is None else show_duration(run.reached_s),
        show_duration(run.ended_s),
        _gain(run.gain, run.scale, direction),
        str(sum(lane.submissions for lane in run.lanes)),
        show_duration(fmean(run.waits_s)) if run.waits_s else "-",
        show_duration(run.device_s),
        f"{run.busy:.0%}",
        str(run.lost),
        ", ".join(f"{count} {cause}" for cause, count in rejected.items()) or "-",
    )


def _gain(gain: float, scale: str, direction: Direction) -> str:
    """A log ratio as the percentage of the incumbent's value that was won; a difference as it is."""
    if scale != "log":
        return f"{gain:.4g}"
    return f"{share(gain, direction):.1%}"


def _model_lines(model: ModelCheck | None) -> list[str]:
    if model is None:
        return []
    rows = (
        ("expected", model.expected.serial_s, model.expected.parallel_s, model.expected.speedup),
        ("measured", model.serial_s, model.parallel_s, model.speedup),
    )
    told = (
        f"  {name}  serial {show_duration(serial)}, parallel {show_duration(parallel)}, speedup {ratio or 1:.2f}"
        for name, serial, parallel, ratio in rows
    )
    return ["", f"speed model with {model.loads}:", *told]
