"""One stream of a step, from its pipe to its file: capped, without secrets, never a reason to stop."""

from __future__ import annotations

import os

from .redact import Redactor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CAP, TAIL, CHUNK = 64 << 20, 64 << 10, 256 << 10
"""Bytes kept of a stream from its start and from its end, and read at once."""


class Pump:
    """Moves one stream from a pipe to a file; past the cap it drains, and keeps the last bytes."""

    def __init__(self, path: str, hidden: Mapping[str, str]) -> None:
        """`hidden` are the values that must not get into the file, by name."""
        self.source, self.inlet = os.pipe()
        os.set_blocking(self.source, False)
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self.room, self.dropped, self.tail = CAP, 0, b""
        self._redactor = Redactor(hidden)

    def move(self) -> bool:
        """Move one chunk; False when there is nothing to read (of a readable pipe: its end)."""
        try:
            data = os.read(self.source, CHUNK)
        except BlockingIOError:
            return False
        self._keep(self._redactor.feed(data))
        return bool(data)

    def close(self) -> None:
        """Move what the pipe still holds, tell what was dropped, and close."""
        for _ in range(8):  # more than a pipe holds; whoever cannot be killed may go on writing
            self.move()
        self._keep(self._redactor.end())
        if self.dropped:
            gone = self.dropped - len(self.tail)
            self._write(b"\n[orch: %d bytes of output dropped here]\n" % gone + self.tail)
        os.close(self.source)
        os.close(self.file)

    def _keep(self, data: bytes) -> None:
        kept, rest = data[: self.room], data[self.room :]
        self.room -= len(kept)
        self._write(kept)
        if rest:
            self.dropped += len(rest)
            self.tail = (self.tail + rest)[-TAIL:]

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self.file, data) :]
        except OSError:  # no space: the job goes on without its output
            self.dropped, self.room = self.dropped + len(data), 0
