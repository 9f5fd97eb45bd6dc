"""Follow a launch: read what the agent prints while it prints it, and stop it at the first limit it passes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import structlog

from ...workflows.model.attempt import SpendCaps
from ...workflows.model.outcome import Outcome
from ...workflows.model.usage import Usage
from ..artifacts import write_whole
from ..effect import in_thread, kill_requested
from ..jobs import Job, StepResult, end_job, run_job
from .adapter import Adapter, Launch
from .prices import PriceTable
from .reading import WORDS, Reading
from .said import Said
from .spending import note, over, over_own, spent
from .stream import EventStream

log = structlog.get_logger()

LOOK_S = 0.5
"""Seconds between two looks at what a running agent printed."""

LIMIT = "limit.json"
"""In the job's folder: the limit it was stopped for, so that a restarted worker knows, too."""

ASK_S = 2.0
"""Seconds between two looks at the files of an agent that tells its usage at its end only."""

IN_A_ROW = 5
"""The same failure so often, with nothing done in between, is a loop that an agent does not leave by itself."""

_CHUNK = 1 << 20


class Follower:
    """Reads one launch's stream as it grows; all of it may be called again after a crash, from the start.

    Attributes:
        reading: what the agent said so far.
    """

    def __init__(self, launch: Launch, job: Path, adapter: Adapter, before: Usage) -> None:
        self.reading = Reading(before=before)
        self._launch, self._job, self._adapter, self._translator = launch, job, adapter, adapter.translator()
        self._stream, self._at, self._noted, self._ask_at = EventStream(), 0, Usage(), 0.0

    @property
    def streams(self) -> bool:
        """Whether there is anything to follow."""
        return self._translator is not None

    def look(self) -> None:
        """Read what was printed since the last look."""
        path = self._job / "1-stdout"
        if self._translator is None or not path.exists():
            return
        with path.open("rb") as file:
            file.seek(self._at)
            while chunk := file.read(_CHUNK):
                self._at += len(chunk)
                self._take(chunk)

    def close(self) -> None:
        """Read the rest; nothing is printed any more."""
        self.look()
        for event in self._stream.close():
            self._translate(event)
        self.reading.unknown += self._stream.unreadable

    def priced(self, prices: PriceTable) -> Usage:
        """What it used so far, with money where a price is known."""
        usage = prices.priced(self.reading.usage, self.reading.model)
        return prices.priced(usage, self._launch.spec.argument)

    def limit(self, prices: PriceTable, caps: SpendCaps, run_folder: Path) -> Outcome | None:
        """The limit that is passed, its own or the run's."""
        usage = self.priced(prices)
        capped = caps != SpendCaps() or not {"max-tokens", "max-usd"}.isdisjoint(self._launch.spec.settings)
        if capped and usage.tokens is None and usage.usd is None:
            usage = self._recorded(prices)
        if usage != self._noted:
            note(self._job, usage)
            self._noted = usage
        own = self._in_a_loop() or over_own(self._launch.spec, usage, self.reading.turns)
        return own if own or caps == SpendCaps() else over(caps, spent(run_folder), "the run's")

    def _in_a_loop(self) -> Outcome | None:
        """The failure that it runs into again and again without doing anything in between: it would go on for ever."""
        error = self.reading.error
        if error is None or self.reading.failures < IN_A_ROW:
            return None
        return Outcome(kind=error.kind, detail=f"{self.reading.failures} times in a row: {error.detail[:WORDS]}")

    def _recorded(self, prices: PriceTable) -> Usage:
        """What its own files tell of its usage so far, for an agent whose stream tells it at the end only."""
        if time.monotonic() < self._ask_at:
            return self._noted
        self._ask_at = time.monotonic() + ASK_S
        files = Follower(self._launch, self._job, self._adapter, self.reading.before)
        files.hear(self._adapter.leftovers, self._launch, "")
        return files.priced(prices)

    def _take(self, chunk: bytes) -> None:
        for event in self._stream.feed(chunk):
            self._translate(event)

    def _translate(self, event: dict[str, object]) -> None:
        if self._translator is not None:
            self.hear(self._translator.read, event)

    def hear(self, translate: Callable[..., Iterable[Said]], *what: object) -> None:
        """Take in what an adapter makes of something; an adapter that fails at it costs only that."""
        try:
            self.reading.take(list(translate(*what)))
        except Exception as error:  # noqa: BLE001 - somebody else's code, and the agent is paid for already
            self.reading.unknown += 1
            log.warning("agent_not_understood", agent=self._launch.spec.name, error=repr(error)[:300])


async def to_its_end(job_folder: Path, job: Job, follower: Follower, stop_at: Limits) -> StepResult:
    """Run the job, or attach to it, and follow it to its end; at a limit it is stopped.

    Cancelled for good, the job is ended and its result returned all the same: what it used is still owed.
    """
    running = asyncio.ensure_future(run_job(job_folder, job))
    try:
        while not running.done():
            await asyncio.wait({running}, timeout=LOOK_S if follower.streams else None)
            if not running.done() and (passed := await in_thread(stop_at.passed, follower)):
                await in_thread(_stop, job_folder, passed)
    except asyncio.CancelledError:
        running.cancel()
        await asyncio.wait({running})
        if not kill_requested():
            raise
        await in_thread(end_job, job_folder)
        running = asyncio.ensure_future(run_job(job_folder, job))
    except BaseException:
        running.cancel()
        raise
    (result,) = await running
    return result


class Limits:
    """What stops a launch while it runs.

    Args:
        prices: what makes money of tokens.
        caps: what the run as a whole may spend.
        run_folder: where the run's attempts note what they spent.
    """

    def __init__(self, prices: PriceTable, caps: SpendCaps, run_folder: Path) -> None:
        self._prices, self._caps, self._run_folder = prices, caps, run_folder

    def passed(self, follower: Follower) -> Outcome | None:
        """Look at the stream; return the limit that is passed now."""
        follower.look()
        return follower.limit(self._prices, self._caps, self._run_folder)


def _stop(job: Path, passed: Outcome) -> None:
    write_whole(job / LIMIT, passed.model_dump_json())
    end_job(job)


def stopped_for(job: Path) -> Outcome | None:
    """The limit at which a job was stopped, if it was."""
    path = job / LIMIT
    return Outcome.model_validate_json(path.read_bytes()) if path.exists() else None
