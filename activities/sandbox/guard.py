"""The engine's own ports, closed to commands that have the network: it asks nobody who they are.

Who reaches the engine can start runs outside of the sandbox, so this belongs to the sandbox. All other ports stay open:
people serve models and databases on loopback.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from .. import processes
from ..home import Home
from . import Box, Launcher, closed_ports
from .view import Needs, box

OPEN_ENGINE = "agents can reach the engine on loopback, and so start runs outside of the sandbox"

WEB = frozenset({80, 443})
"""Never closed: without them there is no network at all."""

_rules: dict[frozenset[int], int] = {}
"""Made once for each state of the engine, and kept: a command may be about to get them."""

_making = threading.Lock()

PYTHON = os.path.realpath(sys.executable)
"""The interpreter itself: an environment may lie where the command writes."""


def guarded(argv: tuple[str, ...], ports: frozenset[int], launcher: Launcher) -> tuple[str, ...]:
    """The command of a box without a way to the ports; itself where that cannot be had (`flaw`)."""
    if not ports or flaw(launcher):
        return argv
    return _words(argv, ports)


def shared_rules(ports: frozenset[int], launcher: Launcher) -> tuple[int, ...]:
    """The descriptor of rules that the next `guarded` commands need not make; empty where none is of use.

    Whoever holds it can open ports to later commands: pass it to no command that is not guarded.
    """
    if not ports or flaw(launcher) or launcher.name != "bwrap":
        return ()
    with _making:
        if ports not in _rules:
            made = closed_ports.rules_but(ports)
            _rules[ports] = fcntl.fcntl(made, fcntl.F_DUPFD_CLOEXEC, 3)  # a worker without stdin: it would become that
            os.close(made)
        return (_rules[ports],)


def flaw(launcher: Launcher) -> str:
    """Why the engine's ports cannot be closed to commands in its boxes; empty when they can."""
    if launcher.image:
        return f"{launcher.name} runs an image, which may lack what closes ports"
    return _kernel() or ("" if launcher.name == "bwrap" else _in_box(launcher.name, launcher.wrap))


def hides_sockets(launcher: Launcher) -> bool:
    """Whether abstract sockets of the host are out of reach even where the network is there."""
    return not flaw(launcher) and closed_ports.abi() >= closed_ports.SCOPE_ABI


def engine_ports(home: Home) -> frozenset[int]:
    """Where the engine listens as far as this host knows: its server and worker, by what is recorded of them.

    The server listens on ports besides the recorded ones, which are others after each start.
    """
    server, worker = (_recorded(home.engine / name) for name in ("server.json", "worker.json"))
    found = {server.get(name) for name in ("port", "ui_port", "codec_port")} | {worker.get("engine_port")}
    for record in (server, worker):
        found |= _listening(record.get("pid"))
    return frozenset(port for port in found if isinstance(port, int) and 0 < port < 1 << 16) - WEB


def _recorded(path: Path) -> dict[str, object]:
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _listening(pid: object) -> set[object]:
    """The TCP ports that a process listens on; none when it is gone, or not ours."""
    with suppress(psutil.Error, OSError):
        if isinstance(pid, int) and pid > 0:
            found = psutil.Process(pid).net_connections("tcp")
            return {each.laddr.port for each in found if each.status == psutil.CONN_LISTEN}
    return set()


@functools.cache
def _kernel() -> str:
    return closed_ports.flaw()


@functools.cache
def _in_box(name: str, wrap: Callable[[tuple[str, ...], Box], tuple[str, ...]]) -> str:
    """Why it fails in a box, tried once: container engines have filters of their own."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, argv = Path(temporary), _words(("true",), frozenset({1}))
        needs = Needs(argv, os.environ.get("PATH", ""), folder / "state", tmp=folder)
        boxed = wrap(argv, box(needs, network=True))
        done = processes.run(
            processes.Command(boxed, folder, processes.scrubbed_environment({})), timeout_s=processes.ANSWER_S
        )
    said = done.stderr.decode(errors="replace").strip() or str(done.exit)
    return "" if done.exit.ok else f"not in boxes of {name}: {said}"


def _words(argv: tuple[str, ...], ports: frozenset[int]) -> tuple[str, ...]:
    closed, rules = ",".join(map(str, sorted(ports))), _rules.get(ports, -1)
    return (PYTHON, "-I", "-S", "-c", _program(), closed, str(rules), *argv)


@functools.cache
def _program() -> str:
    """The program's text: its file may be one that the command wrote."""
    return Path(closed_ports.__file__).read_text(encoding="utf-8")
