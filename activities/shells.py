"""Shells: a throw-away workspace that holds what an agent's holds or held, in the same environment and sandbox."""

from __future__ import annotations

import fcntl
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..workflows.errors import RefusedError
from ..workflows.model.attempt import AttemptKey, OpenWorkspace
from ..workflows.model.base import Sha
from ..workflows.model.contract import Contract
from ..workflows.model.exit import Exit
from ..workflows.model.verdict import Excerpt
from . import processes
from .artifacts import write_whole
from .carried_layer import carried_layer
from .collecting import trash
from .effect import in_thread
from .home import Home
from .jobs import end_job
from .measuring.setup import JOB as SETUP
from .measuring.setup import set_up
from .places import Grants, Place
from .sandbox import AGENT
from .shared_setup import Shared, shared_setup
from .snapshots import take_view
from .store import Store
from .workspaces import INDEX, TREE, Layers
from .workspaces.overlay import is_overlay
from .workspaces.registry import close_workspace, open_workspace, provider_of, show_commit

PREFIX = "shell-"
"""Begins the name of a shell's folder, below the run's."""

BINDING = 1_000_000
"""Bindings from here on are shells': their ports are nobody else's."""

TRIES = 3
"""An agent at work moves files away under whoever reads them."""

RESTORE_S = 600.0

_LOCK, _KEY, _PRIVATE = "lock", "shell.json", "private"


@dataclass(frozen=True)
class Subject:
    """Whose tree is looked at.

    Attributes:
        name: what it is called: `candidate 2 of iteration 1`, `lane parse`.
        attempt: the candidate's attempt, or the lane's.
        store: where its commits lie.
        start: the commit its agent started from.
        commit: what its workspace held, or holds.
        contract: names the carried paths and the set-up.
        sandbox: whether commands run in the sandbox.
        without: globs of what lies in the workspace, carried paths aside, and is no change of the agent's.
    """

    name: str
    attempt: AttemptKey
    store: Store
    start: Sha
    commit: Sha
    contract: Contract
    sandbox: bool
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shell:
    """A shell's workspace; its place's folder is all of it."""

    place: Place
    of: Subject

    async def fill(self) -> tuple[Exit | None, Excerpt]:
        """Open, carry, set up and put the candidate's change on top; how set-up ended, and what a failing one printed.

        Below an overlay lies what the attempts' set-up made; elsewhere it is run anew.
        """
        shared = await self._shared()
        if shared is None or shared.layers is None:
            await in_thread(
                open_workspace, self.of.store, self.place.folder, self.of.start, Layers(below=self._carried)
            )
            setup = await set_up(self.place, self._tree, self.of.contract, self._writable, sandbox=self.of.sandbox)
        else:
            await in_thread(open_workspace, self.of.store, self.place.folder, self.of.start, shared.layers)
            setup = shared.exit, shared.output
        await in_thread(self._change)
        return setup

    async def _shared(self) -> Shared | None:
        if not self.of.contract.setup:
            return None
        request = OpenWorkspace(
            attempt=self.place.key,
            store=self.of.store.key,
            commit=self.of.start,
            contract=self.of.contract,
            sandbox=self.of.sandbox,
        )
        return await shared_setup(self.of.store, self.place, request, self._carried)

    @cached_property
    def _carried(self) -> tuple[str, ...]:
        return carried_layer(self.of.store, self.place.key.run, self.of.contract.carry)

    def command(self, argv: tuple[str, ...]) -> processes.Command:
        """A command in the workspace, as the agent's was."""
        private = self.place.folder / _PRIVATE
        private.mkdir(exist_ok=True)
        environment = self.place.environment({})
        grants = Grants(writable=(private, *self._writable))
        argv = self.place.fenced(argv, AGENT, grants, sandbox=self.of.sandbox)
        return processes.Command(argv, self._tree, environment)

    @property
    def _tree(self) -> Path:
        return self.place.folder / TREE

    @property
    def _writable(self) -> tuple[Path, ...]:
        return provider_of(self.place.folder).writable(self.of.store, self.place.folder)

    def _change(self) -> None:
        """Write the paths that differ from the start, inside, so that git there tells them as it told the agent."""
        paths = self.of.store.changed(self.of.start, self.of.commit)
        if not paths:
            return
        show_commit(self.of.store, self.place.folder, self.of.commit)
        argv = ("git", "--literal-pathspecs", "restore", f"--source={self.of.commit}", "--worktree")
        command = self.command((*argv, "--pathspec-from-file=-", "--pathspec-file-nul"))
        done = processes.run(command, timeout_s=RESTORE_S, stdin=b"".join(path + b"\0" for path in paths))
        if not done.exit.ok:
            said = done.stderr.decode(errors="replace").strip() or str(done.exit)
            raise RefusedError(f"the change of {self.of.name} cannot be written: {said}")


@contextmanager
def opened(home: Home, subject: Subject) -> Iterator[Shell]:
    """A place for a shell's workspace, to be filled; it is thrown away at the end, however that comes."""
    number = secrets.token_hex(3)
    folder = home.run(subject.attempt.run) / f"{PREFIX}{number}"
    key = subject.attempt.model_copy(update={"binding": BINDING + int(number, 16)})
    folder.mkdir()
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        write_whole(folder / _KEY, key.model_dump_json())
        try:
            yield Shell(Place(home, key, folder), subject)
        finally:
            close(home, folder, subject.store)


def view_of(subject: Subject, folder: Path) -> Sha:
    """What lies in the workspace of an attempt that is at work, as a commit that nothing pins; the agent goes on."""
    tree, index = folder / TREE, folder / INDEX
    if not tree.is_dir() or not (is_overlay(folder) or index.exists()):
        raise RefusedError(f"{subject.name} has no workspace now", hint=f"orch show {subject.attempt.run}")
    left_out = (*subject.contract.carry, *subject.without)
    for tries in range(1, TRIES + 1):
        try:
            return take_view(subject.store, tree, commit=subject.start, index=index, carried=left_out)
        except RefusedError:
            if tries == TRIES:
                raise
            time.sleep(0.2)
    raise AssertionError("unreachable")


def is_live(folder: Path) -> bool:
    """Whether the `orch shell` that made the folder still runs."""
    try:
        with (folder / _LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def close(home: Home, folder: Path, store: Store) -> None:
    """End what still runs in a shell's place, give its ports back and remove it whole."""
    end_job(folder / SETUP)
    close_workspace(store, folder)
    kept = folder / _KEY
    if kept.exists():
        Place(home, AttemptKey.model_validate_json(kept.read_text(encoding="utf-8")), folder).release_ports()
    trash.erase(trash.discard(home, folder))
