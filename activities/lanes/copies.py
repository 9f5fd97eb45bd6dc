"""The contents of a submission, copied out of the lane's reach and checked against their hashes, each read once."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from ...workflows.model.round.ticket import Cause
from ..changes import display
from .links import MAX_TARGET
from .manifest import LINK, Entry, Flaw
from .reach import TooLargeError, UnreadableError, pour


@dataclass
class Copies:
    """Contents by their hashes, as a lane wrote them into a folder of its own.

    Attributes:
        source: the descriptor of that folder.
        folder: where the copies go.
        most: bytes that all paths together may hold.
        size: bytes that the paths placed so far hold.
        targets: where the links among them lead.
    """

    source: int
    folder: Path
    most: int
    size: int = 0
    targets: dict[bytes, bytes] = field(default_factory=dict)
    _at: dict[str, Path] = field(default_factory=dict)

    def place(self, entry: Entry, top: Path) -> Flaw | None:
        """Put a path's content where it belongs below `top`; a link's target is only remembered."""
        copy = self._copied(entry)
        if isinstance(copy, Flaw):
            return copy
        self.size += (size := copy.stat().st_size)
        if self.size > self.most:
            return self._oversize()
        if entry.mode == LINK:
            if size > MAX_TARGET:
                return Flaw(Cause.LINK_ESCAPES, f"no link is as long as {display(entry.path)}")
            self.targets[entry.path] = copy.read_bytes()
            return None
        path = top / os.fsdecode(entry.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if copy.parent == self.folder:
            self._at[entry.sha256] = copy.rename(path)
        else:
            shutil.copyfile(copy, path)
        path.chmod(0o755 if entry.mode == "100755" else 0o644)
        return None

    def link(self, top: Path) -> None:
        """Make the links, now that they are known to stay below `top`."""
        for name, target in self.targets.items():
            path = top / os.fsdecode(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(os.fsdecode(target))

    def _copied(self, entry: Entry) -> Path | Flaw:
        path = self._at.get(entry.sha256)
        return path or self._copy(entry)

    def _copy(self, entry: Entry) -> Path | Flaw:
        path, digest = self.folder / entry.sha256, hashlib.sha256()
        try:
            with path.open("wb") as out:

                def keep(data: bytes) -> None:
                    digest.update(data)
                    out.write(data)

                pour(entry.sha256, self.source, self.most - self.size, keep)
        except TooLargeError:
            return self._oversize()
        except UnreadableError as error:
            return Flaw(Cause.HASH_MISMATCH, f"the content of {display(entry.path)} {error}")
        if digest.hexdigest() != entry.sha256:
            return Flaw(Cause.HASH_MISMATCH, f"the content of {display(entry.path)} has another hash")
        self._at[entry.sha256] = path
        return path

    def _oversize(self) -> Flaw:
        return Flaw(Cause.OVERSIZE, f"more than {self.most} bytes")
