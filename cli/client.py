"""The programmatic client: start, follow and steer runs from Python.

```python
import asyncio
from orch import Client

async def main() -> None:
    async with Client.connect() as client:
        run = await client.start_goal(goal="Make slugify keep digits", verify=("pytest -q",), agent=("cmd:./agent.sh",))
        async for event in client.events(run):
            print(event.seq, event.type)
        view = await client.result(run)
        print(view.status, view.reason)

asyncio.run(main())
```

Refused input raises RefusedError, a silent engine UnreachableError (both with `.hint`); how a run ended is a value.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..activities.home import Home
from ..workflows.errors import RefusedError, UnreachableError
from ..workflows.model.budget import Caps
from ..workflows.model.event import Event
from ..workflows.model.promotion import PromoteTarget, Promotion
from ..workflows.model.review import Decision, Extension, Note
from ..workflows.model.round.view import RoundView
from ..workflows.model.view import RunView
from . import runs
from .following import follow_events
from .link import Link
from .listing import RunRow, list_runs
from .options import GoalOptions
from .plan import GoalPlan, resolve_goal
from .views import AnyView

if TYPE_CHECKING:
    from .round_start import RoundStart

QUIET_S = 0.1
"""Given to the SDK's threads before a script ends: interpreter finalisation races them (sdk-python#300)."""

__all__ = ["Client", "GoalOptions", "RefusedError", "RunRow", "UnreachableError"]


V = TypeVar("V", RunView, RoundView)


def _home(state: Path | None) -> Home:
    from ..worker.settings import load_settings

    return Home(state.absolute()) if state else load_settings().home


class Client:
    """Starts, follows and steers runs; the command line is built on it."""

    def __init__(self, home: Home, say: Callable[[str], None] = lambda _text: None) -> None:
        self.home = home
        self.link = Link(home, say)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, state: Path | None = None, *, say: Callable[[str], None] = lambda _text: None
    ) -> AsyncIterator[Client]:
        """A client of the engine of `state` (default: `$ORCH_STATE`, else the user's state directory).

        The engine is reached, and a local one brought up, when it is first needed; `say` is told of that.
        """
        client = cls.open(state, say=say)
        try:
            yield client
        finally:
            await asyncio.sleep(QUIET_S)

    @classmethod
    def open(cls, state: Path | None = None, *, say: Callable[[str], None] = lambda _text: None) -> Client:
        """A client as `connect` gives it, for a program that ends itself with `os._exit` as `orch` does."""
        from ..worker.state import open_state

        home = _home(state)
        open_state(home)
        return cls(home, say=say)

    async def start_goal(self, options: GoalOptions | None = None, **given: Any) -> str:
        """Start a goal run and return its id; `given` are the fields of GoalOptions."""
        return await self.start(resolve_goal(options or GoalOptions.model_validate(given), state=self.home.root))

    async def start(self, plan: GoalPlan) -> str:
        """Start what a plan says and return the run's id."""
        return await runs.start(self.link, plan)

    async def start_round(self, plan: Path | str, **given: Any) -> str:
        """Start the round of a plan's file and return its id; `given` are the other fields of RoundOptions.

        The very same plan again is attached to while it runs.
        """
        from .round_options import RoundOptions
        from .round_start import resolve_round

        options = RoundOptions.model_validate({"plan": Path(plan), **given})
        return await self.begin_round(resolve_round(options, self.home))

    async def begin_round(self, start: RoundStart) -> str:
        """Start, or attach to, what a resolved plan says and return the round's id."""
        from .round_start import start_round

        return await start_round(self.link, start)

    def events(self, run: str, *, since: int = 0) -> AsyncIterator[Event]:
        """The run's events after `since`, live, until the run has ended; engine restarts lose nothing."""
        return follow_events(self.link, run, since=since)

    async def look(self, run: str) -> AnyView:
        """The run as it stands now, whatever its kind: a RunView of a goal, a RoundView of a round."""
        return await runs.view(self.link, run)

    @overload
    async def view(self, run: str) -> RunView: ...

    @overload
    async def view(self, run: str, of: type[V]) -> V: ...

    async def view(self, run: str, of: type[Any] = RunView) -> Any:
        """The run as it stands now, as the view of its kind; refused when it is of another kind."""
        found = await self.look(run)
        if not isinstance(found, of):
            raise RefusedError(f"{run} is a {found.kind}", hint=f"ask for its view: {type(found).__name__}")
        return found

    @overload
    async def result(self, run: str) -> RunView: ...

    @overload
    async def result(self, run: str, of: type[V]) -> V: ...

    async def result(self, run: str, of: type[Any] = RunView) -> Any:
        """Wait for the run's end and return how it ended, as the view of its kind."""
        async for _ in self.events(run):
            pass
        return await self.view(run, of)

    async def list(self) -> Sequence[RunRow]:
        """All known runs, newest first."""
        return await list_runs(self.link)

    async def approve(self, run: str, *, by: str = "", comment: str = "") -> None:
        """Approve the contract that the run waits with."""
        await runs.update(self.link, run, "decide", Decision(approved=True, by=by, comment=comment), result=NoneType)

    async def reject(self, run: str, *, by: str = "", comment: str = "") -> None:
        """Reject the contract that the run waits with; the run ends."""
        await runs.update(self.link, run, "decide", Decision(approved=False, by=by, comment=comment), result=NoneType)

    async def note(self, run: str, text: str, *, by: str = "") -> None:
        """Leave guidance for the next prompts."""
        await runs.update(self.link, run, "add_note", Note(text=text, by=by), result=int)

    async def extend(self, run: str, extension: Extension) -> Caps:
        """Raise what the run may use; returns the caps that hold now."""
        return await runs.update(self.link, run, "extend", extension, result=Caps)

    async def cancel(self, run: str) -> None:
        """Ask the run to end and clean up; returns as soon as the engine has taken the request."""
        await runs.cancel(self.link, run)

    async def promote(self, run: str, *, to: PromoteTarget | None = None) -> Promotion:
        """Move the user's tree, or a branch, to the run's result; a refusal is a value."""
        from .bring import promote

        return await promote(self.link, run, to)

    async def restore(self, run: str) -> Promotion:
        """Bring back the exact tree the run started from; a refusal is a value."""
        from .bring import restore

        return await restore(self.link, run)
