#!/usr/bin/env python3
"""Write docs/cli.md from the command line itself, or with `--check` say whether it is up to date."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from orch.cli.main import cli

TARGET = Path(__file__).resolve().parents[1] / "docs" / "cli.md"
HEAD = "# Command line\n\nWritten by `make docs` from the commands' own `--help`; do not edit.\n"


def pages(command: click.Command, parent: click.Context | None, name: str) -> Iterator[str]:
    """One section per command, groups before their members."""
    settings = {**command.context_settings, "terminal_width": 100, "max_content_width": 100}
    context = click.Context(command, parent=parent, info_name=name, **settings)
    yield f"\n## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for member in command.list_commands(context):
            found = command.get_command(context, member)
            if found is not None and not found.hidden:
                yield from pages(found, context, member)


def main() -> int:
    """Write the file, or compare; 1 when it is out of date."""
    text = HEAD + "".join(pages(cli, None, "orch"))
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{TARGET} is out of date\nhint: make docs\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
