"""The import probe: whether the target that a command finds lies inside of its working copy."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ...workflows.model.exit import Exit
from ...workflows.model.round.plan import Command
from ...workflows.model.verdict import Excerpt
from ..agents import secrets
from ..effect import ended_if_cancelled, in_thread
from ..excerpts import clean, excerpt
from ..jobs import Job, Step, StepResult, run_job
from ..measuring.surroundings import measuring_environment
from ..places import Grants, Place
from ..sandbox import BUILD
from ..workspaces.registry import provider_of

PROBE = "probe"
"""The folder of the probe's job, below the place's."""

WITHIN = """\
while IFS= read -r line || [ -n "$line" ]; do [ -z "$line" ] || last=$line; done
[ -n "$last" ] || { echo 'it printed no path'; exit 3; }
real=$(readlink -f -- "$last") && [ -e "$real" ] || { echo 'no file: '"$last"; exit 4; }
here=$real
until [ "$here" -ef "$1" ]; do
    [ "$here" != / ] || { echo 'outside: '"$real"; exit 5; }
    here=$(dirname -- "$here")
done"""
"""Says where the path in the last line leads, asked where the command ran: a working copy has several names there."""

WITHIN_S = 60.0


@dataclass(frozen=True)
class Probed:
    """What a probe showed.

    Attributes:
        flaw: why the target is not known to lie inside; empty when it does.
        exit: how the probe ended.
        output: what it printed, when there is a flaw.
    """

    flaw: str
    exit: Exit
    output: Excerpt = field(default_factory=Excerpt)


async def probe(place: Place, command: Command, *, sandbox: bool) -> Probed:
    """Run the probe in a place, once whoever asks; it has no network and no secrets."""
    folder, asked = place.folder / PROBE, ("sh", "-c", WITHIN, "sh", str(place.tree))
    steps = (
        _step(place, ("sh", "-c", command.run), command.timeout_s, None, sandbox=sandbox),
        _step(place, asked, WITHIN_S, folder / "1-stdout", sandbox=sandbox),
    )
    hidden = await in_thread(secrets.hidden, place.home, place.key.run)
    async with ended_if_cancelled(folder):
        first, *rest = await run_job(folder, Job(steps, stop_on_failure=True, hidden=hidden))
    if first.exit.ok and rest and rest[0].exit.ok:
        return Probed("", first.exit)
    said = first.stdout if first.exit.ok or not _size(first.stderr) else first.stderr
    output = excerpt(said, run_folder=place.home.run(place.key.run))
    return Probed(_flaw(first, rest), first.exit, output)


def _step(place: Place, argv: tuple[str, ...], timeout_s: float, stdin: Path | None, *, sandbox: bool) -> Step:
    writable = provider_of(place.folder).writable(place.store, place.folder)
    return Step(
        name=PROBE,
        argv=place.fenced(argv, BUILD, Grants(writable=writable, network=False), sandbox=sandbox),
        cwd=place.tree,
        env=measuring_environment(place.environment({})),
        timeout_s=timeout_s,
        stdin=stdin,
    )


def _flaw(first: StepResult, rest: list[StepResult]) -> str:
    if not first.exit.ok:
        return f"the probe: {first.exit}"
    told = clean(rest[0].stdout.read_bytes()).strip() if rest and _size(rest[0].stdout) else ""
    return f"the target does not resolve inside of the working copy: {told or 'it cannot be told where it lies'}"[:500]


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
