"""Random edit scripts, and the tree they start from: small, but of everything that git treats in a way of its own."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from .editor import Script

ODD = (
    b"tab\there", b"new\nline.txt", b'quo"te', b":(top)x", b"gl*b[a]?", b"back\\slash", b"\xff\xfe.txt", b"-dash",
    "ünï".encode(), b"sp ace ", b".wh.name", b"u\xcc\x88",
)  # fmt: skip
"""Names that are data and no syntax."""

MODULES = {b"src/pkg%d/mod%d.py" % (p, m): b"value = %d\n" % (10 * p + m) * (m + 1) for p in range(3) for m in range(4)}

FILES = MODULES | {
    b"README.md": b"read me\n",
    b"run.sh": b"#!/bin/sh\necho run\n",
    b"empty": b"",
    b"docs/index.md": b"index\n",
    b"docs/deep/er/page.md": b"page\n",
    b"docs/win.crlf": b"one\r\ntwo\r\n",
    b"win.txt": b"committed\r\nbefore the attributes\r\n",
    b"shout.up": b"loud\n",
    b"version.id": b"$Id$\n",
    b"data.bin": bytes(range(256)),
    b"old.log": b"tracked, though ignored\n",
    b"build/kept.o": b"tracked, though ignored\n",
    b"src/.gitignore": b"*.tmp\n!keep.tmp\n",
    b"src/pkg1/.gitattributes": b"mod3.py text eol=crlf\n",
    b".gitignore": b"*.log\nbuild/\n/cache\n",
} | dict.fromkeys(ODD[:8], b"odd\n")  # fmt: skip
"""What is committed first, with their contents as they lie in the working tree."""

EXECUTABLE = b"run.sh"

LINKS = {b"link.md": b"docs/index.md", b"shortcut": b"docs/deep", b"dangling": b"/nowhere/at/all"}

ATTRIBUTES = b"*.crlf text eol=crlf\n*.up filter=up\n*.id ident\n*.bin -text\nwin.txt text\n"
"""The .gitattributes of a second step: files that came before them are not as they say, and stay so until touched."""

MACRO = b"[attr]loud filter=up\n"
"""What the .gitattributes at the very top alone can define."""

FILTER = ("filter.up.clean", "tr A-Z a-z")
"""Without a way back: a process for each checked-out file would cost more than all the rest."""

FOLDERS = (b"src", b"src/pkg0", b"src/pkg1", b"src/pkg2", b"docs", b"docs/deep", b"docs/deep/er", b"build")
NEW_FOLDERS = (b"new", b"new/deep", b"cache", b"src/gen", b"docs/new", b"build/x", b"src/pkg0/sub")
NEW_FILES = (
    b"added.py", b"src/added.py", b"src/x.tmp", b"src/keep.tmp", b"x.log", b"added.up", b"added.id", b"added.crlf",
    b"new/file.txt", b"new/deep/file.log", b"cache/one", b"build/x/two.o", b"src/pkg0/sub/.hidden", b"new/win.txt",
    *ODD, *(b"new/" + name for name in ODD),
)  # fmt: skip
RULES = (b".gitignore", b"src/.gitignore", b"docs/.gitignore", b"new/.gitignore")
ATTRIBUTE_FILES = (b".gitattributes", b"src/.gitattributes", b"src/pkg1/.gitattributes", b"new/.gitattributes")

IGNORES = (
    b"*.log\n",
    b"*.py\n",
    b"*\n",
    b"/new/\n",
    b"!*.log\n",
    b"pkg0/\n!pkg0/mod1.py\n",
    b"*.md\n",
    b"\n",
    b"new\n",
)
CONVERSIONS = (
    b"* text=auto\n", b"* text eol=lf\n", b"*.txt -text\n", b"*.py text eol=crlf\n", b"* -filter -ident\n",
    b"*.py filter=up\n", b"*.md ident\n", b"* binary\n", b"*.txt loud\n", b"*.up !filter\n", b"*.py text\n", b"",
)  # fmt: skip
CONTENTS = (
    b"", b"new\n", b"a\r\nb\r\n", b"mixed\r\nends\n", b"$Id: 0123 $\n$Id$\n", b"LOUD\n", b"\0binary\r\n",
    b"value = 10\n", b"no newline", b"x" * 5000, b"\xef\xbb\xbfbom\r\n",
)  # fmt: skip
TARGETS = (
    b"README.md",
    b"docs",
    b"src/pkg0",
    b"/nowhere/at/all",
    b"mod0.py",
    b".",
    b"new",
    b"odd\ntarget",
    b".gitignore",
)
MARKS = (("opaque", b"y"), ("redirect", b"docs"), ("redirect", b"/src/pkg0"), ("whiteout", b"y"), ("metacopy", b""))
MODES = (0o644, 0o755, 0o600, 0o444, 0o711, 0o654)

PLAIN_FILES = (*FILES, *LINKS, b".gitattributes")

GIT = (
    (b"add", b"-A"),
    (b"add", b"-f", b"."),
    (b"commit", b"-q", b"-a", b"-m", b"mine"),
    (b"mv", b"README.md", b"moved.md"),
    (b"rm", b"-q", b"-r", b"-f", b"docs"),
    (b"rm", b"-q", b"--cached", b"run.sh"),
    (b"stash", b"-q"),
    (b"stash", b"-q", b"-u"),
    (b"stash", b"pop", b"-q"),
    (b"checkout", b"-q", b"-b", b"branch"),
    (b"checkout", b"-q", b"HEAD", b"--", b"."),
    (b"update-index", b"--skip-worktree", b"README.md"),
    (b"update-index", b"--assume-unchanged", b"run.sh"),
    (b"clean", b"-q", b"-f", b"-d", b"-x"),
    (b"reset", b"-q", b"--hard"),
)


_Edit = tuple[Any, ...]
_Kind = Callable[[random.Random], _Edit]


def make_script(number: int) -> Script:
    """The script of a number: one to ten edits, attributes among them."""
    return _script(random.Random(number), [*_KINDS, *[_attributes] * 3])


def make_git_script(number: int) -> Script:
    """The script of a number: edits and git commands, of which many read the agent's own index.

    That index is as young as its files, so what git finds modified under new attributes would depend on the second.
    """
    script = _script(random.Random(-number), [*_KINDS, *[_git] * 25])
    return tuple(edit for edit in script if not set(edit) & set(ATTRIBUTE_FILES))


def _script(chance: random.Random, kinds: list[_Kind]) -> Script:
    count = chance.choice((1, 1, 2, 3, 4, 5, 6, 8, 10))
    return tuple(chance.choice(kinds)(chance) for _ in range(count))


def smaller(script: Script) -> list[Script]:
    """The scripts with one edit less."""
    return [(*script[:n], *script[n + 1 :]) for n in range(len(script))] if len(script) > 1 else []


def _file(chance: random.Random) -> bytes:
    """Mostly a tracked file, else a place for a new one."""
    return chance.choice(PLAIN_FILES if chance.random() < 0.65 else NEW_FILES)


def _place(chance: random.Random) -> bytes:
    """A folder, there or not."""
    return chance.choice(FOLDERS if chance.random() < 0.65 else NEW_FOLDERS)


def _any(chance: random.Random) -> bytes:
    return (_file if chance.random() < 0.6 else _place)(chance)


def _content(chance: random.Random) -> bytes:
    return chance.choice(CONTENTS)


def _rules(chance: random.Random) -> _Edit:
    """Add, change or remove a .gitignore."""
    name = chance.choice(RULES)
    return ("delete", name) if chance.random() < 0.25 else ("write", name, chance.choice(IGNORES))


def _attributes(chance: random.Random) -> _Edit:
    """Add, change or remove a .gitattributes."""
    name = chance.choice(ATTRIBUTE_FILES)
    return ("delete", name) if chance.random() < 0.25 else ("write", name, chance.choice(CONVERSIONS))


def _git(chance: random.Random) -> _Edit:
    return ("git", *chance.choice(GIT))


def _folder(chance: random.Random) -> _Edit:
    """A folder replaced by a new one, often with some of the names that the old one had."""
    name = _place(chance)
    old = [file[len(name) + 1 :] for file in FILES if file.startswith(name + b"/")]
    names = chance.sample(old, min(len(old), chance.randrange(3))) + chance.sample(
        (b"fresh.py", b"f.log"), chance.randrange(3)
    )
    return ("folder", name, tuple((inner, _content(chance)) for inner in names))


_WEIGHTED: tuple[tuple[int, _Kind], ...] = (
    (6, lambda c: ("write", _file(c), _content(c))),
    (2, lambda c: ("append", _file(c), _content(c) or b"more\n")),  # for an overlay, opening for writing is touching
    (3, lambda c: ("same_size", c.choice(PLAIN_FILES))),
    (1, lambda c: ("rewrite", c.choice(PLAIN_FILES))),
    (1, lambda c: ("touch", c.choice(PLAIN_FILES))),
    (3, lambda c: ("chmod", _file(c), c.choice(MODES))),
    (4, lambda c: ("delete", _file(c))),
    (2, lambda c: ("delete", _place(c))),
    (4, lambda c: ("move", _file(c), _file(c))),
    (3, lambda c: ("move", _place(c), _place(c))),
    (2, lambda c: ("move", _any(c), _any(c))),
    (2, lambda c: ("exchange", _any(c), _any(c))),
    (2, lambda c: ("copy", _any(c), _any(c))),
    (3, lambda c: ("symlink", _any(c), c.choice(TARGETS))),
    (2, lambda c: ("hardlink", _file(c), _file(c))),
    (3, lambda c: ("replace", _any(c), _content(c))),
    (4, _folder),
    (1, lambda c: ("special", _any(c), c.choice(("fifo", "socket")))),
    (2, lambda c: ("nested", _place(c), c.random() < 0.5)),
    (1, lambda c: ("mark", _any(c), *c.choice(MARKS))),
    (3, _rules),
)
_KINDS = [kind for weight, kind in _WEIGHTED for _ in range(weight)]
