"""The command line: the group of all commands, and the process's entry and exit."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

import click

from .. import __version__
from . import (
    agents,
    check,
    codec_server,
    diff,
    doctor,
    engine,
    gc,
    keys,
    logs,
    look,
    pilot,
    promote,
    report,
    schedule,
    shell,
    start,
    steer,
    watch,
    worker,
)
from .boundary import Boundary
from .exits import ExitStatus

COMMANDS = (
    start.start,
    check.check,
    look.list_,
    look.show,
    watch.watch,
    logs.logs,
    diff.diff,
    report.report,
    shell.shell,
    look.ledger,
    steer.approve,
    steer.reject,
    steer.note,
    steer.extend,
    steer.cancel,
    pilot.pilot,
    promote.promote,
    promote.restore,
    schedule.schedule,
    engine.up,
    engine.down,
    engine.status,
    worker.worker,
    keys.keys,
    codec_server.codec_server,
    agents.agents,
    doctor.doctor,
    gc.gc,
)
"""All commands, in the order of the reference."""


@click.group(cls=Boundary, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "-V", "--version", prog_name="orch")
def cli() -> None:
    """Run many coding agents at one goal, bring back one verified change.

    Exit status: 0 succeeded, 1 ended without success, 2 refused input, 3 engine unreachable, 70 a bug,
    130 interrupted (the run goes on).
    """


for command in COMMANDS:
    cli.add_command(command)


def main() -> NoReturn:
    """Run the command line and end the process without finalising the interpreter.

    Finalising races the Temporal client's threads and can abort with another status (sdk-python#300).
    """
    status: int | str | None = ExitStatus.BUG
    try:
        cli.main(prog_name="orch")
    except SystemExit as leaving:
        status = leaving.code
    except KeyboardInterrupt:
        status = ExitStatus.INTERRUPTED
    finally:
        _leave(status if isinstance(status, int) else ExitStatus.SUCCEEDED if status is None else ExitStatus.BUG)


def _leave(status: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader has gone; the status still counts
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
