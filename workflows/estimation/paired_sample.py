"""A paired sample: what the pairs of a measurement say, before a rule judges it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import expm1, isfinite, log, sqrt

from ..model.round.plan import Direction, Gates, Metric
from ..model.round.trial import Measurement, Order, Pair, Sample, Scale
from .moments import deviation, mean, median

CLOCK_UNITS = frozenset(
    {"ns", "us", "µs", "μs", "ms", "s", "sec", "secs", "second", "seconds", "min", "minute", "minutes", "h", "hours"}
)
"""Units of values that are read off a clock, in lower case: they may be rounded to its steps. Counts are exact."""


@dataclass(frozen=True)
class PairedSample:
    """One value for each side of each pair, and their differences.

    Attributes:
        metric: what was measured.
        scale: of the differences: log ratios, or the metric's unit.
        base: side A of each pair, in the unit.
        candidate: side B.
        differences: by how much B is better, pair by pair.
        orders: which side ran first.
        step: the decimal step that the values of a clock are written with, in the unit; 0 where there is no clock.
    """

    metric: Metric
    scale: Scale
    base: tuple[float, ...]
    candidate: tuple[float, ...]
    differences: tuple[float, ...]
    orders: tuple[Order, ...]
    step: float = 0.0

    @cached_property
    def gain(self) -> float:
        """The mean difference, positive is better."""
        return mean(self.differences)

    @cached_property
    def spread(self) -> float:
        """The sample standard deviation of one pair's difference."""
        return deviation(self.differences)

    @cached_property
    def order_effect(self) -> float:
        """By how much the mean differs between the pairs that began with A and those that began with B."""
        ab, ba = map(mean, self._by_order)
        return abs(ab - ba)

    @cached_property
    def order_error(self) -> float:
        """The standard error of the order effect, with two degrees of freedom fewer than there are pairs.

        It comes from the spread within each order: the spread of all pairs has the effect itself in it.
        """
        pairs = len(self.differences)
        residuals = [each - mean(half) for half in self._by_order for each in half]
        return 2 * deviation(residuals) * sqrt((pairs - 1) / (pairs - 2) / pairs)

    @property
    def _by_order(self) -> tuple[list[float], list[float]]:
        ab, ba = (
            [d for d, order in zip(self.differences, self.orders, strict=True) if order == each]
            for each in ("AB", "BA")
        )
        return ab, ba

    @property
    def in_log(self) -> bool:
        """Whether the differences are log ratios."""
        return self.scale is Scale.LOG

    @cached_property
    def level(self) -> float:
        """The size of the values, in the unit."""
        return abs(mean(self.base))

    def in_scale(self, amount: float) -> float:
        """An amount of the unit as a difference in the sample's scale; of a log ratio, that of the smaller side."""
        return log(1 + amount / min(mean(self.base), mean(self.candidate))) if self.in_log else amount

    def shown(self, amount: float) -> str:
        """An amount of the scale in words: of a log ratio, the percentage that it changes a value by."""
        if not self.in_log:
            return f"{amount:.4g} {self.metric.unit}"
        return f"{100 * (-expm1(-amount) if self.metric.direction is Direction.LOWER else expm1(amount)):.2f} %"


def broken(measurement: Measurement) -> str:
    """Why a measurement has no facts to read; empty if it has.

    It never came to pairs, one of its runs failed, or the validator refuses what the incumbent does, too.
    """
    if measurement.invalid and measurement.side == "base":
        return f"the validator refused the incumbent's own result: {measurement.invalid}"
    if measurement.busy:
        return f"nothing was measured: the device is busy ({measurement.busy})"
    if measurement.failed:
        of = f" of the {measurement.side}" if measurement.side else ""
        return f"nothing was measured: {measurement.failed.value}{of}{_detail(measurement)}"
    for pair, side, sample in _samples(measurement):
        if sample.value is None or not sample.exit.ok:
            return f"a run of pair {pair.index}, side {side}, gave no value: {sample.flaw or sample.exit}"
    return ""


