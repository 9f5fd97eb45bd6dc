"""The desk of a lane, seen from outside: what lies in its outbox, and what is written up for it to read."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from re import Pattern

from ...workflows.model.round.ticket import TicketState, TicketStatus
from .desk import DESK, OUTBOX, STATUS, TAKEN
from .reach import NOWHERE, opened_folder, put_away

AT_ONCE = 100
"""Entries that one look brings, however many there are."""

FINAL = frozenset({TicketState.MEASURED, TicketState.REJECTED})


@dataclass
class Board:
    """One lane's desk; blocks. What the lane put in the place of its folders is moved away.

    Attributes:
        folder: the lane's folder.
        shown: what is written up.
        stuck: entries that could not be moved away; they are not looked at again.
    """

    folder: Path
    shown: dict[str, TicketStatus] = field(default_factory=dict)
    stuck: set[str] = field(default_factory=set)

    def stamp(self) -> tuple[int, ...]:
        """Something that changes with what lies in the outbox, if not always at once."""
        try:
            found = os.lstat(self.folder / DESK / OUTBOX)
        except OSError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_ctime_ns

    def entries(self, names: Pattern[str]) -> list[str]:
        """Some of the entries of the outbox that are called so, by their age."""
        found: list[tuple[int, str]] = []
        with self.opened(OUTBOX) as outbox:
            if outbox == NOWHERE:
                return []
            with os.scandir(outbox) as there:
                for entry in there:
                    if names.fullmatch(entry.name) and entry.name not in self.stuck:
                        found.append((_age(entry), entry.name))
                        if len(found) == AT_ONCE:
                            break
        return [name for _, name in sorted(found)]

    def drop(self, name: str) -> None:
        """Move an entry out of the outbox, for good."""
        with self.opened(OUTBOX) as outbox, opened_folder(self.folder / TAKEN) as aside:
            if outbox != NOWHERE and not put_away(name, outbox, aside):
                self.stuck.add(name)

    def recall(self, status: TicketStatus) -> None:
        """Know a state from before; write it up only where nothing is, since what is there may be newer."""
        with self.opened(STATUS) as board:
            try:
                os.stat(_file(status), dir_fd=board, follow_symlinks=False)
            except OSError:
                return self.show(status)
        self.shown[status.ticket] = status
        return None

    def show(self, status: TicketStatus) -> None:
        """Write up a ticket's state, if that is news; a lane that stands in the way is not told."""
        if self.shown.get(status.ticket) == status:
            return
        self.shown[status.ticket] = status
        aside = f".status-{secrets.token_hex(8)}"
        (self.folder / TAKEN / aside).write_text(status.model_dump_json(), encoding="utf-8")
        with self.opened(STATUS) as board, opened_folder(self.folder / TAKEN) as taken:
            for _ in range(2):
                with suppress(OSError):
                    os.rename(aside, _file(status), src_dir_fd=taken, dst_dir_fd=board)
                    return
                put_away(_file(status), board, taken)
        (self.folder / TAKEN / aside).unlink(missing_ok=True)

    def is_final(self) -> bool:
        """Whether nothing more is to come of what was shown."""
        return all(status.state in FINAL for status in list(self.shown.values()))

    @contextmanager
    def opened(self, name: str) -> Iterator[int]:
        """A folder of the desk, made anew in the place of anything else; nothing is made where there is no desk."""
        with ExitStack() as stack:
            desk = stack.enter_context(opened_folder(self.folder / DESK))
            found = stack.enter_context(opened_folder(name, within=desk))
            aside = stack.enter_context(opened_folder(self.folder / TAKEN))
            if found == NOWHERE and desk != NOWHERE and put_away(name, desk, aside):
                with suppress(OSError):
                    os.mkdir(name, dir_fd=desk)
                found = stack.enter_context(opened_folder(name, within=desk))
            yield found


def _file(status: TicketStatus) -> str:
    return f"{status.ticket}.json"


def _age(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0
