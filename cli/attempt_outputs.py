"""What one attempt, or one review, printed: its files in the order in which they came to be, each in its form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..activities.agents.adapter import Adapter
from ..activities.agents.preparing import AGENT, PROMPT
from ..activities.agents.registry import resolve
from ..workflows.errors import RefusedError
from ..workflows.model.attempt import AttemptKey
from ..workflows.model.event import (
    AttemptStarted,
    AttemptWaiting,
    BaselineMeasured,
    Event,
    GateMeasured,
    HeadReviewed,
    RunStarted,
)
from .outputs import Form, Output, Plain, Told
from .selection import measured
from .transcript import Transcript

_ORDINAL = re.compile(r"-(\d+)(?:\.|$)")


@dataclass(frozen=True)
class Subject:
    """Whose output is meant.

    Attributes:
        key: the attempt; that of the gate for a review, candidate 0 of iteration 0 for the unchanged tree.
        folder: where its jobs lie.
        agent: the spec of the agent that was launched there; empty when none was.
        review: whether it is the reviewer's.
    """

    key: AttemptKey
    folder: Path
    agent: str = ""
    review: bool = False

    def __str__(self) -> str:
        if self.review:
            return f"review of iteration {self.key.iteration}"
        return f"iteration {self.key.iteration}, candidate {self.key.candidate}" if self.key.candidate else "baseline"

    def over(self, events: Sequence[Event]) -> bool:
        """Whether nothing more will be printed there."""
        if self.review:
            return any(isinstance(e, HeadReviewed) and e.ordinal == self.key.iteration for e in events)
        return not self.key.candidate or measured(events, self.key) is not None

    def rests(self, event: Event) -> bool:
        """Whether the event says that its agent waits for the provider."""
        return isinstance(event, AttemptWaiting) and event.attempt == self.key

    def jobs(self) -> list[Path]:
        """The folders of set-up, the agent's launches and the measurement's set-up."""
        launches = numbered(self.folder.glob(f"{AGENT}*"))
        return [self.folder / "setup", *launches, self.folder / "measure" / "setup"]


def attempt(run_folder: Path, events: Sequence[Event], key: AttemptKey) -> Subject:
    """An attempt, or the measurement of the unchanged tree."""
    agents = (e.agent for e in events if isinstance(e, AttemptStarted) and e.attempt == key)
    return Subject(key, run_folder / "attempts" / key.name, next(agents, ""))


def review(run_folder: Path, events: Sequence[Event], iteration: int | None) -> Subject:
    """The review of an iteration's head, else the newest; refused when there is none."""
    run = run_folder.name
    agent = next((e.sign_off for e in events if isinstance(e, RunStarted)), "")
    if not agent:
        raise RefusedError(f"{run} has no reviewer", hint="start a run with --sign-off AGENT")
    done = {e.tree: e.ordinal for e in events if isinstance(e, HeadReviewed)}
    gates = [e for e in events if isinstance(e, GateMeasured) and e.verdict.passed]
    there = [*done.values(), *(e.ordinal for e in gates if e.verdict.tree not in done)]
    if not there:
        raise RefusedError(f"{run} has not been reviewed", hint="the reviewer is asked once the whole ladder passes")
    if iteration not in {None, *there}:
        have = ", ".join(map(str, there))
        raise RefusedError(f"{run} has no review of iteration {iteration}", hint=f"it has reviews of {have}")
    key = AttemptKey(run=run, iteration=there[-1] if iteration is None else iteration, candidate=0, binding=0)
    return Subject(key, run_folder / "attempts" / key.name / "review", agent, review=True)


class Outputs:
    """The outputs of a subject, each one object that remembers how far it was printed.

    Attributes:
        trouble: why the agent's events cannot be read; empty when they can, or when there are none.
    """

    def __init__(self, subject: Subject, *, raw: bool, width: int) -> None:
        """`width` is that of the terminal, 0 when there is none: then plain text is left as it is."""
        self.trouble = ""
        self._subject = subject
        self._raw = raw
        self._width = width
        self._adapter = None if raw else self._resolved()
        self._known: dict[Path, Output] = {}

    def jobs(self) -> list[Output]:
        """What its jobs printed, as far as they have begun."""
        return [self._output(job, path) for job in self._subject.jobs() for path in _streams(job)]

    def prompts(self) -> list[Output]:
        """What the agent was told, at each launch."""
        stem, _, suffix = PROMPT.partition(".")
        paths = numbered(self._subject.folder.glob(f"{stem}*.{suffix}"))
        return [Output(path, path.name, self._text()) for path in paths]

    def rungs(self, events: Sequence[Event], run_folder: Path) -> Iterator[Output]:
        """What the rungs that did not pass printed; a reviewer's ladder passes."""
        key = self._subject.key
        candidate = measured(events, key)
        verdicts = [e.verdict for e in events if isinstance(e, BaselineMeasured)] if not self._subject.review else []
        verdict = (candidate.verdict if candidate else None) if key.candidate else next(iter(verdicts), None)
        for rung in verdict.failing if verdict else ():
            for name, excerpt in (("stdout", rung.stdout), ("stderr", rung.stderr)):
                if excerpt.path:
                    yield Output(run_folder / excerpt.path, f"rung {rung.name} ({rung.exit}) {name}", self._text())

    def _output(self, job: Path, path: Path) -> Output:
        if path not in self._known:
            stream = path.name.partition("-")[2]
            told = job.name.startswith(AGENT) and stream == "stdout"
            self._known[path] = Output(path, f"{job.name} {stream}", self._told(job) if told else self._text())
        return self._known[path]

    def _text(self) -> Form:
        return Plain() if self._width and not self._raw else Form()

    def _told(self, job: Path) -> Form:
        translator = self._adapter.translator() if self._adapter else None
        if translator is None:
            return self._text()
        tree = str(self._subject.folder.resolve() / "tree")
        return Told(job, translator, Transcript(width=self._width, tree=tree))

    def _resolved(self) -> Adapter | None:
        if not self._subject.agent:
            return None
        try:
            return resolve(self._subject.agent).adapter
        except (RefusedError, ImportError, AttributeError) as error:  # its package is gone since, or does not fit
            self.trouble = str(error)
            return None


def numbered(paths: Iterator[Path]) -> list[Path]:
    """Launches' files or folders in the order of the launches: the first has no number."""
    return sorted(paths, key=lambda path: int(found[1]) if (found := _ORDINAL.search(path.name)) else 1)


def _streams(job: Path) -> list[Path]:
    return [path for name in ("stdout", "stderr") for path in sorted(job.glob(f"*-{name}"))]
