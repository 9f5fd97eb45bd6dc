"""The command agent, `cmd:SHELL`: any shell line; it may report usage in the file `$ORCH_USAGE_FILE` names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...workflows.model.usage import Usage
from ..programs import missing_program
from .adapter import AgentCall, Reading

USAGE_FILE = "usage.json"
USAGE_LIMIT = 64 << 10
COUNTS = ("tokens_in", "tokens_out", "tokens_cached", "usd")


class CommandAgent:
    """Runs a shell line in the workspace."""

    def missing(self, argument: str, path: str | None) -> str:
        """Return the first word of the line when it is a bare name that is not to be found."""
        return missing_program(argument, path)

    def call(self, argument: str, folder: Path) -> AgentCall:
        """Run the line by the system's shell."""
        return AgentCall(argv=("sh", "-c", argument), env={"ORCH_USAGE_FILE": str(folder / USAGE_FILE)})

    def read(self, folder: Path, stdout: Path) -> Reading:  # noqa: ARG002 - a command prints no structured output
        """Read the usage file; what cannot be read is unknown, never an error and never zero."""
        report = _load(folder / USAGE_FILE)
        try:
            usage = Usage(**{name: report[name] for name in COUNTS if report.get(name) is not None})
        except ValidationError:
            usage = Usage()
        return Reading(
            usage=usage, session=str(report.get("session") or "")[:200], message=str(report.get("message") or "")[:500]
        )


def _load(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            report = json.loads(file.read(USAGE_LIMIT))
    except (OSError, ValueError):
        return {}
    return report if isinstance(report, dict) else {}
