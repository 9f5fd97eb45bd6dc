"""`orch logs`: what an agent and the checks of its candidate printed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .params import run_argument
from .session import ask, run_goes_on
from .talk import say

if TYPE_CHECKING:
    from ..workflows.model.attempt import AttemptKey
    from ..workflows.model.event import Event
    from .client import Client

_POLL_S = 0.3
_CHUNK = 1 << 16


@click.command()
@run_argument
@click.option("--candidate", type=int, help="Which candidate [default: the winner, else the latest].")
@click.option("--iteration", type=int, help="Which iteration [default: the newest].")
@click.option("--prompt", is_flag=True, help="Print the agent's prompt too.")
@click.option("-f", "--follow", is_flag=True, help="Go on printing while the agent runs.")
def logs(run: str, *, candidate: int | None, iteration: int | None, prompt: bool, follow: bool) -> None:
    """Print what a candidate's agent and failing rungs wrote."""
    from .runs import all_events
    from .selection import measured, select

    async def find(client: Client) -> tuple[Path, list[Event], AttemptKey]:
        events = await all_events(client.link, run)
        key = select(run, events, candidate=candidate, iteration=iteration)
        return client.home.attempt(key), events, key

    with run_goes_on(run):
        folder, events, key = ask(find)
        say(f"iteration {key.iteration}, candidate {key.candidate}: {folder}")
        if prompt:
            _print("prompt", folder / "prompt.md")
        streams = [(f"agent {name}", folder / "agent" / f"0-{name}") for name in ("stdout", "stderr")]
        if follow and measured(events, key) is None:
            _follow(run, dict(streams), key)
        else:
            for title, path in (*streams, *_rungs(events, key, folder)):
                _print(title, path)


def _rungs(events: list[Event], key: AttemptKey, folder: Path) -> Iterator[tuple[str, Path]]:
    """The output of the rungs that did not pass, and of a set-up that failed."""
    from .selection import measured

    candidate = measured(events, key)
    run_folder = folder.parent.parent
    if candidate is not None and candidate.verdict is not None:
        for rung in candidate.verdict.failing:
            for name, excerpt in (("stdout", rung.stdout), ("stderr", rung.stderr)):
                if excerpt.path:
                    yield f"rung {rung.name} ({rung.exit}) {name}", run_folder / excerpt.path
    elif candidate is not None and candidate.output.path:
        yield f"{candidate.failure_detail or candidate.failure}", run_folder / candidate.output.path


def _print(title: str, path: Path) -> None:
    """Copy a file to stdout as it is, a chunk at a time, with a title on stderr; an empty one is left out."""
    if not path.exists() or path.stat().st_size == 0:
        return
    say(f"--- {title}")
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            _write(chunk)


def _write(chunk: bytes) -> None:
    click.echo(chunk, nl=False)


def _follow(run: str, streams: dict[str, Path], key: AttemptKey) -> None:
    """Print what is appended until the attempt has been measured."""
    from .runs import all_events
    from .selection import measured

    read = dict.fromkeys(streams, 0)
    while True:
        over = measured(ask(lambda client: all_events(client.link, run)), key) is not None
        for title, path in streams.items():
            read[title] += _copy(path, read[title])
        if over:
            return
        time.sleep(_POLL_S)


def _copy(path: Path, start: int) -> int:
    """Print what stands in a file after `start`; return how much that was."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        file.seek(start)
        chunk = file.read()
    _write(chunk)
    return len(chunk)
