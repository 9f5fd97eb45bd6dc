"""What intake remembers of a lane's tickets, out of the lane's reach: nothing is taken in twice, nothing is forgotten.

In the lane's folder, below `taken`: `<ticket>.json`, a `Taken`; `lock`, held by the one who takes in; `left-*`, what
could not be removed from the desk while somebody was at work in it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ...workflows.model.base import Value
from ...workflows.model.round.ticket import Submission, TicketStatus
from ..artifacts import write_whole


class Taken(Value):
    """A ticket that was taken in.

    Attributes:
        submission: what was found.
        answer: what the round said to it; None as long as it did not.
    """

    submission: Submission
    answer: TicketStatus | None = None


@dataclass(frozen=True)
class Records:
    """The tickets of one lane.

    Attributes:
        folder: where the records lie.
    """

    folder: Path

    def get(self, ticket: str) -> Taken | None:
        """What is known of a ticket; None when that is nothing, or half of something that a power cut left."""
        try:
            return Taken.model_validate_json((self.folder / f"{ticket}.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValidationError):
            return None

    def put(self, taken: Taken) -> None:
        """Remember a ticket."""
        write_whole(self.folder / f"{taken.submission.ticket}.json", taken.model_dump_json())

    def all(self) -> list[Taken]:
        """All tickets, in the order in which they were first taken in or last answered."""
        paths = sorted(self.folder.glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name))
        return [taken for path in paths if (taken := self.get(path.stem))]

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody else takes in for this lane as long as it lasts."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield True
        except BlockingIOError:
            yield False
        finally:
            os.close(lock)
