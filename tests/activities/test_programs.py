"""The first program of a shell line is looked up when, and only when, that can be known beforehand."""

from __future__ import annotations

import pytest

from orch.activities.programs import missing_program


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("no-such-program --flag", "no-such-program"),
        ("A=1 B=2 no-such-program", "no-such-program"),
        ("sh -c 'no-such-program'", ""),
        ("./made-by-setup", ""),
        ("$TOOL run", ""),
        ("test -s file", ""),
        ("if true; then no-such-program; fi", ""),
        ("(no-such-program)", ""),
        ("# only a comment", ""),
        ("'unclosed", ""),
        ("", ""),
    ],
)
def test_only_a_bare_first_word_is_looked_up(line: str, missing: str) -> None:
    assert missing_program(line) == missing


def test_the_given_path_is_searched_and_no_other() -> None:
    assert missing_program("sh -c true", "/nonexistent") == "sh"
