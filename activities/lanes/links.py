"""Symbolic links: whether one leads out of the checkout, by itself or through others."""

from __future__ import annotations

from collections.abc import Iterator

from ...workflows.model.round.ticket import Cause
from ..changes import display
from .incumbent import Laid, files_below
from .manifest import LINK, Flaw, Manifest
from .names import is_git

MAX_STEPS = 256
"""Names that are followed from one link, through others: more than people use, few enough for thousands of links."""

MAX_TARGET = 4095
"""Bytes of a link's target: no system takes more."""


def link_flaw(laid: Laid) -> Flaw | None:
    """Why the links that a submission writes, or those that it turns elsewhere, are refused."""
    for path, target in sorted(laid.targets.items()):
        if why := leaving(laid, path, target):
            return Flaw(Cause.LINK_ESCAPES, f"the link {display(path)} -> {display(target)[:100]} {why}")
    if laid.targets or any(laid.was(path, LINK) for path in _touched(laid)):
        before = Laid(laid.tree, Manifest("", "", (), ""), {})
        for path, target in _links(laid):
            if (why := leaving(laid, path, target)) and not leaving(before, path, target):
                return Flaw(Cause.LINK_ESCAPES, f"with it the link {display(path)} {why}")
    return None


def leaving(laid: Laid, path: bytes, target: bytes) -> str:
    """How a link at a path leaves the checkout, in words; empty when it stays inside.

    Followed as a kernel does: each link on the way is taken in its place, and `..` goes up from where that leads.
    """
    here, ahead, steps = path.split(b"/")[:-1], list[bytes](), 0
    onward: bytes | None = target
    while ahead or onward is not None:
        steps += 1
        if steps > MAX_STEPS:
            return "leads too far"
        if onward is not None:
            if not onward or b"\0" in onward:
                return "leads nowhere"
            if onward.startswith(b"/"):
                return "leaves the checkout"
            ahead += reversed(onward.split(b"/"))
        name, onward = ahead.pop(), None
        if name == b"..":
            if not here:
                return "leaves the checkout"
            here.pop()
        elif name not in {b"", b"."}:
            if is_git(name):
                return "leads to git's own files"
            here.append(name)
            onward = laid.link(b"/".join(here))
            del here[len(here) - (onward is not None) :]
    return ""


def _touched(laid: Laid) -> Iterator[bytes]:
    yield from laid.deleted
    yield from laid.written
    yield from laid.folders


def _links(laid: Laid) -> Iterator[tuple[bytes, bytes]]:
    """The links of the tree that stay as they are."""
    for path, entry in files_below(laid.tree, b""):
        if entry.mode == LINK and path not in laid.targets and (target := laid.link(path)) is not None:
            yield path, target
