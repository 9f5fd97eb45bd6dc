"""The base of every event."""

from __future__ import annotations

from calendar import timegm

from pydantic import Field

from .base import Value


class Recorded(Value):
    """What all events have: their place in the ledger and their time (ISO 8601, UTC)."""

    seq: int = Field(ge=1)
    at: str

    @property
    def time(self) -> float:
        """Unix seconds of `at`, as a ledger writes it: `2026-01-02T03:04:05.678+00:00`; a ValueError for other text."""
        date, _, clock = self.at.partition("T")
        year, month, day = map(int, date.split("-"))
        hour, minute, seconds = clock.removesuffix("Z").removesuffix("+00:00").split(":")
        return timegm((year, month, day, int(hour), int(minute), 0)) + float(seconds)
