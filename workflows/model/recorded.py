"""The base of every event."""

from __future__ import annotations

from pydantic import Field

from .base import Value


class Recorded(Value):
    """What all events have: their place in the ledger and their time (ISO 8601, UTC)."""

    seq: int = Field(ge=1)
    at: str
