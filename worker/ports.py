"""Loopback ports for a state directory: picked once, then kept."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Collection

from ..activities.home import Home
from ..workflows.errors import RefusedError

FIRST, COUNT = 20000, 10000
"""Below the range used for outgoing connections, so that a kept port stays free when unused."""


def pick(home: Home, *, but: Collection[int] = ()) -> int:
    """A free port that is none of `but`; the search begins where the directory says, so that two differ."""
    begin = zlib.crc32(str(home.root).encode()) % COUNT
    for step in range(COUNT):
        port = FIRST + (begin + step) % COUNT
        if port not in but and problem(port) is None:
            return port
    raise RefusedError("no free port on loopback", hint="give one: orch up --port N")


def require_free(port: int) -> None:
    """Raise RefusedError naming the port when nothing can listen on it, mostly because something else does."""
    if reason := problem(port):
        raise RefusedError(
            f"port {port} of 127.0.0.1 cannot be used: {reason}",
            hint="`orch up --port N` moves the engine to another",
        )


def problem(port: int) -> str | None:
    """Why a server could not listen there now; None when it could."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except (OSError, OverflowError) as error:
            return str(error.strerror if isinstance(error, OSError) else error)
    return None
