"""Overlay workspaces: a shared read-only checkout below, and in each only what was written there.

They are mounted in private namespaces of the processes that run in them, by `enter.py`, and nowhere else.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ...workflows.errors import HostFaultError, RefusedError
from .. import processes
from ..faults import explain
from ..git import Git, GitError
from ..store import Store
from . import BARE, RECORD, TREE, Layers, enter, note_provider
from .bases import USED, bases_of, is_made, layer_lock, name_of, plain_base, ready_at, tree_of
from .gitdir import give_own
from .removal import discard, sweep
from .upper import redirected

UPPER, WORK, BASE, BASES = "upper", "work", "base", "bases"
"""The parts of a workspace, as `enter.py` describes them."""

PRISTINE = "pristine"
"""What `file_facts` says of the files that a measuring copy was made with, beside its upper directory."""

FLATTEN = """for old; do
dir=${old%.orch-moved} new=${old%.orch-moved}.orch-new old=${old%.orch-moved}.orch-moved
[ -e "$old" ] || mv -T "$dir" "$old" || exit
[ -e "$dir" ] || { rm -rf "$new" && cp -aT "$old" "$new" && mv -T "$new" "$dir"; } || exit
rm -rf "$old" || exit
done"""
"""Makes copies of renamed folders. It may be killed anywhere: the renamed one goes last, and is found again."""

FLATTEN_S = 600.0


class OverlayProvider:
    """Opening takes about a millisecond whatever the size of the repository; only what changes takes room."""

    name = "overlay"

    def open(self, store: Store, folder: Path, commit: str, layers: Layers = BARE) -> Path:
        """Lay a new upper directory over the commit's checkout; the first one of a commit waits for the checkout."""
        name = plain_base(store, commit)
        time.sleep(max(0.0, min(1.0, ready_at(store, name) - time.time())))
        return self.lay(store, folder, [*layers.above, name, *layers.below], commit)

    def copy(self, store: Store, folder: Path, commit: str, layers: Layers = BARE) -> Path:
        """A copy for measuring: over the checkout of the commit it started from, where that is there already."""
        start = None if is_made(store, name_of(store, commit)) else _start_of(store, commit)
        if start is None:
            return self.lay(store, folder, [*layers.above, plain_base(store, commit), *layers.below], commit)
        tree = self.lay(store, folder, [*layers.above, name_of(store, start), *layers.below], commit)
        git_dir = {"GIT_DIR": str(tree / ".git"), "GIT_WORK_TREE": str(tree)}
        git = Git(tree, git_dir, self.entering(folder, ()))
        try:
            git.run("read-tree", "-m", "-u", tree_of(store, start), tree_of(store, commit))
        except GitError as error:
            self.close(store, folder)
            raise explain(error, "the commit cannot be checked out", hint="see what git says") from error
        changed = store.changed(tree_of(store, start), tree_of(store, commit))
        facts = file_facts(folder / UPPER, changed).items()
        (folder / PRISTINE).write_bytes(b"".join(f"{fact} ".encode() + name + b"\0" for name, fact in facts))
        return tree

    def lay(self, store: Store, folder: Path, names: Sequence[str], commit: str) -> Path:
        """Make a workspace over layers, the topmost first."""
        self.close(store, folder)
        note_provider(folder, self.name)
        (folder / UPPER / ".git").mkdir(parents=True)
        (folder / UPPER / ".git" / "HEAD").write_text(f"{commit}\n")
        if all(_head(bases_of(store) / name) != commit for name in names):
            give_own(store, folder / UPPER / ".git" / "objects", commit)
        (folder / WORK).mkdir()
        (folder / TREE).mkdir()
        (folder / BASES).symlink_to(bases_of(store))
        for name in names:
            with layer_lock(store, name, shared=True):
                with (folder / BASE).open("a") as file:
                    file.write(f"{name}\n")
                if not is_made(store, name):
                    raise HostFaultError("a layer of the workspace was removed meanwhile", hint="it is made anew")
                os.utime(bases_of(store) / name / USED)
        return folder / TREE

    def close(self, store: Store, folder: Path) -> None:  # noqa: ARG002 - nothing of it lies in the store
        """Rename away, then delete; nothing is followed out of the folder."""
        if folder.is_symlink():
            folder.unlink()
        for name in (TREE, UPPER, WORK):
            discard(folder / name, folder)
        for name in (BASES, BASE, PRISTINE, RECORD):
            (folder / name).unlink(missing_ok=True)
        sweep(folder)

    def writable(self, store: Store, folder: Path) -> tuple[Path, ...]:  # noqa: ARG002 - all of it lies in the tree
        """The other paths at which the tree is mounted."""
        layers = [folder / BASES / name for name in layer_names(folder)]
        return tuple((layer / TREE).resolve() for layer in layers if is_overlay(layer))

    def entering(self, folder: Path, argv: tuple[str, ...], *, view: bool = False) -> tuple[str, ...]:
        """The command, so that the workspace is mounted for it."""
        return (sys.executable, "-I", "-S", enter.__file__, str(folder), "view" if view else "work", *argv)

    def written(self, folder: Path) -> Path:
        """The upper directory."""
        return folder / UPPER

    def lower(self, folder: Path) -> list[Path]:
        """The files of the layers below, the topmost first."""
        return [Path(enter.files_of(str(folder / BASES / name))) for name in layer_names(folder)]

    def settle(self, folder: Path) -> None:
        """Make the upper directory say all that changed: folders that were renamed as a whole become copies."""
        renamed = redirected(folder / UPPER)
        if not renamed:
            return
        names = [os.fsdecode(path.relative_to(folder / UPPER)) for path in renamed]
        argv = self.entering(folder, ("sh", "-c", FLATTEN, "sh", *(f"./{name}" for name in names)))
        command = processes.Command(argv, folder / TREE, processes.scrubbed_environment({}))
        done = processes.run(command, timeout_s=FLATTEN_S)
        if not done.exit.ok:
            said = done.stderr.decode(errors="replace").strip() or str(done.exit)
            kind = HostFaultError if not_entered(done.stderr.decode(errors="replace")) else RefusedError
            raise kind(f"renamed folders of the workspace cannot be read: {said}", hint="see what is in the way")


