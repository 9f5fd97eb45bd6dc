"""An absolute deadline that a clock set by hand neither brings nearer nor puts off."""

from __future__ import annotations

import time


class Deadline:
    """A moment given as Unix time, kept as time since boot: it counts while the machine sleeps, and nobody sets it."""

    def __init__(self, at: float | None) -> None:
        """The wall clock is asked once, now: what it jumps later changes nothing. None never passes."""
        self._at = float("inf") if at is None else _since_boot() + at - time.time()

    def left(self) -> float:
        """Seconds until it passes; not positive when it has."""
        return self._at - _since_boot()


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
