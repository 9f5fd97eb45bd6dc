"""Bytes of an event stream, in chunks of any size, to events: one JSON object a line, never more in memory than one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_LINE = 16 << 20
"""Bytes of the longest line that is parsed; of a longer one nothing is kept."""

_HALVES = re.compile(r"\\u[dD][89a-fA-F]")
"""Half a character, perhaps: what cuts texts by UTF-16 units leaves such, and no encoder takes them."""


_SPACE = b" \t\r"
"""What JSON takes for white space in a line; what else Python strips makes the line no event."""

_BEGINNINGS = frozenset({b"{", *(bytes([one]) for one in _SPACE)})
"""What a line with an event may begin with."""


class EventStream:
    """Splits and parses; pure, and the same for every way of cutting the bytes into chunks.

    Attributes:
        unreadable: lines that were no JSON object, too long, or cut off at the end.
    """

    def __init__(self) -> None:
        self.unreadable = 0
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """The events that became whole with these bytes; exhaust it before the next call."""
        *whole, rest = data.split(b"\n")
        for part in whole:
            if not self._size and part and part[:1] not in _BEGINNINGS:  # no event: not worth a look
                self.unreadable += 1
                continue
            self._keep(part)
            yield from self._line()
        self._keep(rest)

    def close(self) -> Iterator[dict[str, Any]]:
        """The event of a last line without a newline, if it is one."""
        yield from self._line()

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > MAX_LINE:
            self._skipping = True
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _line(self) -> Iterator[dict[str, Any]]:
        line, skipped = b"".join(self._parts).strip(_SPACE), self._skipping
        self._parts, self._size, self._skipping = [], 0, False
        if not line and not skipped:
            return
        event = None if skipped else parsed(line.decode("utf-8", "replace"))
        if isinstance(event, dict):
            yield event
        else:
            self.unreadable += 1


def parsed(text: str) -> Any:
    """What a JSON text holds, half characters replaced; None when it is none."""
    try:
        value = json.loads(text)
        if _HALVES.search(text):
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value
