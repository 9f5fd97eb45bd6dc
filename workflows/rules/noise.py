"""Noise: what A/A pairs, the incumbent measured against itself, say about the noise of a pair and about the device."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt

from ..estimation.bar import bar, rollback_line
from ..estimation.moments import mean
from ..estimation.paired_sample import PairedSample, broken, read
from ..estimation.student import quantile
from ..model.round.plan import Gates, Metric
from ..model.round.trial import GuardResult, Measurement, Noise

FALSE_ALARM = 0.01
"""How often a sound device fails the test for a difference where there is none, two-sided."""

HARMLESS = 0.1
"""Of the rollback line: a smaller difference of the incumbent from itself lifts no null change over the line."""


def guard(measurement: Measurement, metric: Metric, gates: Gates, pooled: Noise | None) -> GuardResult:
    """Whether an A/A measurement shows a device that can be measured on.

    It fails when it has no facts, when the noise of a pair is above the gate, when the two sides differ by more than a
    harmless share of the rollback line (Student's t test at FALSE_ALARM; sigma from these pairs or from the pooled
    ones, whichever asks for more), and when the level of the second half of the pairs is further from that of the
    first than the gate. The noise that it passes with is to be pooled; that of one that fails is not.

    A level that moved since earlier A/A measurements is told and fails nothing: a candidate is only ever compared with
    the base beside it, and a device that found another lasting speed would never be measured on again.

    Args:
        measurement: both sides are the incumbent.
        metric: what was measured.
        gates: pairs, repetitions and the largest noise.
        pooled: the noise of the A/A measurements that passed before; it fixes the scale.
    """
    if flaw := broken(measurement):
        return GuardResult(passed=False, why=flaw)
    if measurement.invalid:
        return GuardResult(passed=False, why=f"the validator refused the incumbent's own result: {measurement.invalid}")
    sample = read(measurement, metric, gates, pooled.scale if pooled else None)
    if isinstance(sample, str):
        return GuardResult(passed=False, why=sample)
    faults = [
        fault for fault in (_noisy(sample, gates), _differs(sample, gates, pooled), _drifts(sample, gates)) if fault
    ]
    noise = Noise(scale=sample.scale, sigma=sample.spread, pairs=len(sample.differences), base=_level(sample))
    return GuardResult(passed=not faults, noise=noise, why="; ".join(faults or [_told(sample, pooled)]))


def pool(noises: Sequence[Noise]) -> Noise:
    """The noise of several A/A measurements: their variances weighted by degrees of freedom.

    Raises:
        ValueError: without any, or with two scales.
    """
    if len({noise.scale for noise in noises}) != 1:
        raise ValueError("noise is pooled of one or more measurements in one scale")
    pairs = sum(noise.pairs for noise in noises)
    freedom = sum(noise.freedom for noise in noises)
    largest = max(noise.sigma for noise in noises) or 1.0
    variance = fsum(noise.freedom / freedom * (noise.sigma / largest) ** 2 for noise in noises)
    return Noise(
        scale=noises[0].scale,
        sigma=largest * sqrt(variance),
        pairs=pairs,
        measurements=sum(noise.measurements for noise in noises),
        base=fsum(noise.pairs / pairs * noise.base for noise in noises),
    )


def _level(sample: PairedSample) -> float:
    return mean(sample.base + sample.candidate)


def _noisy(sample: PairedSample, gates: Gates) -> str:
    limit = gates.noise * (1 if sample.in_log else abs(_level(sample)))
    if sample.spread <= limit:
        return ""
    return f"the noise of a pair is {sample.shown(sample.spread)}, at most {sample.shown(limit)} is allowed"


def _differs(sample: PairedSample, gates: Gates, pooled: Noise | None) -> str:
    reach = bar(sample, pooled, lambda freedom: quantile(1 - FALSE_ALARM / 2, freedom))
    if abs(sample.gain) < max(reach.least, HARMLESS * rollback_line(sample, gates)):
        return ""
    measured, least = sample.shown(abs(sample.gain)), sample.shown(reach.least)
    return f"the incumbent differs from itself by {measured}, noise makes less than {least}"


def _drifts(sample: PairedSample, gates: Gates) -> str:
    levels = [(a / 2 + b / 2) for a, b in zip(sample.base, sample.candidate, strict=True)]
    half = len(levels) // 2
    before, after = mean(levels[:half]), mean(levels[half:])
    if abs(after - before) <= gates.noise * abs(before):
        return ""
    return f"the incumbent drifted from {before:.4g} to {after:.4g} {sample.metric.unit} while it was measured"


def _told(sample: PairedSample, pooled: Noise | None) -> str:
    level, unit = _level(sample), sample.metric.unit
    noise = f"noise of a pair {sample.shown(sample.spread)}, difference {sample.shown(sample.gain)}"
    moved = f", before {pooled.base:.4g} {unit}" if pooled and pooled.base != level else ""
    return f"{noise}, level {level:.4g} {unit}{moved}"
