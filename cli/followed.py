"""The shell lines behind a shell line: of scripts, of make's targets, of the scripts of a package.json. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from posixpath import join

from .shell_line import Started

Read = Callable[[str], str | None]
"""The text of a file below the top; empty for a folder and for what is no text, None where nothing is."""

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", ".", "source"})
INTERPRETERS = SHELLS | {"python", "node", "nodejs", "ruby", "perl", "php", "deno", "bun", "tsx", "ts-node"}
"""Programs whose first argument that is no option is a script."""

MAX_LINES = 400
"""Lines of a script that are looked at."""

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_INCLUDE = re.compile(r"^-?s?include\s+(.+)$", re.MULTILINE)
_RULE = re.compile(r"^([^\s#:=][^:=#]*):(?![=:])([^=;#]*)(?:;(.*))?$")
_PACKAGE_TOOLS = frozenset({"npm", "yarn", "pnpm", "bun"})


@dataclass(frozen=True)
class Behind:
    """What stands behind a program of a line.

    Attributes:
        files: files below the top that say what to run, besides those every tool of its kind reads.
        script: the script it runs.
        lines: the shell lines it runs.
        folder: the folder below the top in which they run.
    """

    files: tuple[str, ...] = ()
    script: str = ""
    lines: tuple[str, ...] = ()
    folder: str = ""


def behind(one: Started, read: Read) -> Behind:
    """What a program of a line runs of the tree; empty when it runs nothing of it."""
    if one.name in {"make", "gmake"}:
        return _make(one, read)
    if one.name in _PACKAGE_TOOLS:
        return _package(one, read)
    script = one.below(_script(one))
    text = read(script) if script else None
    if text is None:
        return Behind()
    shell = one.name in SHELLS or (bool(re.match(r"#!\S*(?:/env )?\S*sh\b", text)) and "/" in one.word)
    return Behind((), script, tuple(text.splitlines()[:MAX_LINES]) if shell else (), one.folder)


def _script(one: Started) -> str:
    """The word that names the program's text: itself, or an interpreter's first argument."""
    if one.name not in INTERPRETERS:
        return one.word if "/" in one.word else ""
    if {"-c", "-m", "-e"} & set(one.args[:3]):
        return ""
    return next((arg for arg in one.args if not arg.startswith("-")), "")


def _package(one: Started, read: Read) -> Behind:
    verbs = [arg for arg in one.args if not arg.startswith("-")]
    named = verbs[1:2] if verbs[:1] in (["run"], ["run-script"]) else verbs[:1]
    name = {"t": "test", "tst": "test"}.get(named[0], named[0]) if named else ""
    try:
        scripts = json.loads(read(join(one.folder, "package.json")) or "{}")["scripts"]
        lines = tuple(str(scripts[key]) for key in (f"pre{name}", name, f"post{name}") if key in scripts)
    except (ValueError, KeyError, TypeError):
        lines = ()
    return Behind(lines=lines, folder=one.folder)


def _make(one: Started, read: Read) -> Behind:
    options, goals, folder = _make_arguments(one)
    named = options or next(([name] for name in _MAKEFILES if read(join(folder, name)) is not None), [])
    files: dict[str, str] = {}
    for name in named:
        _read_makefile(join(folder, name), folder, read, files)
    text = "\n".join(files.values())
    others = [name for name in files if name.rpartition("/")[2] not in _MAKEFILES and not name.endswith(".mk")]
    return Behind(tuple(others), "", tuple(_recipes(text, goals)), folder)


def _make_arguments(one: Started) -> tuple[list[str], list[str], str]:
    files, goals, folder = [], [], one.folder
    args = iter(one.args)
    for arg in args:
        if arg in {"-f", "--file", "--makefile"}:
            files.append(next(args, ""))
        elif arg in {"-C", "--directory"}:
            folder = one.below(next(args, ""))
        elif not arg.startswith("-") and "=" not in arg:
            goals.append(arg)
    return files, goals, folder


def _read_makefile(name: str, folder: str, read: Read, files: dict[str, str]) -> None:
    """Add a makefile and what it includes; names with expansions are the shell's business."""
    text = read(name)
    if name in files or text is None or len(files) >= 50:
        return
    files[name] = text
    for words in _INCLUDE.findall(text):
        for word in words.split():
            if "$" not in word:
                _read_makefile(join(folder, word), folder, read, files)


def _recipes(text: str, goals: list[str]) -> Iterator[str]:
    """The recipe lines of the goals (default: the first target) and of what they need."""
    rules: dict[str, tuple[list[str], list[list[str]]]] = {}
    current: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("\t"):
            current.append(line.strip().lstrip("@-+"))
        elif match := _RULE.match(line):
            current = [match[3].strip()] if match[3] else []
            for target in match[1].split():
                needs, recipes = rules.setdefault(target, ([], []))
                needs += match[2].split()
                recipes.append(current)  # filled by the lines that follow
    waiting = goals or [target for target in rules if not target.startswith(".")][:1]
    seen: set[str] = set()
    while waiting:
        target = waiting.pop(0)
        if target in rules and target not in seen:
            seen.add(target)
            waiting += rules[target][0]
            yield from (line for recipe in rules[target][1] for line in recipe)
