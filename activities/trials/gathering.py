"""From a trial's job to its journal: each pair is read and written down as soon as it is over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...workflows.model.exit import Exit, ExitKind
from ...workflows.model.round.trial import Pair, Sample
from ...workflows.model.verdict import Excerpt
from .. import supervisor
from ..job_records import results_by, step_names
from ..jobs import StepResult
from ..workspaces.removal import discard, sweep
from . import journal
from .journal import Entry
from .outputs import output_flaw
from .results import read_result
from .schedule import BENCHMARK, SIDES, VALIDATE, Run, by_lot, order_of
from .sides import RUNS, Side, Trial

FROM_OUTSIDE = frozenset({"stopped", "supervisor lost", "deadline"})
"""What a supervisor says of a step that ended by no fault of its own."""

Found = tuple[Run, StepResult]


class Gathering:
    """Reads the job in one folder as it goes on; all of it may be done again after a crash."""

    def __init__(self, trial: Trial, job: Path) -> None:
        self._trial, self._job = trial, job
        self._names: tuple[str, ...] = ()
        self._size = -1
        self._samples: dict[str, Sample] = {}

    def look(self) -> bool:
        """Write down the pairs that are over since the last look; whether one of them ends the measurement."""
        known = journal.read(self._trial.folder)
        if known and known[-1].flaw:
            return True
        if not self._news():
            return False
        self._names = self._names or step_names(self._job)
        pairs: dict[int, list[Found]] = {}
        for step in results_by(self._names, self._job):
            run = Run.of(step.name)
            pairs.setdefault(run.pair, []).append((run, step))
        for index in sorted(pairs):
            if index >= len(known):
                entry = self._entry(index, pairs[index])
                if entry is None:
                    break
                journal.append(self._trial.folder, entry)
                self._tidy(pairs[index], entry)
                if entry.flaw:
                    return True
        return False

    def _news(self) -> bool:
        """Whether a step ended since the last look."""
        try:
            size = (self._job / supervisor.RESULTS).stat().st_size
        except FileNotFoundError:
            return False
        before, self._size = self._size, size
        return size != before

    def _entry(self, index: int, found: Sequence[Found]) -> Entry | None:
        """The pair once it is over, however; None while it is not, or when it was ended from outside."""
        own = [(run, step) for run, step in found if step.exit.detail not in FROM_OUTSIDE]
        samples = {"A": list[Sample](), "B": list[Sample]()}
        for run, step in own:
            if run.what == BENCHMARK:
                samples[run.letter].append(self._sample(run, step))
        pair = Pair(index=index, order=order_of(index), a=tuple(samples["A"]), b=tuple(samples["B"]))
        for run, step in own:
            if flawed := self._flawed(run, step, pair):
                return flawed
        return Entry(pair=pair, kept=self._kept(own)) if len(own) == self._whole(index) else None

    def _whole(self, index: int) -> int:
        """How many steps a pair has."""
        plan = self._trial.plan
        return 2 * plan.gates.repetitions + (2 if index == 0 and plan.commands.validate_ else 0)

    def _sample(self, run: Run, step: StepResult) -> Sample:
        if run.key not in self._samples:
            value, flaw = None, f"the benchmark ended with {step.exit}"
            if step.exit.ok:
                value, flaw = read_result(run.result(self._trial), self._trial.plan.metric)
            self._samples[run.key] = Sample(value=value, exit=step.exit, wall_s=round(step.wall_s, 4), flaw=flaw)
        return self._samples[run.key]

    def _flawed(self, run: Run, step: StepResult, pair: Pair) -> Entry | None:
        """The pair with what ends the measurement, if this step does."""
        side = SIDES[run.letter]
        if run.what == BENCHMARK:
            flaw, refused = self._samples[run.key].flaw, None
        else:
            refused = refusal(self._trial, run, step)
            flaw = said(side, refused) if refused else ""
        output = self._trial.said(step) if flaw else Excerpt()
        return Entry(pair=pair, flaw=flaw, side=side, output=output, invalid=refused) if flaw else None

    def _kept(self, own: Sequence[Found]) -> str:
        """The run of the candidate's that the validator looks at later."""
        if not self._trial.plan.commands.validate_ or any(run.what == VALIDATE for run, _ in own):
            return ""
        return by_lot([run for run, _ in own if run.letter == "B"]).name

    def _tidy(self, found: Sequence[Found], entry: Entry) -> None:
        """Let go of what the runs wrote, at low priority, but for what is still to be validated."""
        runs = self._trial.folder / RUNS
        for run, _ in found:
            if not entry.kept or run.key != Run.of(entry.kept).key:
                discard(run.folder(self._trial), runs)
        sweep(runs)


def refusal(trial: Trial, run: Run, step: StepResult) -> Exit | None:
    """How the validator ended if an output is not right; one that it must not look at counts as not looked at."""
    if flaw := output_flaw(run.output(trial)):
        return Exit(kind=ExitKind.NOT_STARTED, detail=flaw)
    return None if step.exit.ok else step.exit


def said(side: Side, refused: Exit) -> str:
    """A refused output in words."""
    if side is Side.BASE:
        return f"the validator refuses what the base itself left: {refused}"
    return f"the validator refuses what the candidate left: {refused}"
