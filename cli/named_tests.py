"""The tests that a shell line names. Pure; the disk is asked through a function."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable

_GLOB = re.compile(r"([\\*?\[\]!# ])")
_TESTISH = {"test", "tests", "testing", "spec", "specs", "check", "checks", "verify", "verifier", "acceptance"}
_GRADERS = _TESTISH | set("assert bench benchmark ci e2e grade grader lint qa score smoke validate validator".split())  # noqa: SIM905
_TOOLS = {"bin", "hack", "scripts", "script", "tools"}


def _words(command: str) -> list[str]:
    """The words as far as they can be told without a shell; empty when quotes do not match."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.commenters = ""
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return []


def named_tests(command: str, exists: Callable[[str], bool]) -> tuple[str, ...]:
    """The tests that a shell line names and that exist, as anchored globs (`/tests/test_slug.py`), in order.

    A path counts as a test when one of its names does: `tests`, `test_x.py`, `x.spec.ts`, `check.sh`.
    """
    paths = (_path(word) for word in _words(command))
    found = (path for path in paths if path and _testish(path) and exists(path))
    return tuple(dict.fromkeys(map(anchored, found)))


def anchored(path: str) -> str:
    """A path below the top as a glob that means this path alone."""
    return "/" + _GLOB.sub(r"\\\1", path)


def grader(path: str) -> bool:
    """Whether a script that a line runs decides, by its name or its folder's; any other is what is being worked on."""
    *folders, name = path.split("/")
    return bool(_TOOLS & set(folders)) or any(_GRADERS & set(_pieces(part)) for part in (*folders, name))


def _path(word: str) -> str:
    """The path a word may mean, without a pytest node id; empty when it leaves the tree."""
    path = word.partition("::")[0]
    path = path.rpartition("=")[2] if path.startswith("-") else path
    parts = [part for part in path.split("/") if part not in {"", "."}]
    return "" if path.startswith("/") or ".." in parts else "/".join(parts)


def _testish(path: str) -> bool:
    return any(_TESTISH & set(_pieces(name)) for name in path.split("/"))


def _pieces(name: str) -> Iterable[str]:
    return re.split(r"[._-]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
