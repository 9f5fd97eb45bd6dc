"""Python environments that were copied: their programs and paths name the copy, wherever it lies."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

MARK = "pyvenv.cfg"
"""The file at the top of a virtual environment."""

MAX_BYTES = 1 << 20
"""No script that an installer writes is larger."""

_HERE = b"""#!/bin/sh
'''exec' "$(dirname -- "$(realpath -- "$0")")"/'%s' "$0" "$@"
' '''
"""
"""A shebang that finds the interpreter beside the program; for Python all of it is a string."""

_ACTIVE = b'VIRTUAL_ENV=$(cd -- "$(dirname -- "${BASH_SOURCE:-%s/bin/activate}")/.." && pwd)\n'


def resettle(environment: Path, old: Path, top: Path, at: Path) -> None:
    """Make a copied environment its own.

    Programs that were started by the original's interpreter, `activate` (found from the working directory where a shell
    does not say what it reads) and `.pth` lines that name a place in the original tree.

    Args:
        environment: the copy; nothing happens when it is none.
        old: the original environment.
        top: the tree that holds the original.
        at: where the environment lies, relative to the tree.
    """
    if not (environment / MARK).is_file():
        return
    interpreter = re.compile(rb"#!" + re.escape(os.fsencode(old / "bin")) + rb"/(python[\w.]*)[^\n]*\n")
    for program in (environment / "bin").iterdir():
        _rewrite(program, lambda text: interpreter.sub(lambda found: _HERE % found[1], text, count=1))
    named = re.compile(rb"^VIRTUAL_ENV=[^\n]*\n", re.MULTILINE)
    active = _ACTIVE % os.fsencode(at)
    _rewrite(environment / "bin" / "activate", lambda text: named.sub(lambda _: active, text, count=1))
    back = b"/".join([b".."] * (len(at.parts) + 3))
    place = re.compile(rb"^" + re.escape(os.fsencode(top)) + rb"(?=/|$)", re.MULTILINE)
    for file in environment.glob("lib/python*/site-packages/*.pth"):
        _rewrite(file, lambda text: place.sub(back, text))


def _rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_BYTES:
        return
    text = path.read_bytes()
    changed = change(text)
    if changed != text:
        known = path.stat()
        path.write_bytes(changed)
        os.utime(path, ns=(known.st_atime_ns, known.st_mtime_ns))
