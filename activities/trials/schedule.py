"""What runs while a device is held: benchmark runs in AB/BA pairs, and the validator after the first of them.

Each run has a folder of its own below `runs/`, whose name says nothing of its pair or side:

    <key>/result    with `$ORCH_RESULT`, the result file
    <key>/output    `$ORCH_OUTPUT`
    <key>/tmp       `$TMPDIR`, also /tmp and /var/tmp
    <key>/checking  the validator's `$TMPDIR`

All else is read-only to it, and it finds nothing that another run left: no run can know of another one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from ...workflows.model.round.plan import Command, DeviceSet
from ...workflows.model.round.trial import Order
from ..jobs import Step
from ..measuring.surroundings import measuring_environment
from ..places import Grants
from ..sandbox import MEASURE
from . import devices
from .sides import RUNS, Side, Trial

Letter = Literal["A", "B"]

SIDES: dict[Letter, Side] = {"A": Side.BASE, "B": Side.CANDIDATE}

BENCHMARK, VALIDATE = "benchmark", "validate"


@dataclass(frozen=True)
class Run:
    """One benchmark run, or the validator's look at what one left.

    Attributes:
        what: `benchmark` or `validate`.
        pair: the pair's index, from 0.
        letter: `A` for the base, `B` for the candidate.
        number: which repetition, from 0.
        key: names its folder.
    """

    what: str
    pair: int
    letter: Letter
    number: int
    key: str

    @property
    def name(self) -> str:
        """The name of its step."""
        return f"{self.what} {self.pair} {self.letter} {self.number} {self.key}"

    @classmethod
    def of(cls, name: str) -> Self:
        """The run of a step."""
        what, pair, letter, number, key = name.split()
        return cls(what, int(pair), "A" if letter == "A" else "B", int(number), key)

    def folder(self, trial: Trial) -> Path:
        """What it may write lies there."""
        return trial.folder / RUNS / self.key

    def result(self, trial: Trial) -> Path:
        """Its result file."""
        return self.folder(trial) / "result" / "result.json"

    def output(self, trial: Trial) -> Path:
        """Its folder of output."""
        return self.folder(trial) / "output"


def order_of(pair: int) -> Order:
    """Even pairs run A first, odd ones B: what drifts with time, or from one run to the next, hits both sides alike."""
    return "BA" if pair % 2 else "AB"


def runs_of(trial: Trial, first: int) -> Iterator[Run]:
    """All runs from a pair on, in order; after the very first pair both sides' last outputs are validated."""
    gates = trial.plan.gates
    for pair in range(first, gates.pairs):
        letters: tuple[Letter, Letter] = ("B", "A") if order_of(pair) == "BA" else ("A", "B")
        runs = [_run(pair, letter, number) for letter in letters for number in range(gates.repetitions)]
        yield from runs
        if pair == 0 and trial.plan.commands.validate_:
            yield from validations(runs, gates.repetitions)


def validations(runs: Iterable[Run], repetitions: int) -> Iterator[Run]:
    """The validator's looks at the last repetition of each side, the base's first: if it fails there, it is broken."""
    last = (run for run in runs if run.number == repetitions - 1)
    for run in sorted(last, key=lambda run: run.letter):
        yield Run(VALIDATE, run.pair, run.letter, run.number, run.key)


class Stage:
    """How runs become steps: each with a folder of its own, all else read-only, on the processors given."""

    def __init__(self, trial: Trial, cpus: tuple[int, ...], device: DeviceSet | None = None) -> None:
        """Without `device` no device is for it; only the validator needs none."""
        self._trial, self._cpus = trial, cpus
        self._nodes = devices.nodes(device) if device else ()
        self._variables = devices.environment(device) if device else {}
        self._environments = {
            side: measuring_environment(trial.place(side).environment(self._variables)) for side in Side
        }

    def step(self, run: Run) -> Step:
        """The run as a step; its folders are made now."""
        return self._validation(run) if run.what == VALIDATE else self._benchmark(run)

    def _benchmark(self, run: Run) -> Step:
        folder = run.folder(self._trial)
        writable = (_made(folder / "result"), _made(folder / "output"))
        grants = Grants(frozen=True, tmp=_made(folder / "tmp"), writable=writable, devices=self._nodes)
        return self._step(run, SIDES[run.letter], self._trial.plan.commands.benchmark, grants)

    def _validation(self, run: Run) -> Step:
        """It runs in the base's checkout: no code of the candidate's is in its process."""
        command, folder = self._trial.plan.commands.validate_, run.folder(self._trial)
        assert command is not None, "the schedule has no such run then"  # noqa: S101
        readable = (folder / "result", folder / "output")
        return self._step(
            run, Side.BASE, command, Grants(frozen=True, tmp=_made(folder / "checking"), readable=readable)
        )

    def _step(self, run: Run, side: Side, command: Command, grants: Grants) -> Step:
        place, tmp = self._trial.place(side), str(grants.tmp)
        result, output = run.result(self._trial), run.output(self._trial)
        own = {"TMPDIR": tmp, "ORCH_TMP": tmp, "ORCH_RESULT": str(result), "ORCH_OUTPUT": str(output)}
        return Step(
            name=run.name,
            argv=place.fenced(("sh", "-c", command.run), MEASURE, grants, sandbox=self._trial.request.sandbox),
            cwd=place.tree,
            env={**self._environments[side], **own},
            timeout_s=command.timeout_s,
            cpus=self._cpus,
        )


def _run(pair: int, letter: Letter, number: int) -> Run:
    return Run(BENCHMARK, pair, letter, number, secrets.token_hex(6))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
