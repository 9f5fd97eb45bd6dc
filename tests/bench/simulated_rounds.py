"""Whole rounds of the pure statistics on a simulated shared machine: no process, no clock, every number seeded.

A round here is: A/A until it passes, the tickets of all lanes in turn with A/A after every k, the best passing ticket
of each lane, composition step by step, the rerun of the head, one fallback. The verdicts are those of the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, hypot, log, sqrt
from random import Random

from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.round.plan import Direction, Gates, Metric
from orch.workflows.model.round.trial import Evaluation, Measurement, Noise, Pair, Sample
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
        spikes: probability of a spike: a Pareto share of at least 5 %, one in ten over 23 %, one in a hundred over 108 %.
        drift: standard deviation of a slow AR(1) share.
        memory: how much of that share a run hands on to the next.
        steps: probability, per run, that a neighbour comes or goes.
        neighbour: what the neighbour adds.
    """

    run: float = 0.02
    spikes: float = 0.0
    drift: float = 0.0
    memory: float = 0.98
    steps: float = 0.0
    neighbour: float = 0.10


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
        """AB/BA pairs of two programs."""
        pairs = tuple(self._pairs(base, candidate, gates))
        facts = {"pairs": pairs, "failed": None, "invalid": None, "busy": "", "detail": ""}
        return Measurement.model_construct(base="a" * 40, candidate="b" * 40, device="cpu", **facts)

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
    def gain(self) -> float:
        """The measured log gain."""
        return self.evaluation.gain or 0.0


@dataclass
class Round:
    """What came of a round.

    Attributes:
        tickets: all that were measured.
        picks: the best passing ticket of each lane, in the order of composition.
        head: the lanes composed.
        reruns: the composed head against the incumbent, and the fallback if there was one.
        accepted: the lanes of the new incumbent; empty when the old one stayed.
    """

    tickets: list[Measured] = field(default_factory=list)
    picks: dict[int, Measured] = field(default_factory=dict)
    head: tuple[int, ...] = ()
    reruns: list[Measured] = field(default_factory=list)
    accepted: tuple[int, ...] = ()


class Driver:
    """Plays one round."""

    def __init__(self, machine: Machine, gates: Gates, rule: Evaluate) -> None:
        self._machine, self._gates, self._rule = machine, gates, rule
        self._noises: list[Noise] = []
        self.round = Round()

    def play(self, lanes: Sequence[Sequence[Program]]) -> Round:
        """Play it with the tickets of each lane; all lanes have equally many."""
        best: dict[int, tuple[Program, Measured]] = {}
        turns = ((lane, ticket) for turn in zip(*lanes, strict=True) for lane, ticket in enumerate(turn))
        for count, (lane, ticket) in enumerate(turns):
            if count % AA_EVERY == 0 and not self._guarded():
                break
            measured = self._measured(INCUMBENT, ticket)
            self.round.tickets.append(measured)
            if measured.evaluation.passed and (lane not in best or measured.gain > best[lane][1].gain):
                best[lane] = (ticket, measured)
        order = sorted(best, key=lambda lane: (-best[lane][1].gain, lane))
        self.round.picks = {lane: best[lane][1] for lane in order}
        if order:
            self._close([(lane, best[lane][0]) for lane in order])
        return self.round

    def _close(self, picks: list[tuple[int, Program]]) -> None:
        (first, best), *others = picks
        lanes, head = (first,), best
        for lane, program in others:
            if self._measured(head, head + program).evaluation.passed:
                lanes, head = (*lanes, lane), head + program
        self.round.head = lanes
        if self._rerun(head):
            self.round.accepted = lanes
        elif len(lanes) > 1 and self._rerun(best):
            self.round.accepted = (first,)

    def _rerun(self, head: Program) -> bool:
        self.round.reruns.append(self._measured(INCUMBENT, head))
        return self.round.reruns[-1].evaluation.passed

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
    seed: int, weather: Weather, gates: Gates, lanes: Sequence[Sequence[Program]], rule: Evaluate = evaluate
) -> Round:
    """One round, from its seed."""
    machine = Machine(weather, Random(seed))
    machine.drift = machine.random.gauss(0, weather.drift)
    return Driver(machine, gates, rule).play(lanes)
