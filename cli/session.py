"""One command's session with the client: connect, work, and say it when the run goes on without us."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from .exits import ExitStatus
from .talk import say

if TYPE_CHECKING:
    from .client import Client

T = TypeVar("T")


def ask(work: Callable[[Client], Awaitable[T]]) -> T:
    """Run `work` with a connected client."""
    import asyncio

    async def session() -> T:
        from .client import Client

        return await work(Client.open(say=say))

    return asyncio.run(session())


@contextmanager
def run_goes_on(run: str) -> Iterator[None]:
    """Turn Ctrl-C into exit status 130, with the way back to the run."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"\ninterrupted: the run goes on\nnext: orch watch {run}   (or: orch cancel {run})")
        raise SystemExit(ExitStatus.INTERRUPTED) from None
