"""The files of a job's folder, and what supervisor and worker agree on."""

# ruff: noqa: PTH105
from __future__ import annotations

import json
import os

JOB, LOCK, IDENTITY, RESULTS, END = "job.json", "lock", "supervisor.json", "results.jsonl", "exit.json"
"""The files of a job's folder."""

GROUP = "cgroup"
"""In a job's folder: the control groups that hold its processes, one a line; only where one could be made."""

MARK = "ORCH_JOB"
"""The variable that names the job's folder in the environment of everything that belongs to it."""

SIGNALS = (("INT", 1.5), ("TERM", 1.5))
"""What is sent when its time is over, and the seconds to react to it; then comes KILL."""


def write_whole(path: str, value: object) -> None:
    """Write a JSON file, readable by its owner only, that is complete or not there."""
    with open(f"{path}.new", "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        json.dump(value, file)
    os.replace(f"{path}.new", path)
