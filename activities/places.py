"""Where one attempt's commands run: private home, temporary folder, ports, and the box round them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..workflows.errors import HostFaultError
from ..workflows.model.attempt import AttemptKey
from ..workflows.model.goal import PrepareRun
from . import slots
from .artifacts import kept_checkout, kept_prepared, kept_request
from .home import Home
from .processes import scrubbed_environment
from .sandbox import Profile
from .sandbox.guard import engine_ports, guarded, shared_rules
from .sandbox.registry import chosen, wrap
from .sandbox.view import Needs, box
from .store import Store
from .workspaces.registry import provider_of

PORT_BLOCKS = 200
PORTS_PER_BLOCK = 50
FIRST_PORT = 20_000
"""200 blocks of 50 ports from 20000: below the range from which the kernel hands out ports by itself."""

EXPOSE = "ORCH_EXPOSE"
"""Paths, separated by colons, that commands in the sandbox may read although they lie in a hidden place."""


DESK = "desk"
"""In the folder of a lane: what it hands over, and what it is told; every command of the lane may write there."""


@dataclass(frozen=True)
class Grants:
    """What one command gets besides what its profile allows.

    Attributes:
        writable: folders and files outside the working copy it may write.
        readable: files of the state directory it may read.
        protected: paths of the working copy, relative, it may not write.
        network: whether it reaches the network; None: as the profile says.
        frozen: whether working copy and home are read-only.
        tmp: a folder for temporary files of its own, instead of the place's.
        devices: devices of the host's that it may open.
    """

    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    protected: tuple[str, ...] = ()
    network: bool | None = None
    frozen: bool = False
    tmp: Path | None = None
    devices: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Place:
    """A folder of an attempt, with a private home and a temporary folder beside the workspace.

    Attributes:
        home: the state directory.
        key: whose place.
        folder: the attempt's folder, or one below it.
    """

    home: Home
    key: AttemptKey
    folder: Path

    @property
    def owner(self) -> str:
        """The name under which slots and port blocks are held."""
        return f"{self.key.run}/{self.key.name}"

    @property
    def tree(self) -> Path:
        """The working copy."""
        return self.folder / "tree"

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """The scrubbed environment with home, temporary folder, port block and identity; makes the folders."""
        private = {"HOME": self.folder / "home", "TMPDIR": self.folder / "tmp"}
        for path in private.values():
            path.mkdir(parents=True, exist_ok=True)
        port, programs = self._first_port(), self._request.path
        return scrubbed_environment(
            {
                **{name: str(path) for name, path in private.items()},
                "ORCH_RUN": self.key.run,
                "ORCH_CANDIDATE": str(self.key.candidate),
                "ORCH_ITERATION": str(self.key.iteration),
                "ORCH_TMP": str(private["TMPDIR"]),
                "ORCH_PORT": str(port),
                "ORCH_PORT_COUNT": str(PORTS_PER_BLOCK),
                "PORT": str(port),
                **({"PATH": programs} if programs else {}),
                **extra,
            }
        )

    def fenced(self, argv: tuple[str, ...], profile: Profile, grants: Grants, *, sandbox: bool) -> tuple[str, ...]:
        """The command as its profile allows it, with the working copy, the private folders and what is granted besides.

        One with the network does not reach the engine, where that can be had.
        This is the one way for a command into a workspace.
        """
        if sandbox:
            network = profile.network if grants.network is None else grants.network
            argv = guarded(argv, engine_ports(self.home), chosen()) if network else argv
            argv = wrap(argv, box(self._needs(argv, grants), network=network))
        return provider_of(self.folder).entering(self.folder, argv, view=grants.frozen)

    def rules(self) -> tuple[int, ...]:
        """Descriptors that make an agent's `fenced` command start sooner, if its job passes them on."""
        return shared_rules(engine_ports(self.home), chosen())

    def _needs(self, argv: tuple[str, ...], grants: Grants) -> Needs:
        own, tmp = self.folder / "home", grants.tmp or self.folder / "tmp"
        for path in (own, tmp):
            path.mkdir(parents=True, exist_ok=True)
        return Needs(
            argv,
            self._request.path or os.environ.get("PATH", ""),
            self.home.root,
            tmp=tmp,
            tree=self.tree,
            repo=kept_checkout(self.home, self.key.run),
            names=self._names(),
            writable=(*grants.writable, *self._desk()) if grants.frozen else (*grants.writable, own, *self._desk()),
            readable=(*self._git(), *grants.readable, *((own,) if grants.frozen else ())),
            hidden=() if self._linked else (self.store.apart,),
            protected=grants.protected,
            expose=exposed(),
            frozen=grants.frozen,
            devices=grants.devices,
        )

    def _desk(self) -> tuple[Path, ...]:
        desk = self.folder / DESK
        return (desk,) if desk.is_dir() and not desk.is_symlink() else ()

    def _layers(self) -> list[Path]:
        """The folders of the layers that the working copy is made of where it is mounted; else none."""
        base = self.folder / "base"
        names = base.read_text(encoding="utf-8").split() if base.exists() else []
        return [self.folder / "bases" / name for name in names]

    def _names(self) -> frozenset[str]:
        """What lies at the top of the working copy."""
        parts = [self.tree, self.folder / "upper", *(layer / "tree" for layer in self._layers())]
        return frozenset(entry.name for part in parts if part.is_dir() for entry in os.scandir(part))

    def _git(self) -> tuple[Path, ...]:
        """What git in the working copy reads: its own folder, the store's shared objects, and those the store borrows.

        What an agent can write, such as the working copy's own pointers, is not asked. Linked worktrees need all of it.
        """
        own, store = self.folder / "git", self.store
        return (own, store.git_dir if self._linked else store.git_dir / "objects", store.path / "linked")

    @property
    def _linked(self) -> bool:
        return provider_of(self.folder).name == "worktree"

    @cached_property
    def store(self) -> Store:
        """The store of the run's repository."""
        prepared = kept_prepared(self.home, self.key.run)
        return Store(self.home, prepared.store if prepared and prepared.store else "none")

    def release_ports(self) -> None:
        """Give the port block back. Idempotent."""
        slots.release(self.home.ports, self.owner)

    @cached_property
    def _request(self) -> PrepareRun:
        return kept_request(self.home, self.key.run)

    def _first_port(self) -> int:
        block = slots.claim(self.home.ports, self.owner, PORT_BLOCKS)
        if block is None:
            raise HostFaultError("all port blocks are taken", hint="`orch gc` gives back what dead runs hold")
        return FIRST_PORT + block * PORTS_PER_BLOCK


def exposed() -> tuple[Path, ...]:
    """What the user wants shown besides, by ORCH_EXPOSE."""
    return tuple(Path(name).expanduser() for name in os.environ.get(EXPOSE, "").split(os.pathsep) if name)