def read(measurement: Measurement, metric: Metric, gates: Gates, scale: Scale | None = None) -> PairedSample | str:
    """The paired sample of a measurement, or why there is none.

    Args:
        measurement: its pairs, not `broken`.
        metric: which way it improves, and its unit.
        gates: how many pairs and runs must be there.
        scale: that of the noise it is compared with; None to take log ratios where every value is positive.
    """
    if flaw := broken(measurement) or _incomplete(measurement, gates):
        return flaw
    values = [sample.value for _, _, sample in _samples(measurement) if sample.value is not None]
    if not all(map(isfinite, values)):
        return "a value is not finite"
    if min(values) < 0 < max(values):
        return f"the metric changes its sign: from {min(values):g} to {max(values):g} {metric.unit}"
    positive = min(values) > 0
    if scale is Scale.LOG and not positive:
        return f"a value is {min(values):g} {metric.unit}, but the noise was measured in log ratios"
    sample = _sample(measurement, metric, Scale.LOG if positive and scale is not Scale.DIFFERENCE else Scale.DIFFERENCE)
    finite = all(map(isfinite, (sample.gain, sample.spread, sample.order_effect, sample.level)))
    return sample if finite else "the values are too large to be compared"


def _detail(measurement: Measurement) -> str:
    return f": {measurement.detail}" if measurement.detail else ""


def _samples(measurement: Measurement) -> Iterator[tuple[Pair, str, Sample]]:
    return (
        (pair, side, sample)
        for pair in measurement.pairs
        for side, samples in (("A", pair.a), ("B", pair.b))
        for sample in samples
    )


def _incomplete(measurement: Measurement, gates: Gates) -> str:
    """What of the design is missing; a pair that is not balanced by one in the other order proves nothing."""
    pairs = measurement.pairs
    if len(pairs) < gates.pairs:
        return f"{len(pairs)} of {gates.pairs} pairs are complete{_detail(measurement)}"
    if len({pair.index for pair in pairs}) < len(pairs):
        return "a pair is there twice"
    if 2 * sum(pair.order == "AB" for pair in pairs) != len(pairs):
        return "the pairs are not half in one order and half in the other"
    short = next((p for p in pairs if min(len(p.a), len(p.b)) < gates.repetitions), None)
    return f"pair {short.index} has fewer runs of a side than {gates.repetitions}" if short else ""


def _sample(measurement: Measurement, metric: Metric, scale: Scale) -> PairedSample:
    pairs = measurement.pairs
    base = tuple(_value(pair.a) for pair in pairs)
    candidate = tuple(_value(pair.b) for pair in pairs)
    sign = 1 if metric.direction is Direction.LOWER else -1
    of: Callable[[float], float] = log if scale is Scale.LOG else float
    return PairedSample(
        metric=metric,
        scale=scale,
        base=base,
        candidate=candidate,
        differences=tuple(sign * (of(a) - of(b)) for a, b in zip(base, candidate, strict=True)),
        orders=tuple(pair.order for pair in pairs),
        step=_step(measurement) if metric.unit.lower() in CLOCK_UNITS else 0.0,
    )


def _value(samples: tuple[Sample, ...]) -> float:
    """A side's value in a pair: the median of its runs."""
    return median([sample.value for sample in samples if sample.value is not None])


def _step(measurement: Measurement) -> float:
    """The finest power of ten that a value is written with: 0.01 of 0.05 and 0.4."""
    exponents = [_exponent(s.value) for _, _, s in _samples(measurement) if s.value]
    return 10.0 ** min(exponents) if exponents else 0.0


def _exponent(value: float) -> int:
    """The power of ten of a value's last digit, as the shortest text that reads back as the same double has it."""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0")
    last = -len(fraction) if fraction else len(whole) - len(whole.rstrip("0"))
    return int(exponent or 0) + last
