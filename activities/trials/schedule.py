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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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

MODEL = "of-every-run"
"""Stands for the key of a run in what all runs have in common."""


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
    """All runs from a pair on, in order; after the very first pair an output of each side is validated."""
    gates = trial.plan.gates
    for pair in range(first, gates.pairs):
        letters: tuple[Letter, Letter] = ("B", "A") if order_of(pair) == "BA" else ("A", "B")
        runs = [_run(pair, letter, number) for letter in letters for number in range(gates.repetitions)]
        yield from runs
        if pair == 0 and trial.plan.commands.validate_:
            yield from validations(runs)


def validations(runs: Sequence[Run]) -> Iterator[Run]:
    """The validator's looks at a run of each side, the base's first: if it fails there, it is broken."""
    for letter in SIDES:
        yield replace(by_lot([run for run in runs if run.letter == letter]), what=VALIDATE)


def by_lot(runs: Sequence[Run]) -> Run:
    """The one that is looked at. A run may find out which repetition it is: the folders of all are made in order."""
    return secrets.choice(runs)


class Stage:
    """How runs become steps: each with a folder of its own, all else read-only, on the processors given."""

    def __init__(self, trial: Trial, cpus: tuple[int, ...], device: DeviceSet | None = None) -> None:
        """Without `device` no device is for it; only the validator needs none."""
        self._trial, self._cpus = trial, cpus
        self._nodes = devices.nodes(device) if device else ()
        variables = devices.environment(device) if device else {}
        self._environments = {side: measuring_environment(trial.place(side).environment(variables)) for side in Side}
        self._fenced: dict[tuple[str, Side], tuple[str, ...]] = {}

    def step(self, run: Run) -> Step:
        """The run as a step; its folders are made now."""
        tmp = str(self._grants(run).tmp)
        result, output = run.result(self._trial), run.output(self._trial)
        own = {"TMPDIR": tmp, "ORCH_TMP": tmp, "ORCH_RESULT": str(result), "ORCH_OUTPUT": str(output)}
        side = _checkout_of(run)
        return Step(
            name=run.name,
            argv=tuple(word.replace(f"/{RUNS}/{MODEL}/", f"/{RUNS}/{run.key}/") for word in self._argv(run)),
            cwd=self._trial.place(side).tree,
            env={**self._environments[side], **own},
            timeout_s=self._command(run).timeout_s,
            cpus=self._cpus,
        )

    def _argv(self, run: Run) -> tuple[str, ...]:
        """The fenced command of all such runs, made once: finding out what a command sees takes ten milliseconds."""
        side, line = _checkout_of(run), ("sh", "-c", self._command(run).run)
        if (run.what, side) not in self._fenced:
            place, grants = self._trial.place(side), self._grants(replace(run, key=MODEL))
            sandbox = self._trial.request.sandbox
            self._fenced[run.what, side] = place.fenced(line, MEASURE, grants, sandbox=sandbox)
        return self._fenced[run.what, side]

    def _grants(self, run: Run) -> Grants:
        """What the run may write and read; the folders are made."""
        folder = run.folder(self._trial)
        left = (_made(folder / "result"), _made(folder / "output"))
        if run.what == VALIDATE:
            return Grants(frozen=True, tmp=_made(folder / "checking"), readable=left)
        return Grants(frozen=True, tmp=_made(folder / "tmp"), writable=left, devices=self._nodes)

    def _command(self, run: Run) -> Command:
        commands = self._trial.plan.commands
        return commands.validate_ if run.what == VALIDATE and commands.validate_ else commands.benchmark


def _checkout_of(run: Run) -> Side:
    """Where it runs. The validator runs in the base's: no code of the candidate's is in its process."""
    return SIDES[run.letter] if run.what == BENCHMARK else Side.BASE


def _run(pair: int, letter: Letter, number: int) -> Run:
    return Run(BENCHMARK, pair, letter, number, secrets.token_hex(6))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
