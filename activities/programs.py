"""Which program a shell line needs first, and whether this host has it."""

from __future__ import annotations

import re
import shlex
import shutil

WORDS_OF_THE_SHELL = frozenset(
    """
    . : ! [ [[ { ( alias bg break case cd command continue echo eval exec exit export false fg for function getopts
    hash if jobs kill let local printf pwd read readonly return select set shift source test time times trap true type
    ulimit umask unalias unset until wait while
    """.split()  # noqa: SIM905 - a list of thirty quoted words is harder to read
)
"""Builtins and keywords of POSIX sh and bash: nothing to look up."""

ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def missing_program(line: str, path: str | None = None) -> str:
    """Return the first word of a shell line when it is a bare program name that `path` does not have, else "".

    A word with a slash may be made by set-up or by an agent; a word with an expansion is the shell's business.
    """
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return ""
    word = next((word for word in words if not ASSIGNMENT.match(word)), "")
    if not re.fullmatch(r"[A-Za-z0-9_.+-]+", word) or word in WORDS_OF_THE_SHELL:
        return ""
    return "" if shutil.which(word, path=path) else word
