"""The supervisor of one job, a program of its own (`__main__.py`), and what a worker shares with it.

Everything here is the standard library alone: the program starts without site packages (`python -I -S`).
"""

from __future__ import annotations

import os

from .cgroups import end as end_group
from .files import END, GROUP, IDENTITY, JOB, LOCK, MARK, RESULTS, SIGNALS, write_whole
from .procfs import below, pids, start_ticks
from .pump import CAP, TAIL, Pump
from .redact import Redactor

PROGRAM = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would cost every start 10 ms
"""What the interpreter is given to run."""

__all__ = [
    "CAP",
    "END",
    "GROUP",
    "IDENTITY",
    "JOB",
    "LOCK",
    "MARK",
    "PROGRAM",
    "RESULTS",
    "SIGNALS",
    "TAIL",
    "Pump",
    "Redactor",
    "below",
    "end_group",
    "pids",
    "start_ticks",
    "write_whole",
]
