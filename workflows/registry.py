"""The workflows that workers serve: runs on the shared queue, attempts on the queue of their host."""

from __future__ import annotations

from .attempt import Attempt
from .goal import Goal
from .nightly import Scheduled
from .round import Round

RUNS = (Goal, Round, Scheduled)
ATTEMPTS = (Attempt,)
WORKFLOWS = (*RUNS, *ATTEMPTS)
