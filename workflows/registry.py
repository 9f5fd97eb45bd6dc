"""The workflows that a worker serves."""

from __future__ import annotations

from .attempt import Attempt
from .goal import Goal
from .nightly import Scheduled

WORKFLOWS = (Goal, Attempt, Scheduled)
