"""`orch doctor`: check what this host can do for a run."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from .exits import ExitStatus
from .params import json_option
from .talk import out, out_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..activities.sandbox import Launcher
    from ..worker.settings import Settings

Grade = Literal["ok", "warn", "bad"]


class Finding(NamedTuple):
    """One thing that was looked at, and the mend where it is not well."""

    what: str
    grade: Grade
    said: str
    mend: str = ""


@click.command()
@json_option
def doctor(*, as_json: bool) -> None:
    """Check this host: git, sandbox, disk, state directory, engine; for agents see `orch agents`. Changes nothing."""
    from ..worker.settings import load_settings

    found = list(findings(load_settings()))
    if as_json:
        out_json([finding._asdict() for finding in found])
    else:
        for finding in found:
            out(
                f"{finding.grade:<4}  {finding.what}: {finding.said}"
                + (f"\n      hint: {finding.mend}" if finding.mend else "")
            )
    if any(finding.grade == "bad" for finding in found):
        raise SystemExit(ExitStatus.UNSUCCESSFUL)


def findings(settings: Settings) -> Iterator[Finding]:
    """Look at everything a run needs."""
    yield Finding("python", "ok", sys.version.split()[0])
    yield _git()
    yield from _sandbox()
    yield from _workspaces(settings)
    yield _disk(settings)
    yield Finding("slots", "ok", f"{settings.slots} attempts at once (ORCH_SLOTS)")
    yield _engine(settings)


def _git() -> Finding:
    from pathlib import Path

    from ..activities.git import Git
    from ..activities.repository import MIN_GIT

    if shutil.which("git") is None:
        return Finding("git", "bad", "not installed", "install git")
    version = Git(Path("/")).text("version").removeprefix("git version ")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if numbers < MIN_GIT:
        return Finding("git", "bad", version, f"install git {'.'.join(map(str, MIN_GIT))} or newer")
    return Finding("git", "ok", version)


def _sandbox() -> Iterator[Finding]:
    from ..activities.places import EXPOSE, exposed
    from ..activities.sandbox.registry import chosen, tried
    from ..activities.sandbox.view import credentials
    from ..workflows.errors import RefusedError

    try:
        launcher = chosen()
    except RefusedError as error:
        yield Finding("sandbox", "bad", error.message, error.hint)
        return
    if flaw := tried(launcher):
        yield Finding("sandbox", "warn", f"does not work here: {flaw.why}", flaw.mend)
        return
    yield Finding("sandbox", "ok", launcher.version())
    yield from _denials(launcher)
    yield from _open_engine(launcher)
    shown, never = exposed(), credentials(exposed())
    for path in shown:
        if path in never:
            yield Finding("sandbox", "warn", f"does not show {path}: it holds logins", f"take it out of {EXPOSE}")
        elif not path.exists():
            yield Finding("sandbox", "warn", f"cannot show {path}: it is not there", f"mend {EXPOSE}")
        else:
            yield Finding("sandbox", "ok", f"shows {path} ({EXPOSE})")


def _denials(launcher: Launcher) -> Iterator[Finding]:
    from ..activities.sandbox.denials import denials

    mend = "do not run agents you cannot trust on this host, and report this"
    for one in denials(launcher):
        who = f"sandbox ({one.profile})"
        if one.denied:
            yield Finding(who, "ok", f"cannot {one.what}")
        else:
            yield Finding(who, "bad", f"can {one.what}: {one.said}", mend)


def _open_engine(launcher: Launcher) -> Iterator[Finding]:
    """Only where the engine is open to agents: else the denials say so."""
    from ..activities.sandbox.guard import OPEN_ENGINE, flaw

    if why := flaw(launcher):
        mend = "use Linux 6.7 or newer with Landlock on, and bwrap or podman without an image"
        yield Finding("sandbox (agent)", "warn", f"{OPEN_ENGINE} ({why})", mend)


def _workspaces(settings: Settings) -> Iterator[Finding]:
    """Which provider makes workspaces here, and why none of the better ones does."""
    from ..activities.workspaces.registry import choose, flaws
    from ..worker.state import writable
    from ..workflows.errors import RefusedError

    try:
        with writable(settings.home):
            chosen, unfit = choose(settings.home).name, flaws(settings.home)
    except RefusedError as error:
        yield Finding("workspaces", "bad", error.message, error.hint)
        return
    yield Finding("workspaces", "ok", chosen)
    for name, why in unfit.items():
        yield Finding("workspaces", "ok", f"{name} does not work here: {why}")


def _disk(settings: Settings) -> Finding:
    from ..activities.collecting.disk import free_bytes
    from ..activities.limits import FLOOR_BYTES

    root = settings.home.root
    free = free_bytes(root)
    said = f"{free / 2**30:.1f} GiB free for {root}"
    if free < FLOOR_BYTES:
        return Finding("disk", "bad", said, "orch gc, or set ORCH_STATE to a larger disk")
    return Finding("disk", "ok", said)


def _engine(settings: Settings) -> Finding:
    import asyncio

    from ..worker.connection import connect, is_local
    from ..worker.engine import status
    from ..workflows.errors import OrchError

    engine = asyncio.run(status(settings.home))
    if is_local(settings.home) and not engine.up:
        return Finding("engine", "ok", "not running; `orch start` brings it up by itself")
    try:
        asyncio.run(connect(settings.home))
    except OrchError as error:
        return Finding("engine", "bad", error.message, error.hint)
    return Finding("engine", "ok", f"answers at {engine.address or 'the cluster of TEMPORAL_*'}")
