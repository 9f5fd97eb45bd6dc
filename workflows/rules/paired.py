"""Paired measurement: whether a candidate is measurably better than its base.

A gain is the mean over AB/BA pairs of log(a/b) where lower is better, of log(b/a) where higher is (where a value is not
positive: of the difference in the unit). Half of the pairs run in each order, so what first or second place costs, and
a drift that is straight over the measurement, cancel out. It passes when it is at least

    max(gates.sigmas, t) * error,   error = sigma / sqrt(pairs)

with t the quantile of Student's distribution at the level of two sigma (0.977), and sigma from A/A pairs or from these
pairs, whichever asks for more: see `estimation/bar.py`. How often a null change passes nevertheless, and how many pairs
find a gain, is simulated in `tests/workflows/rules/test_error_rates.py` and tabled in `tests/bench/README.md`.

Limits. What is the same for all pairs of one measurement does not average out and is in no spread: where a checkout
came to lie in memory, or what the host did all the while (Mytkowicz et al., Producing wrong data without doing anything
obviously wrong, 2009). It is why an accepted head is measured again from fresh checkouts, and with 1 % of it that is
not enough. A step of the level inside of a pair is a spike of that pair. Noise that is handed on from run to run makes
neighbouring pairs alike: with AR(1) noise the variance of the mean is up to 1.2 times what the spread says, and up to
1.4 times with three runs a side. A side's median hides what is rarely slow. The gain of a rerun is unbiased over all
reruns; of those that just passed it is a little too large.
"""

from __future__ import annotations

from ..estimation.bar import Bar, bar, rollback_line
from ..estimation.moments import mean
from ..estimation.paired_sample import PairedSample, broken, read
from ..estimation.student import normal, quantile
from ..model.round.plan import Direction, Gates, Metric
from ..model.round.trial import Evaluation, Judgement, Measurement, Noise

TWO_SIGMA = normal(2)
"""The level of two sigma, one-sided: a null change is measured as a gain in 2.3 % of measurements."""

ORDER_LEVEL = 0.995
"""An order effect is one when noise alone shows as much in less than 1 % of measurements, two-sided."""


def evaluate(measurement: Measurement, metric: Metric, gates: Gates, noise: Noise | None) -> Evaluation:
    """What a measurement shows.

    The verdict is the first that holds of: unevaluable, invalid, regression, not measured, below the rollback line,
    inconclusive, passed.

    Unevaluable is a measurement that failed, one with a failed run or too few pairs, one without noise to compare it
    with, and one whose values change their sign, are not finite, or are not positive while the noise is in log ratios.
    Where the noise is a difference, so is the gain, even if every value is positive.
    """
    if flaw := broken(measurement):
        return _unevaluable(flaw)
    if measurement.invalid:
        return Evaluation(verdict=Judgement.INVALID, why=f"the validator refused the result: {measurement.invalid}")
    if not noise:
        return _unevaluable("there is no noise of A/A pairs to compare it with")
    sample = read(measurement, metric, gates, noise.scale)
    if isinstance(sample, str):
        return _unevaluable(sample)
    if noise.base * mean(sample.base) < 0:
        return _unevaluable(f"the metric changed its sign since the noise was measured at {noise.base:g} {metric.unit}")
    return _evaluated(sample, gates, noise)


def _unevaluable(why: str) -> Evaluation:
    return Evaluation(verdict=Judgement.UNEVALUABLE, why=why)


def _evaluated(sample: PairedSample, gates: Gates, noise: Noise) -> Evaluation:
    reach = bar(sample, noise, lambda freedom: max(gates.sigmas, quantile(TWO_SIGMA, freedom)))
    base, candidate = mean(sample.base), mean(sample.candidate)
    return Evaluation(
        verdict=_verdict(sample, reach, rollback_line(sample, gates)),
        scale=sample.scale,
        gain=sample.gain,
        gain_unit=base - candidate if sample.metric.direction is Direction.LOWER else candidate - base,
        error=reach.error,
        needed=reach.least,
        order_effect=sample.order_effect,
        base=base,
        candidate=candidate,
        pairs=len(sample.differences),
        why=_why(sample, reach),
    )


def _verdict(sample: PairedSample, reach: Bar, rollback: float) -> Judgement:
    if sample.gain <= -reach.least:
        return Judgement.REGRESSION
    if sample.gain < reach.least:
        return Judgement.NOT_MEASURED
    if sample.gain < rollback:
        return Judgement.BELOW_ROLLBACK
    return Judgement.INCONCLUSIVE if _depends_on_order(sample) else Judgement.PASSED


def _depends_on_order(sample: PairedSample) -> bool:
    """Whether what first and second place cost is more than the gain, and more than noise makes of nothing.

    Without the second condition noise alone would cost true gains: the standard error of the order effect is twice
    that of the gain, so a gain of five standard errors would be lost in 2.5 % of measurements.
    """
    by_chance = sample.order_error * quantile(ORDER_LEVEL, len(sample.differences) - 2)
    return sample.order_effect > max(sample.gain, by_chance)


def _why(sample: PairedSample, reach: Bar) -> str:
    pairs, gain = len(sample.differences), sample.shown(sample.gain)
    asked = f"{sample.shown(reach.least)} asked for"
    order = f"order effect {sample.shown(sample.order_effect)}"
    if not reach.error:
        return f"gain {gain} in {pairs} pairs without noise, {asked}; {order}"
    errors = f"{sample.gain / reach.error:.1f} standard errors of {sample.shown(reach.error)}"
    return f"gain {gain} in {pairs} pairs, {errors}, {asked}; {order}"
