"""The reference is the program's own words, and every command and option has some."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from orch.cli.main import cli
from orch.cli.reference import reference


def commands(group: click.Group, path: str = "orch") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


ALL = dict(commands(cli))


def test_reference_is_what_the_program_says() -> None:
    page = Path(__file__).parents[2] / "docs" / "cli.md"

    assert page.read_text(encoding="utf-8") == reference(), "renew it: python -m orch.cli.reference > docs/cli.md"


@pytest.mark.parametrize("path", ALL)
def test_every_command_and_option_has_help(path: str) -> None:
    command = ALL[path]

    assert command.help
    first = command.help.splitlines()[0]
    assert first[0].isupper()
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.name


@pytest.mark.parametrize("name", ["list", "show", "watch", "ledger", "status", "doctor", "check", "gc"])
def test_every_reading_command_takes_json(name: str) -> None:
    assert any(option.name == "as_json" for option in cli.commands[name].params)
