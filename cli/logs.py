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
        named = candidate is not None or iteration is not None
        key = None if named else _before_any(run, events)
        return client.home.run(run), events, key or select(run, events, candidate=candidate, iteration=iteration)

    with run_goes_on(run):
        run_folder, events, key = ask(find)
        folder = run_folder / "attempts" / key.name
        say(
            f"iteration {key.iteration}, candidate {key.candidate}: {folder}"
            if key.candidate
            else f"baseline: {folder}"
        )
        if prompt:
            _print("prompt", folder / "prompt.md")
        if follow and key.candidate and measured(events, key) is None:
            _follow(run, folder, key)
        else:
            for path in _streams(folder):
                _print(f"{path.parent.name} {path.name.partition('-')[2]}", path)
            for title, path in _rungs(events, key, run_folder):
                _print(title, path)


def _before_any(run: str, events: list[Event]) -> AttemptKey | None:
    """The measurement of the unchanged tree, when the run ended before it started an attempt."""
    from ..workflows.model.attempt import AttemptKey
    from ..workflows.model.event import AttemptStarted, RunEnded

    ended = any(isinstance(event, RunEnded) for event in events)
    started = any(isinstance(event, AttemptStarted) for event in events)
    return AttemptKey(run=run, iteration=0, candidate=0, binding=0) if ended and not started else None


def _streams(folder: Path) -> list[Path]:
    """What set-up and the agent printed, in the order in which they ran."""
    jobs = (folder / "setup", folder / "agent", folder / "measure" / "setup")
    return [path for job in jobs for name in ("stdout", "stderr") for path in sorted(job.glob(f"*-{name}"))]


def _rungs(events: list[Event], key: AttemptKey, run_folder: Path) -> Iterator[tuple[str, Path]]:
    """The output of the rungs that did not pass."""
    from ..workflows.model.event import BaselineMeasured
    from .selection import measured

    candidate = measured(events, key)
    verdicts = [event.verdict for event in events if isinstance(event, BaselineMeasured)]
    verdict = (candidate.verdict if candidate else None) if key.candidate else next(iter(verdicts), None)
    for rung in verdict.failing if verdict else ():
        for name, excerpt in (("stdout", rung.stdout), ("stderr", rung.stderr)):
            if excerpt.path:
                yield f"rung {rung.name} ({rung.exit}) {name}", run_folder / excerpt.path


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


def _follow(run: str, folder: Path, key: AttemptKey) -> None:
    """Print what is appended until the attempt has been measured."""
    from .runs import all_events
    from .selection import measured

    read: dict[Path, int] = {}
    while True:
        over = measured(ask(lambda client: all_events(client.link, run)), key) is not None
        for path in _streams(folder):
            read[path] = read.get(path, 0) + _copy(path, read.get(path, 0))
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
