"""How often rounds are fooled and how often they find what is there, over many seeded rounds; prints Markdown.

    python -m tests.bench.error_rates [--rounds 2000] [--processes 2]

Nothing is measured here but arithmetic: the tables are the same on every machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from math import sqrt
from typing import TypeVar

from orch.workflows.estimation.paired_sample import PairedSample, read
from orch.workflows.estimation.student import quantile
from orch.workflows.model.round.plan import Gates, Metric
from orch.workflows.model.round.trial import Evaluation, Judgement, Measurement, Noise
from orch.workflows.rules.paired import TWO_SIGMA, evaluate

from .rates import Mean, Rate
from .simulated_rounds import (
    DRIFT,
    MANY_LIKE,
    NULLS,
    ONE_GAIN,
    QUIET,
    SHARED,
    SPIKES,
    UNSTEADY,
    Evaluate,
    Program,
    Round,
    Weather,
    play,
)

WEATHERS = {"2 % a run": QUIET, "and spikes": SPIKES, "and drift": DRIFT, "both: shared": SHARED}
DESIGNS = ((8, 1), (12, 1), (18, 1), (6, 3), (8, 3), (10, 3))
HARSH = {
    "spikes in 5 % of runs": replace(SHARED, spikes=0.05),
    "a neighbour every 50 runs": replace(SHARED, steps=1 / 50),
    "4 % a run": replace(SHARED, run=0.04),
    "a fast drift: half of it handed on": replace(SHARED, memory=0.5),
    "a checkout's place: 0.5 %": replace(SHARED, place=0.005),
    "a checkout's place: 1 %": replace(SHARED, place=0.01),
}
Lanes = Mapping[str, Sequence[Program]]
T = TypeVar("T")


def first_rule(measurement: Measurement, metric: Metric, gates: Gates, noise: Noise | None) -> Evaluation:
    """The rule that was tried first: sigma of A/A pairs alone, any order effect above the gain is inconclusive."""
    sample = read(measurement, metric, gates)
    assert isinstance(sample, PairedSample)
    assert noise is not None
    error = noise.sigma / sqrt(len(sample.differences))
    least = max(gates.sigmas, quantile(TWO_SIGMA, noise.freedom)) * error
    passed = sample.gain >= least and sample.order_effect <= sample.gain
    return Evaluation(verdict=Judgement.PASSED if passed else Judgement.NOT_MEASURED, gain=sample.gain)


def accepted(round_: Round) -> bool:
    """Whether the incumbent changed."""
    return bool(round_.accepted)


def found(round_: Round) -> bool:
    """Whether the lane with the gain is in the new incumbent."""
    return "b" in round_.accepted


def main() -> None:
    """Play the rounds and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000, help="rounds of each cell")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.processes) as pool:
        tables = Tables(pool, options.rounds)
        for table in (tables.rates, tables.rules, tables.harsh, tables.bias):
            print("\n".join(table()), end="\n\n", flush=True)


class Tables:
    """The tables, each a list of Markdown lines."""

    def __init__(self, pool: Executor, rounds: int) -> None:
        self._pool, self._rounds = pool, rounds

    def rates(self) -> Iterator[str]:
        """By design and weather: null changes accepted, and the gain of 5 % found."""
        yield _row("pairs", "runs a side", "noise", "null accepted", "unsteady null accepted", "5 % found")
        yield _row(*["---"] * 6)
        for pairs, repetitions in DESIGNS:
            for name, weather in WEATHERS.items():
                yield _row(str(pairs), str(repetitions), name, *self._cells(weather, pairs, repetitions))

    def rules(self) -> Iterator[str]:
        """The rule beside the one tried first."""
        yield _row("rule", "pairs", "runs a side", "noise", "null accepted", "unsteady null accepted", "5 % found")
        yield _row(*["---"] * 7)
        for pairs, repetitions, name in ((8, 1, "2 % a run"), (8, 3, "both: shared")):
            for told, rule in (("A/A pairs alone", first_rule), ("as it is", evaluate)):
                cells = self._cells(WEATHERS[name], pairs, repetitions, rule)
                yield _row(told, str(pairs), str(repetitions), name, *cells)

    def harsh(self) -> Iterator[str]:
        """Worse weather, with the default design."""
        yield _row("shared, 8 pairs of 3 runs, but", "null accepted", "unsteady null accepted", "5 % found")
        yield _row(*["---"] * 4)
        for name, weather in HARSH.items():
            yield _row(name, *self._cells(weather, 8, 3))

    def bias(self) -> Iterator[str]:
        """By how much measured log gains are above true ones."""
        yield _row("8 pairs of 3 runs: measured less true gain of", "2 % a run", "both: shared")
        yield _row(*["---"] * 3)
        played = [self._play(w, Gates(pairs=8, repetitions=3), MANY_LIKE, evaluate, _excess) for w in (QUIET, SHARED)]
        names = ("all tickets", "the picks, best of six", "the composed head, rerun", "the same, of accepted rounds")
        for index, name in enumerate(names):
            yield _row(name, *(str(Mean([x for round_ in each for x in round_[index]])) for each in played))

    def _cells(self, weather: Weather, pairs: int, repetitions: int, rule: Evaluate = evaluate) -> Iterator[str]:
        gates = Gates(pairs=pairs, repetitions=repetitions)
        for lanes, holds in ((NULLS, accepted), (UNSTEADY, accepted), (ONE_GAIN, found)):
            held = self._play(weather, gates, lanes, rule, holds)
            yield str(Rate(sum(held), len(held)))

    def _play(self, weather: Weather, gates: Gates, lanes: Lanes, rule: Evaluate, of: Callable[[Round], T]) -> list[T]:
        one = partial(_one, weather=weather, gates=gates, lanes=lanes, rule=rule, of=of)
        return list(self._pool.map(one, range(self._rounds), chunksize=50))


def _one(seed: int, weather: Weather, gates: Gates, lanes: Lanes, rule: Evaluate, of: Callable[[Round], T]) -> T:
    return of(play(seed, weather, gates, lanes, rule))


def _excess(round_: Round) -> tuple[list[float], ...]:
    reruns = [round_.reruns[0]] if round_.reruns else []
    return (
        [each.excess for each in round_.tickets],
        [each.excess for each in round_.picks],
        [each.excess for each in reruns],
        [each.excess for each in reruns if each.evaluation.passed],
    )


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
