"""A shell line as the programs it starts, as far as that can be told without a shell. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from posixpath import basename, normpath

from ..activities.programs import ASSIGNMENT

_SEPARATOR = re.compile(r"[();<>|&\n]+")
_KEYWORDS = frozenset("! { } if then elif else fi while until do done time exec command builtin nohup eval".split())  # noqa: SIM905
_WRAPPERS = frozenset("env nice ionice timeout stdbuf setsid xvfb-run sudo chronic unbuffer faketime xargs".split())  # noqa: SIM905
_LAUNCHERS = {
    "uv": ("run", "tool"),
    "uvx": (),
    "poetry": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "pipenv": ("run",),
    "bundle": ("exec",),
    "npx": (),
    "pnpx": (),
    "bunx": (),
    "npm": ("exec",),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx"),
    "coverage": ("run",),
    "tox": (),
}
"""Programs that start another one, and the words that make them do so; without such a word always."""

_NUMBERED = re.compile(r"(python|pip|pypy)\d+(\.\d+)*")


@dataclass(frozen=True)
class Started:
    """A program that a line starts.

    Attributes:
        word: the program as it is written.
        args: what follows it.
        folder: the folder below the top that an earlier `cd` of the line left it in; empty for the top.
    """

    word: str
    args: tuple[str, ...]
    folder: str = ""

    @property
    def name(self) -> str:
        """The program's name without folder and version: `python` for `/usr/bin/python3.12`."""
        name = basename(self.word)
        return "python" if (found := _NUMBERED.fullmatch(name)) and found[1] != "pip" else name

    def below(self, path: str) -> str:
        """A path of the line as a path below the top; empty when it leaves the tree or no path can be told."""
        if not path or path.startswith(("/", "~")) or "$" in path:
            return ""
        joined = normpath(f"{self.folder}/{path}" if self.folder else path)
        return "" if joined == "." or joined.startswith("..") else joined


def started(line: str, folder: str = "") -> Iterator[Started]:
    """The programs of a line in order, those of wrappers, launchers and `sh -c` included."""
    here = folder
    for words in _simple_commands(line):
        for one in _unwrapped(Started(words[0], tuple(words[1:]), here)):
            if one.name == "cd" and one.args:
                here = one.below(one.args[0])
            yield one


def _simple_commands(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars="();<>|&\n")
    lexer.commenters, lexer.whitespace, lexer.whitespace_split = "#", " \t\r", True
    words: list[str] = []
    try:
        for word in lexer:
            if _SEPARATOR.fullmatch(word):
                yield from [words] if (words := _bare(words)) else []
                words = []
            else:
                words.append(word)
    except ValueError:  # quotes that do not match
        pass
    yield from [words] if (words := _bare(words)) else []


def _bare(words: list[str]) -> list[str]:
    """Without leading keywords and assignments."""
    while words and (words[0] in _KEYWORDS or ASSIGNMENT.match(words[0]) or words[0].startswith("@")):
        words = [words[0].lstrip("@-+"), *words[1:]] if words[0].startswith("@") and words[0] != "@" else words[1:]
    return words


def _unwrapped(one: Started) -> Iterator[Started]:
    """The program and, where it starts another one, that one, too."""
    yield one
    if one.name in {"sh", "bash", "dash", "zsh"} and "-c" in one.args[:3]:
        yield from started(next(iter(one.args[one.args.index("-c") + 1 :]), ""), one.folder)
    elif one.name in _WRAPPERS or _launches(one):
        rest = list(one.args)
        while rest and (rest[0].startswith("-") or ASSIGNMENT.match(rest[0]) or _is_option(one, rest[0])):
            rest = rest[1:]
        if rest:
            yield from _unwrapped(replace(one, word=rest[0], args=tuple(rest[1:])))
    elif one.name == "python" and "-m" in one.args:
        rest = list(one.args[one.args.index("-m") + 1 :])
        if rest:
            yield from _unwrapped(replace(one, word=rest[0], args=tuple(rest[1:])))


def _launches(one: Started) -> bool:
    verbs = _LAUNCHERS.get(one.name)
    return verbs is not None and (not verbs or (bool(one.args) and one.args[0] in verbs))


def _is_option(one: Started, word: str) -> bool:
    return word in _LAUNCHERS.get(one.name, ()) or bool(re.fullmatch(r"\d+(\.\d+)?[smhd]?", word))
