"""The supervisor's parent: what a killed supervisor leaves falls to this process, whatever it hid, and is ended.

Nobody leaves both by forking. Only who kills both at one stroke, with the rights of the same user and without a
sandbox, may leave something behind, and then a control group still holds it where there is one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress

from .procfs import below, children

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

ORPHANED = signal.SIGUSR1
"""What a supervisor gets when its keeper is killed: it then ends its job as a lost one."""

PATIENCE_S = 10.0
"""How long killed processes may take to vanish (one may hang in the kernel)."""


def adopt_orphans() -> None:
    """From now on what a descendant leaves becomes a child of this process."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(number: int) -> None:
    """Have this process get a signal when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


def kept() -> bool:
    """Go on in a child (False) whose keeper this process is: it returns there (True) when nothing is left of it."""
    adopt_orphans()
    if not (supervisor := os.fork()):
        die_with_parent(ORPHANED)
        return False
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: _pass_on(supervisor, number))
    signal.signal(signal.SIGHUP, lambda *_: None)
    while os.waitpid(-1, 0)[0] != supervisor:
        pass
    _end_all()
    return True


def _pass_on(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _end_all() -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in (*children(), *below({os.getpid()})):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
