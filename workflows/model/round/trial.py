"""Trials: benchmark runs of two checkouts in AB/BA pairs, every raw sample kept, and what they show."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from ..base import Sha, Value
from ..exit import Exit
from ..verdict import Excerpt
from .plan import Name
from .ticket import Cause


class Sample(Value):
    """One benchmark run.

    Attributes:
        value: the metric, in its unit; None when the run gave none.
        exit: how the benchmark ended.
        wall_s: wall seconds it took.
        flaw: why there is no value, in words.
    """

    value: float | None = Field(default=None, allow_inf_nan=False)
    exit: Exit
    wall_s: float = 0.0
    flaw: str = ""


Order = Literal["AB", "BA"]


class Pair(Value):
    """Both sides measured one after the other: A is the base, B the candidate.

    Attributes:
        index: from 0; even pairs run A first.
        order: which side ran first.
        a: the base's runs.
        b: the candidate's runs.
    """

    index: int = Field(ge=0)
    order: Order
    a: tuple[Sample, ...]
    b: tuple[Sample, ...]


class Validated(Value):
    """What the validator says of the outputs that it saw once the device was free; empty when all are right.

    Attributes:
        failed: the runs changed what they are graded by; known without the sandbox alone.
        invalid: how the validator ended when it did not accept an output.
        side: whose output it is, or who changed what.
        detail: the fact behind it.
        output: what it printed.
    """

    failed: Cause | None = None
    invalid: Exit | None = None
    side: str = ""
    detail: str = Field(default="", max_length=500)
    output: Excerpt = Excerpt()

    @property
    def refused(self) -> bool:
        """Whether something is not right."""
        return self.failed is not None or self.invalid is not None


class Measurement(Value):
    """The facts of one measurement; what they mean is derived.

    Attributes:
        base: the commit of side A.
        candidate: the commit of side B.
        ordinal: its number in the round, from 1, which names its folder; 0 where it is not known.
        device: the device set it had.
        pairs: complete pairs, in order; after one in which a run gave no value nothing more is run.
        failed: at which step the candidate (or, in an A/A measurement, the incumbent) failed before any pair.
        detail: the fact behind it.
        output: what the failing step printed.
        invalid: how the validator ended when it did not accept a result; None when it did.
        side: whose step failed, or whose result is invalid: `base` or `candidate`.
        busy: what was in the way of the device; nothing was measured, and it is to be tried again.
        host: the host class.
        waited_s: seconds it waited for the device.
        held_s: seconds it held the device.
        free_at: Unix time at which the device was known to be free again; None of what never held one.
    """

    base: Sha
    candidate: Sha
    ordinal: int = Field(default=0, ge=0)
    device: Name
    pairs: tuple[Pair, ...] = ()
    failed: Cause | None = None
    detail: str = Field(default="", max_length=500)
    output: Excerpt = Excerpt()
    invalid: Exit | None = None
    side: str = ""
    busy: str = ""
    host: str = ""
    waited_s: float = 0.0
    held_s: float = 0.0
    free_at: float | None = None

    def validated(self, found: Validated) -> Self:
        """The same with the validator's last word."""
        return self.model_copy(update=dict(found)) if found.refused else self


class Scale(StrEnum):
    """How a gain is expressed: as a log ratio where every value is positive, else as a difference in the unit."""

    LOG = "log"
    DIFFERENCE = "difference"


class Noise(Value):
    """The noise of one pair, from A/A pairs.

    Attributes:
        scale: of sigma.
        sigma: standard deviation of a pair's difference.
        pairs: from how many pairs it comes.
        measurements: from how many A/A measurements; each had a mean of its own.
        base: mean value of the incumbent, in the metric's unit.
    """

    scale: Scale
    sigma: float = Field(ge=0, allow_inf_nan=False)
    pairs: int = Field(ge=2)
    measurements: int = Field(default=1, ge=1)
    base: float = Field(allow_inf_nan=False)

    @model_validator(mode="after")
    def _sigma_has_freedom(self) -> Self:
        if self.measurements >= self.pairs:
            raise ValueError("each A/A measurement takes one degree of freedom: there must be more pairs")
        return self

    @property
    def freedom(self) -> int:
        """The degrees of freedom of sigma."""
        return self.pairs - self.measurements


class Judgement(StrEnum):
    """What a measurement shows."""

    PASSED = "passed"
    NOT_MEASURED = "not_measured"
    BELOW_ROLLBACK = "below_rollback"
    REGRESSION = "regression"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    UNEVALUABLE = "unevaluable"


class Evaluation(Value):
    """A measurement's gain and what it is worth.

    Attributes:
        verdict: what it shows.
        scale: of gain, sigma and order_effect.
        gain: mean paired gain, positive is better; None when unevaluable.
        gain_unit: the same as a mean difference in the metric's unit, positive is better.
        error: standard error of the gain: from the noise of A/A pairs, or from the spread of these pairs where that
            asks for more.
        needed: the least gain that would have been one, in the scale, rollback line aside.
        order_effect: by how much the order of a pair changed the gain.
        base: mean value of side A, in the unit.
        candidate: mean value of side B, in the unit.
        pairs: how many pairs.
        why: the numbers behind the verdict, in words.
    """

    verdict: Judgement
    scale: Scale = Scale.LOG
    gain: float | None = None
    gain_unit: float | None = None
    error: float | None = None
    needed: float | None = None
    order_effect: float | None = None
    base: float | None = None
    candidate: float | None = None
    pairs: int = 0
    why: str = ""

    @property
    def passed(self) -> bool:
        """Whether it counts as a gain."""
        return self.verdict is Judgement.PASSED


class GuardResult(Value):
    """What an A/A measurement of the guard shows.

    Attributes:
        passed: whether noise is within the gate and no difference was measured where there is none.
        noise: the noise of these pairs alone; None when there is none to be had.
        why: the numbers behind it.
    """

    passed: bool
    noise: Noise | None = None
    why: str = ""
