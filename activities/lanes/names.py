"""Paths that no lane may write: none at all, or another spelling of what git keeps for itself.

After `verify_path` of git's read-cache.c, and `is_ntfs_dotgit`, `is_ntfs_dot_generic` (path.c), `is_hfs_dot_generic`
(utf8.c): a disk may fold case, drop code points, or have short names, and candidates are checked out on any disk.
"""

from __future__ import annotations

import re

from ...workflows.model.round.ticket import Cause
from ..changes import display
from .manifest import LINK, Entry, Flaw, malformed

MAX_NAME, MAX_PATH, MAX_DEPTH = 255, 1000, 50
"""Bytes of a name, bytes of a path, names in a path: more than people use, less than disks and recursion hold."""

_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
"""What HFS+ leaves out when it compares names."""

_TAIL = r"[ .]*(?::.*)?"
"""What NTFS drops from the end of a name: spaces, dots, a stream."""


def _spellings(name: str, hashed: str) -> re.Pattern[str]:
    """The names under which NTFS finds `.name`: itself, its short names, and those made of its hash."""
    short = "|".join(f"{hashed[:kept]}~[1-9][0-9]{{{6 - kept}}}" for kept in range(7))
    return re.compile(rf"(?:\.{name}|{name[:6]}~[1-4]|{short}){_TAIL}", re.IGNORECASE | re.DOTALL)


_GIT = re.compile(rf"(?:\.git|git~1){_TAIL}", re.IGNORECASE | re.DOTALL)
_MODULES = _spellings("gitmodules", "gi7eba")
_RULES = {
    ".gitignore": _spellings("gitignore", "gi250a"),
    ".gitattributes": _spellings("gitattributes", "gi7d29"),
}


def path_flaw(entry: Entry) -> Flaw | None:
    """Why a path cannot be a lane's, whoever it belongs to."""
    path, parts = entry.path, entry.path.split(b"/")
    if len(path) > MAX_PATH or len(parts) > MAX_DEPTH or max(map(len, parts)) > MAX_NAME:
        return malformed(f"the path is too long: {display(path)[:80]}…")
    if b"\0" in path or any(part in {b"", b".", b".."} for part in parts):
        return malformed(f"no path in a checkout: {display(path)}")
    if parts[0].lower() == b".orch":
        return Flaw(Cause.PROTECTED, f"{display(path)} belongs to the orchestrator")
    return next((flaw for part in parts if (flaw := _name_flaw(part, entry))), None)


def is_git(name: bytes) -> bool:
    """Whether a disk may take a name for `.git`."""
    return any(_GIT.fullmatch(spelling) for spelling in _read(name))


def _name_flaw(name: bytes, entry: Entry) -> Flaw | None:
    for spelling in _read(name):
        if _GIT.fullmatch(spelling):
            return Flaw(Cause.GIT_PATH, f"git keeps {display(entry.path)} for itself")
        if _MODULES.fullmatch(spelling):
            return Flaw(Cause.SUBMODULE, f"{display(entry.path)} tells of submodules")
        for plain, pattern in _RULES.items():
            if pattern.fullmatch(spelling) and (name != plain.encode() or entry.mode == LINK):
                return Flaw(Cause.GIT_PATH, f"{display(entry.path)} can be taken for {plain}")
    return None


def _read(name: bytes) -> list[str]:
    """The names that disks may make of one; a backslash parts names on some."""
    text = name.decode("utf-8", "surrogateescape")
    plain = text.translate(_IGNORED)
    return [part for spelling in {text, plain} for part in spelling.split("\\")]
