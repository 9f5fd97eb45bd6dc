"""What a lane says that it hands over, read with suspicion: there is one way to write it, and no other is read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...workflows.model.round.ticket import Cause
from ..changes import GITLINK, NOTHING

LINK = "120000"
MODES = frozenset({"100644", "100755", LINK})
"""What a lane may write: files and symbolic links."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Flaw(NamedTuple):
    """Why a submission is refused: the cause, and the fact behind it in printable words."""

    cause: Cause
    detail: str


class Entry(NamedTuple):
    """One path that differs from the incumbent.

    Attributes:
        path: as bytes.
        mode: octal, as git writes it; `NOTHING` when the path is gone.
        sha256: of the content, or of a link's target; empty when the path is gone.
    """

    path: bytes
    mode: str
    sha256: str

    @property
    def deleted(self) -> bool:
        """Whether the path is gone."""
        return self.mode == NOTHING


@dataclass(frozen=True)
class Manifest:
    """All that a lane hands over at once, sorted by path.

    Attributes:
        round: the round it is meant for.
        lane: the lane that it says it is from.
        entries: the paths.
        digest: SHA-256 of its canonical JSON; the same files have the same one.
    """

    round: str
    lane: str
    entries: tuple[Entry, ...]
    digest: str

    @property
    def written(self) -> tuple[Entry, ...]:
        """The paths that are not gone."""
        return tuple(entry for entry in self.entries if not entry.deleted)


def ticket_id(round_id: str, lane: str, digest: str) -> str:
    """The ticket of a manifest."""
    return f"{round_id}-{lane}-{digest[:8]}"


def most_bytes(max_files: int) -> int:
    """How long a manifest of so many files may be."""
    return 65_536 + 2048 * max_files


def canonical(round_id: str, lane: str, entries: Iterable[Entry]) -> bytes:
    """A manifest's one form: sorted, without spaces, ASCII; odd names as `surrogateescape` writes them."""
    files = [_document(entry) for entry in sorted(entries)]
    return json.dumps({"round": round_id, "lane": lane, "files": files}, sort_keys=True, separators=(",", ":")).encode()


def read_manifest(data: bytes, *, max_files: int) -> Manifest | Flaw:
    """Read a manifest; one that is not in canonical form, or holds anything but what it must, is malformed."""
    try:
        document = json.loads(data)
        files, round_id, lane = document["files"], document["round"], document["lane"]
        if len(files) > max_files:
            return Flaw(Cause.OVERSIZE, f"{len(files)} files, of at most {max_files}")
        entries = tuple(map(_entry, files))
        if canonical(round_id, lane, entries) != data or len({entry.path for entry in entries}) < len(entries):
            return malformed("the manifest is not in canonical form")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return malformed(f"the manifest cannot be read: {type(error).__name__}")
    flaws = (flaw for entry in entries if (flaw := _mode_flaw(entry)))
    return next(flaws, None) or Manifest(str(round_id), str(lane), entries, hashlib.sha256(data).hexdigest())


def malformed(detail: str) -> Flaw:
    """The flaw of what is not as it must be."""
    return Flaw(Cause.MALFORMED, detail)


def _mode_flaw(entry: Entry) -> Flaw | None:
    if entry.mode == GITLINK:
        return Flaw(Cause.SUBMODULE, "a submodule is no file")
    return None if entry.mode in MODES or entry.deleted else malformed(f"no lane writes files of mode {entry.mode}")


def _entry(document: dict[str, Any]) -> Entry:
    """Read a path's entry; ValueError and its like for anything else. That nothing is beside it, the caller sees."""
    path = document["path"].encode("utf-8", "surrogateescape")
    if "deleted" in document:
        return Entry(path, NOTHING, "")
    mode, sha256 = document["mode"], document["sha256"]
    if not (re.fullmatch(r"[0-7]{5,6}", mode, re.ASCII) and _SHA256.fullmatch(sha256)) or mode == NOTHING:
        raise ValueError("no mode or hash")
    return Entry(path, mode, sha256)


def _document(entry: Entry) -> dict[str, Any]:
    path = entry.path.decode("utf-8", "surrogateescape")
    return {"path": path, "deleted": True} if entry.deleted else {
        "path": path, "mode": entry.mode, "sha256": entry.sha256,
    }  # fmt: skip
