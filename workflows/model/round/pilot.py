"""A pilot: the same lanes in parallel rounds and one per round, compared by a rule that is frozen before."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from ..base import RunId, Value
from .plan import Name, RoundPlan, digest_of


class Arm(StrEnum):
    """How a run of the pilot orders the lanes: all in one round, or one per round."""

    PARALLEL = "P"
    SERIAL = "S"


class PilotRule(Value):
    """What decides; frozen before the first run.

    Attributes:
        target: the reference gain G*, as a fraction of the incumbent's value (0.3: 30 percent better).
        fraction: f; a run is timed until its incumbent has reached f·G* by a passing rerun.
        threshold: the median ratio of the times, the faster arm's by the other's, must be below it.
        sigmas: a final gain counts as lower only by so many standard errors of what was measured.
    """

    target: float = Field(gt=0, lt=100, allow_inf_nan=False)
    fraction: float = Field(default=0.8, gt=0, le=1, allow_inf_nan=False)
    threshold: float = Field(default=0.8, gt=0, le=1, allow_inf_nan=False)
    sigmas: float = Field(default=2.0, ge=0, allow_inf_nan=False)


class PilotTerms(Value):
    """What a pilot is, whatever round it plays.

    Attributes:
        id: the pilot's id; its rounds belong to copies of the campaign, `CAMPAIGN-ID-p1`, `CAMPAIGN-ID-s1` and so on.
        repetitions: how many runs each arm has; fewer than three decide nothing.
    """

    id: Name
    repetitions: int = Field(default=3, ge=1, le=20)


class PilotPlan(PilotTerms):
    """Everything a pilot is decided by.

    Attributes:
        round: the round as planned, which is what each run of P is; S has its lanes one per round.
        rule: what decides.
    """

    round: RoundPlan
    rule: PilotRule

    @property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON."""
        return digest_of(self)


class LaneLoad(Value):
    """What one lane costs in time.

    Attributes:
        agent_s: seconds its agent works (A).
        submissions: how many tickets of it are measured (s).
        measure_s: seconds that one measurement takes (M).
    """

    agent_s: float = Field(ge=0, allow_inf_nan=False)
    submissions: int = Field(ge=0)
    measure_s: float = Field(ge=0, allow_inf_nan=False)


class Speed(Value):
    """What the model expects, in seconds; `speedup` is serial by parallel, None when parallel takes no time."""

    serial_s: float
    parallel_s: float
    speedup: float | None


class PilotRun(Value):
    """The facts of one run of an arm; every time in seconds from its first launch.

    Attributes:
        arm: which arm.
        pair: its repetition, from 0.
        rounds: the runs that it is made of, in order.
        reached_s: when its incumbent had reached f·G*; None when it never did: then it is censored at `ended_s`.
        ended_s: when its last round was decided: its agents' budget is used up.
        gain: the final gain in the ledger's scale: the sum of the gains that the reruns showed.
        error: the standard error of that gain; None when nothing was accepted.
        scale: of gain and error, `log` or `difference`.
        lanes: what each of its lanes cost, in the order of the plan.
        composed: how many picks there were to compose or to rerun.
        fixed_s: mean seconds of a round beside lanes, tickets and composition: its preparation and first A/A.
        device_s: seconds that devices were held.
        busy: that by the time there was of all devices: between 0 and 1.
        waits_s: how long each measured ticket was in the queue, in the order of measuring.
        tokens: of all agents, None when nobody reported them.
        usd: the same in US dollars.
        interactions: the ratio of each later step of a composition, in log form where there is one, else in the unit.
        lost: lanes that passed alone and failed their step.
        rejected: tickets without a gain, by cause or verdict.
    """

    arm: Arm
    pair: int = Field(ge=0)
    rounds: tuple[RunId, ...]
    reached_s: float | None = None
    ended_s: float
    gain: float = 0.0
    error: float | None = None
    scale: str = "log"
    lanes: tuple[LaneLoad, ...] = ()
    composed: int = 0
    fixed_s: float = 0.0
    device_s: float = 0.0
    busy: float = 0.0
    waits_s: tuple[float, ...] = ()
    tokens: int | None = None
    usd: float | None = None
    interactions: tuple[float, ...] = ()
    lost: int = 0
    rejected: dict[str, int] = Field(default_factory=dict)


class Verdict(StrEnum):
    """What the pilot shows of the policy P."""

    FASTER = "faster"
    SLOWER = "slower"
    OPEN = "not distinguishable"


class Spread(Value):
    """Median and range."""

    median: float
    low: float
    high: float


LABEL = "workflow-policy comparison"
"""What a pilot is: later agents of S see newer code than those of P, so it isolates no speedup of concurrency."""


class Decision(Value):
    """The rule applied.

    Attributes:
        label: what kind of comparison it is.
        verdict: what it shows.
        why: the facts behind it, in words.
        ratio: of the times, P by S, over all pairs; a censored side counts with the time it was censored at. None
            when no pair is complete, or both sides of one were censored.
        times: per arm, time to the target; of censored runs their bound.
        gains: per arm, the final gain.
        censored: per arm, how many runs never reached the target.
    """

    label: str = LABEL
    verdict: Verdict
    why: str
    ratio: Spread | None = None
    times: dict[Arm, Spread] = Field(default_factory=dict)
    gains: dict[Arm, Spread] = Field(default_factory=dict)
    censored: dict[Arm, int] = Field(default_factory=dict)
