"""Whole rounds of the pure statistics on a simulated shared machine: no process, no clock, every number seeded.

A round here is: A/A until it passes, the tickets of all lanes in turn with A/A after every k, the best passing ticket
of each lane, composition step by step, the rerun of the head, one fallback. The verdicts are those of the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import exp, hypot, log, sqrt
from random import Random

from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.round.composition import Pick, Rerun, StepResult
from orch.workflows.model.round.plan import Direction, Gates, Metric
from orch.workflows.model.round.trial import Evaluation, Measurement, Noise, Pair, Sample
from orch.workflows.rules.composition import fallback, picks, result_of
from orch.workflows.rules.noise import guard, pool
from orch.workflows.rules.paired import evaluate

METRIC = Metric(name="time", direction=Direction.LOWER, unit="ms")
AA_EVERY = 6
PATIENCE = 10
"""A/A measurements in a row that may fail before a round gives up."""

Evaluate = Callable[[Measurement, Metric, Gates, Noise | None], Evaluation]

_OK = Exit(kind=ExitKind.OK)


@dataclass(frozen=True)
class Program:
    """A program beside the incumbent.

    Attributes:
        gain: its true log gain.
        unsteady: standard deviation of the log of its time that the incumbent does not have.
    """

    gain: float = 0.0
    unsteady: float = 0.0

    def __add__(self, other: Program) -> Program:
        return Program(self.gain + other.gain, hypot(self.unsteady, other.unsteady))


INCUMBENT = NULL = Program()
FIVE_PERCENT = Program(gain=-log(0.95))
"""Takes 5 % less time."""


@dataclass(frozen=True)
class Weather:
    """What a machine does to the logarithm of one run's time.

    Attributes:
        run: standard deviation of a normal share that is new in every run.
        spikes: probability of a spike: a Pareto share of at least 5 %, one in ten over 23 %, one in a hundred over
            108 %.
        drift: standard deviation of a slow AR(1) share.
        memory: how much of that share a run hands on to the next.
        steps: probability, per run, that a neighbour comes or goes.
        neighbour: what the neighbour adds.
        place: standard deviation of a share that a checkout keeps for a whole measurement, wherever it came to lie.
    """

    run: float = 0.02
    spikes: float = 0.0
    drift: float = 0.0
    memory: float = 0.98
    steps: float = 0.0
    neighbour: float = 0.10
    place: float = 0.0


QUIET = Weather()
SPIKES = Weather(spikes=0.02)
DRIFT = Weather(drift=0.03, steps=1 / 200)
SHARED = Weather(spikes=0.02, drift=0.03, steps=1 / 200)


@dataclass
class Machine:
    """A machine in some weather; its state goes on from run to run."""

    weather: Weather
    random: Random
    drift: float = 0.0
    busy: bool = False

    def run(self, program: Program) -> float:
        """Milliseconds of one run; of the incumbent about 100."""
        w, r = self.weather, self.random
        self.drift = w.memory * self.drift + w.drift * sqrt(1 - w.memory**2) * r.gauss(0, 1)
        self.busy ^= r.random() < w.steps
        spike = 0.05 * (1 - r.random()) ** (-1 / 1.5) if r.random() < w.spikes else 0.0
        level = self.drift + w.neighbour * self.busy - program.gain
        return 100 * exp(level + r.gauss(0, hypot(w.run, program.unsteady))) * (1 + spike)

    def measure(self, base: Program, candidate: Program, gates: Gates) -> Measurement:
        """AB/BA pairs of two programs, from fresh checkouts."""
        pairs = tuple(self._pairs(self._placed(base), self._placed(candidate), gates))
        return Measurement.model_construct(base="a" * 40, candidate="b" * 40, device="cpu", pairs=pairs)

    def _placed(self, program: Program) -> Program:
        return program + Program(gain=self.random.gauss(0, self.weather.place)) if self.weather.place else program

    def _pairs(self, base: Program, candidate: Program, gates: Gates) -> Iterator[Pair]:
        for index in range(gates.pairs):
            first, second = (candidate, base) if index % 2 else (base, candidate)
            one, two = self._side(first, gates), self._side(second, gates)
            a, b = (two, one) if index % 2 else (one, two)
            yield Pair.model_construct(index=index, order="BA" if index % 2 else "AB", a=a, b=b)

    def _side(self, program: Program, gates: Gates) -> tuple[Sample, ...]:
        values = (self.run(program) for _ in range(gates.repetitions))
        return tuple(Sample.model_construct(value=value, exit=_OK, wall_s=0.0, flaw="") for value in values)


@dataclass(frozen=True)
class Measured:
    """A measurement's verdict beside the truth, a log gain."""

    truth: float
    evaluation: Evaluation

    @property
    def excess(self) -> float:
        """By how much the measured log gain is above the true one."""
        return (self.evaluation.gain or 0.0) - self.truth