def file_facts(upper: Path, names: Iterable[bytes]) -> dict[bytes, str]:
    """What tells each file that lies in an upper directory from any other one put there: times, inode and size."""
    facts = {}
    for name in names:
        with suppress(OSError):
            found = os.lstat(os.fsencode(upper) + b"/" + name)
            facts[name] = f"{found.st_ctime_ns}:{found.st_mtime_ns}:{found.st_ino}:{found.st_size}"
    return facts


def pristine(folder: Path) -> dict[bytes, str]:
    """What `file_facts` said when the copy in this folder was made."""
    kept = folder / PRISTINE
    records = kept.read_bytes().split(b"\0")[:-1] if kept.exists() else []
    return {name: fact.decode() for fact, _, name in (record.partition(b" ") for record in records)}


def not_entered(stderr: str) -> str:
    """Why a command never ran, when nothing but the complaint of `enter.py` was printed; else empty."""
    line, newline, rest = stderr.partition("\n")
    return line.removeprefix(enter.COMPLAINT) if newline and not rest and line.startswith(enter.COMPLAINT) else ""


def layer_names(folder: Path) -> list[str]:
    """The names of a workspace's layers, the topmost first."""
    return (folder / BASE).read_text().split()


def is_overlay(folder: Path) -> bool:
    """Whether the workspace in this folder is one."""
    return (folder / BASE).exists()


def _head(layer: Path) -> str:
    """The commit that a layer was checked out from; empty where it was not."""
    head = layer / TREE / ".git" / "HEAD"
    return head.read_text().strip() if head.is_file() else ""


def _start_of(store: Store, commit: str) -> str | None:
    """The parent of a commit, if its checkout is there and would give untouched files the same contents."""
    parent = store.resolve(f"{commit}^")
    if parent is None or not is_made(store, name_of(store, parent)):
        return None
    changed = store.changed(tree_of(store, parent), tree_of(store, commit))
    rules = any(name.rpartition(b"/")[2] in {b".gitattributes", b".gitmodules"} for name in changed)
    return None if rules else parent
