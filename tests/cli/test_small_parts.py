"""The small pure parts: durations, nearest words, named tests, text made safe."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.cli.durations import parse_duration, show_duration
from orch.cli.named_tests import named_tests
from orch.cli.nearest import nearest, offer
from orch.cli.talk import clean, one_line, plural


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45", 45), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172_800), ("1.5h", 5400), ("1h 5m", 3900)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "0", "0s", "1h30", "1y", "1e3", "nan", "inf"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0s"),
        (9.94, "9.9s"),
        (12.4, "12s"),
        (59.7, "1m00s"),
        (185, "3m05s"),
        (7200, "2h00m"),
        (273_600, "3d04h"),
    ],
)
def test_durations_are_shown_short(seconds: float, text: str) -> None:
    assert show_duration(seconds) == text


@given(st.floats(min_value=1, max_value=10**6))
def test_shown_durations_can_be_read_again(seconds: float) -> None:
    assert parse_duration(show_duration(seconds)) == pytest.approx(seconds, rel=0.05)


TREE = {"tests", "tests/test_slug.py", "test_top.py", "src", "slug.py", "check.sh", "src/app.spec.ts", "verify"}
TREE |= {"tests/odd [1].py", "src/MathTest.java", "latest.py", "contest"}


@pytest.mark.parametrize(
    ("command", "globs"),
    [
        ("pytest -q tests", ("/tests",)),
        ("pytest tests/test_slug.py::test_digits", ("/tests/test_slug.py",)),
        ("PYTHONPATH=. python -m pytest ./tests/ test_top.py", ("/tests", "/test_top.py")),
        ("sh check.sh && ruff check src", ("/check.sh",)),
        ("vitest run src/app.spec.ts", ("/src/app.spec.ts",)),
        ("javac src/MathTest.java", ("/src/MathTest.java",)),
        ("pytest 'tests/odd [1].py'", (r"/tests/odd\ \[1\].py",)),
        ("pytest --rootdir=tests", ("/tests",)),
        ("./verify", ("/verify",)),
        ("pytest tests; pytest tests", ("/tests",)),
        ("python slug.py latest.py contest", ()),
        ("pytest /tests ../tests", ()),
        ("pytest tests/nothing.py", ()),
        ("echo 'unbalanced", ()),
        ("", ()),
    ],
)
def test_tests_that_a_command_names_are_found(command: str, globs: tuple[str, ...]) -> None:
    assert named_tests(command, TREE.__contains__) == globs


@given(st.text())
def test_any_command_is_safe_to_look_at(command: str) -> None:
    assert all(glob.startswith("/") for glob in named_tests(command, lambda _path: True))


def test_nearest_word_is_offered() -> None:
    assert nearest("protectd", ["protected", "setup"]) == "protected"
    assert nearest("xyz", ["protected", "setup"]) == ""
    assert offer("xyz", ["b", "a"]) == "known: a, b"


def test_foreign_text_cannot_drive_the_terminal() -> None:
    assert clean("a\x1b[2Jb\u202e\x07") == "a\\x1b[2Jb\\x202e\\x07"
    assert one_line("two\n  lines", 6) == "two l…"


def test_counts_are_words() -> None:
    assert [plural(1, "path"), plural(2, "path"), plural(2, "entry")] == ["1 path", "2 paths", "2 entries"]


def test_tests_are_found_by_the_disk(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()

    assert named_tests("pytest tests", lambda path: (tmp_path / path).exists()) == ("/tests",)
