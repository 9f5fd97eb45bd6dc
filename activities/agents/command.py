"""The command agent, `cmd:SHELL`: any shell line; it may report usage in the file `$ORCH_USAGE_FILE` names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...workflows.model.usage import Usage
from ..programs import missing_program
from .adapter import AgentCall, Launch, Traits, Translator
from .said import Began, Said, Text, Total
from .spec import Spec
from .stream import parsed

USAGE_FILE = "usage.json"
USAGE_LIMIT = 64 << 10
COUNTS = ("tokens_in", "tokens_out", "tokens_cached", "usd")


class CommandAgent:
    """Runs a shell line in the workspace."""

    name = "cmd"
    traits = Traits(program="sh", version=(), streams=False, resumes=False, prices=True)

    def missing(self, spec: Spec, path: str | None) -> str:
        """Return the first word of the line when it is a bare name that is not to be found."""
        return missing_program(spec.argument, path)

    def call(self, launch: Launch) -> AgentCall:
        """Run the line by the system's shell."""
        env = {"ORCH_USAGE_FILE": str(launch.private / USAGE_FILE)}
        return AgentCall(argv=("sh", "-c", launch.spec.argument), env=env)

    def translator(self) -> Translator | None:
        """A command prints what it likes."""
        return None

    def leftovers(self, launch: Launch, stderr: str) -> Iterator[Said]:  # noqa: ARG002 - it reports by its file alone
        """Read the usage file; what cannot be read is unknown, never an error and never zero."""
        report = _load(launch.private / USAGE_FILE)
        try:
            yield Total(Usage(**{name: report[name] for name in COUNTS if report.get(name) is not None}))
        except ValidationError:
            yield Total(Usage())
        yield Began(session=str(report.get("session") or "")[:200])
        yield Text(str(report.get("message") or "")[:500], final=True)

    def adopt(self, launch: Launch, old: Path) -> bool:  # noqa: ARG002 - it has no session
        """A command has no session that could be taken up."""
        return False


def _load(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            report = parsed(file.read(USAGE_LIMIT).decode("utf-8", "replace"))
    except OSError:
        return {}
    return report if isinstance(report, dict) else {}