@dataclass
class Round:
    """What came of a round.

    Attributes:
        tickets: all that were measured.
        picks: the best passing ticket of each lane, in the order of composition.
        reruns: the composed head against the incumbent, and the fallback if there was one.
        accepted: the lanes of the new incumbent; empty when the old one stayed.
    """

    tickets: list[Measured] = field(default_factory=list)
    picks: list[Measured] = field(default_factory=list)
    reruns: list[Measured] = field(default_factory=list)
    accepted: tuple[str, ...] = ()


class Driver:
    """Plays one round; lanes are named by one letter each."""

    def __init__(self, machine: Machine, gates: Gates, rule: Evaluate) -> None:
        self._machine, self._gates, self._rule = machine, gates, rule
        self._noises: list[Noise] = []
        self._programs: dict[str, Program] = {}
        self.round = Round()

    def play(self, lanes: Mapping[str, Sequence[Program]]) -> Round:
        """Play it with the tickets of each lane; all lanes have equally many."""
        measured: list[Pick] = []
        turns = (zip(lanes, turn, strict=True) for turn in zip(*lanes.values(), strict=True))
        for count, (lane, program) in enumerate(chain.from_iterable(turns)):
            if count % AA_EVERY == 0 and not self._guarded():
                break
            ticket = self._measured(INCUMBENT, program)
            self.round.tickets.append(ticket)
            pick = Pick(lane=lane, ticket=f"r-{lane}-{count}", commit=f"{count:040x}", evaluation=ticket.evaluation)
            self._programs[pick.ticket] = program
            measured.append(pick)
        if order := picks(measured):
            self.round.picks = [Measured(self._programs[p.ticket].gain, p.evaluation) for p in order]
            self._close(order)
        return self.round

    def _close(self, order: Sequence[Pick]) -> None:
        lanes: tuple[str, ...] = (order[0].lane,)
        head = self._programs[order[0].ticket]
        for pick in order[1:]:
            laid = head + self._programs[pick.ticket]
            if result_of(self._measured(head, laid).evaluation) is StepResult.ADDED:
                lanes, head = (*lanes, pick.lane), laid
        failed = self._rerun(lanes, head)
        second = fallback(order, [failed], "stepwise") if failed else None
        if second:
            self._rerun((second.lane,), self._programs[second.ticket])

    def _rerun(self, lanes: tuple[str, ...], head: Program) -> Rerun | None:
        """Measure a head once more, and take it if it passes; else what failed."""
        rerun = self._measured(INCUMBENT, head)
        self.round.reruns.append(rerun)
        if rerun.evaluation.passed:
            self.round.accepted = lanes
            return None
        return Rerun(commit="c" * 40, lanes=lanes, evaluation=rerun.evaluation)

    def _measured(self, base: Program, candidate: Program) -> Measured:
        measurement = self._machine.measure(base, candidate, self._gates)
        evaluation = self._rule(measurement, METRIC, self._gates, pool(self._noises))
        return Measured(candidate.gain - base.gain, evaluation)

    def _guarded(self) -> bool:
        """Measure A/A until it passes."""
        for _ in range(PATIENCE):
            pooled = pool(self._noises) if self._noises else None
            result = guard(self._machine.measure(INCUMBENT, INCUMBENT, self._gates), METRIC, self._gates, pooled)
            if result.passed and result.noise:
                self._noises.append(result.noise)
                return True
        return False


def play(
    seed: int, weather: Weather, gates: Gates, lanes: Mapping[str, Sequence[Program]], rule: Evaluate = evaluate
) -> Round:
    """One round, from its seed."""
    machine = Machine(weather, Random(seed))
    machine.drift = machine.random.gauss(0, weather.drift)
    return Driver(machine, gates, rule).play(lanes)


def lanes_of(*tickets: Sequence[Program]) -> dict[str, Sequence[Program]]:
    """Lanes `a`, `b`, … with these tickets."""
    return dict(zip("abcdefghijklmnop", tickets, strict=False))


NULLS = lanes_of(*[[NULL] * 6] * 4)
"""Four lanes with six tickets each, none of which changes anything."""

UNSTEADY = lanes_of(*[[Program(unsteady=0.06)] * 6] * 4)
"""None of them is faster, but each run varies by 6 % more."""

ONE_GAIN = lanes_of([NULL] * 6, [NULL, NULL, FIVE_PERCENT, NULL, NULL, NULL], [NULL] * 6, [NULL] * 6)
"""A single ticket, of lane `b`, has a gain of 5 %."""

MANY_LIKE = lanes_of(*[[Program(gain=0.03)] * 6] * 4)
"""Every ticket has a log gain of 0.03: the best of a lane is the luckiest."""
