"""How an attempt is given a host."""

from __future__ import annotations

from .attempt import AttemptKey
from .base import Value
from .placement import Exchange


class ClaimHost(Value):
    """Ask for a host with room; whoever answers has reserved a slot.

    Attributes:
        attempt: who holds the slot.
        agent: the agent's spec: its program must be there.
        exchange: what the host must be able to read and write.
        sandbox: whether its sandbox must work.
    """

    attempt: AttemptKey
    agent: str
    exchange: Exchange
    sandbox: bool


class Claimed(Value):
    """The host that reserved a slot, by its stable id."""

    host: str
