"""Gains as people read them: positive is better, in percent of the metric or in its unit. Pure."""

from __future__ import annotations

from math import exp, expm1

from .model.round.plan import Direction, Metric
from .model.round.trial import Evaluation, Noise, Scale

UNKNOWN = "-"

_FINE = 0.00995
"""Below one percent, as it is rounded, another digit is shown."""


def share(gain: float, direction: Direction) -> float:
    """The improvement that a log ratio stands for, as a share of the base's value.

    Of a metric that is to be low a gain of g leaves exp(-g) of it, of one that is to be high it makes exp(g) of it.
    """
    return -expm1(-gain) if direction is Direction.LOWER else expm1(gain)


def gain_text(gain: float | None, scale: Scale, metric: Metric | None) -> str:
    """`+8.1%`, or `+1.25 ms` where the metric is not positive; `-` when it is unknown."""
    if gain is None:
        return UNKNOWN
    if scale is Scale.DIFFERENCE:
        return unit_text(gain, metric)
    part = share(gain, metric.direction if metric else Direction.LOWER)
    return f"{part:+.{2 if abs(part) < _FINE else 1}%}"


def unit_text(value: float | None, metric: Metric | None) -> str:
    """A gain in the metric's own unit: `+10.7 ms`."""
    return UNKNOWN if value is None else f"{value:+.4g} {metric.unit if metric else ''}".rstrip()


def value_text(value: float | None, metric: Metric | None) -> str:
    """A value of the metric: `93.5 ms`."""
    return UNKNOWN if value is None else f"{value:.4g} {metric.unit if metric else ''}".rstrip()


def error_text(evaluation: Evaluation, metric: Metric | None) -> str:
    """The standard error beside its gain, in percent or in the unit: `0.5%`; empty when it is unknown."""
    if evaluation.error is None or evaluation.gain is None:
        return ""
    if evaluation.scale is Scale.DIFFERENCE:
        return value_text(evaluation.error, metric)
    lower = metric is None or metric.direction is Direction.LOWER
    part = evaluation.error * exp(-evaluation.gain if lower else evaluation.gain)
    return f"{part:.{2 if part < _FINE else 1}%}"


def evaluation_text(evaluation: Evaluation | None, metric: Metric | None) -> str:
    """A gain with its standard error: `+8.1% ±0.5%`."""
    if evaluation is None or evaluation.gain is None:
        return UNKNOWN
    error = error_text(evaluation, metric)
    gain = gain_text(evaluation.gain, evaluation.scale, metric)
    return f"{gain} ±{error}" if error else gain


def noise_text(noise: Noise, metric: Metric | None) -> str:
    """The noise of one pair: `1.41% at 104 ms, from 16 A/A pairs`."""
    sigma = f"{noise.sigma:.2%}" if noise.scale is Scale.LOG else value_text(noise.sigma, metric)
    return f"{sigma} at {value_text(noise.base, metric)}, from {noise.pairs} A/A pairs"


def ratio_text(unit: float | None, log: float | None) -> str:
    """An interaction ratio of differences and, in brackets, of log ratios: `0.74 (0.80)`."""
    if unit is None:
        return UNKNOWN
    return _two(unit) if log is None else f"{_two(unit)} ({_two(log)})"


def _two(ratio: float) -> str:
    return f"{round(ratio, 2) + 0.0:.2f}"  # no minus before a zero
