"""One entry of a lane's outbox, made into a submission: what is wrong with it, or a commit of the store with it."""

from __future__ import annotations

import hashlib
import re
import tempfile
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from ...workflows.errors import RefusedError
from ...workflows.model.round.plan import RoundPlan
from ...workflows.model.round.ticket import Cause, Submission
from ..changes import display
from ..faults import explain
from ..git import GitError
from ..protection import matches
from ..snapshots import commit_tree, pin_new
from ..store import Store
from ..trees import Trees
from .copies import Copies
from .incumbent import Laid, StoredTree
from .laying import laid_tree
from .links import link_flaw
from .manifest import Flaw, Manifest, malformed, most_bytes, read_manifest, ticket_id
from .reach import NOWHERE, TooLargeError, UnreadableError, opened_folder, pour
from .scope import Scope, manifest_flaw

MANIFEST, FILES = "manifest.json", "files"

GIT_S = 120
"""Seconds that git may take over the files: a few patterns of a lane's own .gitignore keep it busy for years."""

MAX_PATHS, MAX_SHOWN, MAX_DETAIL = 20, 200, 500
"""Paths that a submission spells out, characters of each, and of a detail: all of it travels in a history."""


@dataclass(frozen=True)
class Taker:
    """Takes entries of one lane's outbox; blocks.

    Attributes:
        store: where commits go.
        run: whose.
        plan: the frozen plan.
        lane: the lane's id.
    """

    store: Store
    run: str
    plan: RoundPlan
    lane: str

    @cached_property
    def names(self) -> re.Pattern[str]:
        """What the entries of this lane are called."""
        return re.compile(f"{re.escape(self.plan.id)}-{re.escape(self.lane)}-[0-9a-f]{{8}}")

    @cached_property
    def scope(self) -> Scope:
        """Who may write what."""
        return Scope.of(self.plan, self.lane)

    def take(self, outbox: int, name: str, *, late: bool) -> Submission | None:
        """Read an entry once and check it; one that is late is only named, and None is no folder (any more).

        Raises HostFaultError, or OSError of the kinds that pass, when this host is in the way.
        """
        with opened_folder(name, within=outbox) as folder:
            if folder == NOWHERE:
                return None
            data = _read(folder, most_bytes(self.plan.max_files))
            digest = hashlib.sha256(b"" if isinstance(data, Flaw) else data).hexdigest()
            submission = Submission(ticket=name, lane=self.lane, digest=digest)
            found = data if isinstance(data, Flaw) else read_manifest(data, max_files=self.plan.max_files)
            if isinstance(found, Flaw):
                return _refused(submission, found)
            submission = submission.model_copy(update=_told(found))
            if late:
                return _refused(submission, Flaw(Cause.LANE_DEADLINE, "it was handed over after the deadline"))
            if name != ticket_id(self.plan.id, self.lane, digest):
                return _refused(submission, Flaw(Cause.HASH_MISMATCH, "the ticket is not that of its manifest"))
            return self._recorded(submission, found, folder)

    def _recorded(self, submission: Submission, manifest: Manifest, folder: int) -> Submission:
        """The submission with its commit, pinned, or refused; what was recorded before is found again."""
        ref = f"refs/orch/{self.run}/ticket-{submission.digest[:16]}"
        with Trees(self.store.git) as trees:
            if pinned := _pinned(trees, ref, submission):
                return pinned
            made = self._tried(trees, manifest, folder)
        if isinstance(made, Flaw):
            return _refused(submission, made)
        tree, size = made
        submission = submission.model_copy(update={"tree": tree, "bytes": size})
        message = f"orch: {submission.ticket} of {self.run}\n\n{submission.model_dump_json()}\n"
        commit = commit_tree(self.store.git, tree, [self.plan.incumbent], message)
        if pin_new(self.store, {ref: commit}):
            return submission.model_copy(update={"commit": commit})
        with Trees(self.store.git) as trees:
            other = malformed("other files have a digest that begins alike")
            return _pinned(trees, ref, submission) or _refused(submission, other)

    def _tried(self, trees: Trees, manifest: Manifest, folder: int) -> tuple[str, int] | Flaw:
        """`_made`, in a private folder; that git cannot read the files is a flaw of theirs, if not of this host."""
        with tempfile.TemporaryDirectory(dir=self.store.path, prefix="index-") as private:
            try:
                return self._made(trees, manifest, folder, Path(private))
            except GitError as error:
                fault = explain(error, "git cannot record the files", hint="")
                if isinstance(fault, RefusedError):
                    return malformed(fault.message)
                raise fault from error

    def _made(self, trees: Trees, manifest: Manifest, folder: int, private: Path) -> tuple[str, int] | Flaw:
        """The tree with the submission's files and their size in bytes, or what is wrong with them."""
        contents, top = private / "contents", private / "tree"
        contents.mkdir()
        top.mkdir()
        with opened_folder(FILES, within=folder) as files:
            copies = Copies(files, contents, self.plan.max_bytes)
            laid = Laid(StoredTree(trees, self.plan.incumbent), manifest, copies.targets)
            if flaw := manifest_flaw(self.scope, laid):
                return flaw
            for entry in manifest.written:
                if flaw := copies.place(entry, top):
                    return flaw
            if flaw := link_flaw(laid):
                return flaw
            copies.link(top)
            patient = replace(self.store, limit_s=GIT_S)
            tree = laid_tree(patient, trees, self.plan.incumbent, laid, top, self._is_own)
            return tree if isinstance(tree, Flaw) else (tree, copies.size)

    def _is_own(self, path: bytes) -> bool:
        return matches(self.scope.own, path)


def _pinned(trees: Trees, ref: str, submission: Submission) -> Submission | None:
    """What was recorded of these files before."""
    commit = trees.commit_of(ref)
    if commit is None:
        return None
    message = trees.content(commit).partition(b"\n\n")[2]
    kept = Submission.model_validate_json(message.splitlines()[-1])
    return kept.model_copy(update={"commit": commit}) if kept.digest == submission.digest else None


def _read(folder: int, most: int) -> bytes | Flaw:
    """The manifest of an entry, whole."""
    parts: list[bytes] = []
    try:
        pour(MANIFEST, folder, most, parts.append)
    except TooLargeError:
        return Flaw(Cause.OVERSIZE, f"a manifest of more than {most} bytes")
    except UnreadableError as error:
        return malformed(f"the manifest {error}")
    return b"".join(parts)


def _told(manifest: Manifest) -> dict[str, object]:
    paths = tuple(display(entry.path)[:MAX_SHOWN] for entry in manifest.entries[:MAX_PATHS])
    return {"paths": paths, "files": len(manifest.entries)}


def _refused(submission: Submission, flaw: Flaw) -> Submission:
    return submission.model_copy(update={"refused": flaw.cause, "detail": flaw.detail[:MAX_DETAIL]})
