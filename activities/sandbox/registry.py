"""Which launcher makes the boxes of this host, and whether it works: shown by trying."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path

from ...workflows.errors import RefusedError
from ...workflows.model.exit import ExitKind
from .. import processes
from . import Box, Flaw, Launcher
from .bubblewrap import Bubblewrap
from .container import Container
from .view import Needs, box

VARIABLE = "ORCH_SANDBOX"
"""Names the launcher in the worker's environment; `auto` is the default."""

LAUNCHERS: dict[str, Launcher] = {
    "bwrap": Bubblewrap(),
    "podman": Container("podman"),
    "docker": Container("docker"),
}

PROBE = """
touch "$1/in" || { echo "writing inside is refused"; exit 1; }
touch "$2/out" 2>/dev/null && { echo "writing outside is not refused"; exit 1; }
[ ! -e "$3/state" ] || { echo "the state directory is seen"; exit 1; }
[ "$(readlink /proc/self/ns/net)" != "$4" ] || { echo "the network is shared"; exit 1; }
"""


def chosen() -> Launcher:
    """The launcher of the setting; `auto` is the first that works, or else the first."""
    name = setting()
    if name == "auto":
        works = (launcher for launcher in LAUNCHERS.values() if not tried(launcher))
        return next(works, LAUNCHERS["bwrap"])
    return LAUNCHERS[name]


def setting() -> str:
    """The name in the environment. Raises RefusedError for an unknown one."""
    name, known = os.environ.get(VARIABLE) or "auto", ("auto", *LAUNCHERS)
    if name not in known:
        raise RefusedError(f"{VARIABLE} is {name!r}: no launcher of sandboxes", hint=f"use one of {', '.join(known)}")
    return name


def wrap(argv: tuple[str, ...], what: Box) -> tuple[str, ...]:
    """The command in a box of the chosen launcher."""
    return chosen().wrap(argv, what)


def not_executed(stderr: str) -> str:
    """Why a boxed command never ran, when nothing but a launcher's own complaint was printed; else empty."""
    return next((said for launcher in LAUNCHERS.values() if (said := launcher.not_executed(stderr))), "")


def probe() -> Flaw | None:
    """Why there is no sandbox on this host, with the mend; None when it works."""
    return tried(chosen())


def tried(launcher: Launcher) -> Flaw | None:
    """Why a launcher does not work, shown by trying; once in the life of this process, unless that took too long."""
    try:
        return _tried(launcher.name)
    except TimeoutError as error:
        return Flaw(str(error), "try again when the host is less busy")


@functools.cache
def _tried(name: str) -> Flaw | None:
    launcher = LAUNCHERS[name]
    if found := launcher.flaw():
        return found
    with tempfile.TemporaryDirectory() as folder:
        inside, outside, state = (Path(folder) / name for name in ("inside", "outside", "state"))
        for path in (inside, outside, state / "state"):
            path.mkdir(parents=True)
        network = str(Path("/proc/self/ns/net").readlink())
        script = ("sh", "-c", PROBE, "sh", str(inside), str(outside), str(state), network)
        needs = Needs(script, os.environ.get("PATH", ""), state, tmp=inside, expose=(outside,))
        environment = processes.scrubbed_environment({"HOME": str(inside)})
        command = processes.Command(launcher.wrap(script, box(needs, network=False)), inside, environment)
        done = processes.run(command, timeout_s=processes.ANSWER_S)
    if done.exit.kind is ExitKind.TIMED_OUT:
        raise TimeoutError(f"trying {name} took longer than {done.exit.detail}")
    said = (done.stdout + done.stderr).decode(errors="replace").strip()
    return None if done.exit.ok else Flaw(f"{said or f'{launcher.name} failed'} ({done.exit})", launcher.mend(said))
