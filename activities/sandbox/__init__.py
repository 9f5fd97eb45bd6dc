"""The sandbox: a command becomes a longer command that sees and reaches only what its profile allows.

    Profile, Needs  ->  view.py: a Box (what lies where, and how)  ->  a Launcher: argv

Profiles and boxes are values; launchers (bubblewrap, containers) are chosen in `registry.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol


@dataclass(frozen=True)
class Profile:
    """What a kind of command may do; what it needs besides is told with each command.

    Attributes:
        name: how it is called in texts.
        network: whether it reaches the network when nobody says otherwise.
        git: whether git may write in the workspace: refs, index and objects of its own.
        grades: whether the protected paths of its tree are read-only to it.
    """

    name: str
    network: bool
    git: bool
    grades: bool


AGENT = Profile("agent", network=True, git=True, grades=False)
REVIEW = Profile("review", network=True, git=False, grades=False)
BUILD = Profile("build", network=True, git=True, grades=False)
"""Set-up: it installs, so it has the network; it gets the secrets that the contract gives to it alone."""
MEASURE = Profile("measure", network=False, git=False, grades=True)


class Access(StrEnum):
    """What a command finds at a path."""

    HIDDEN = "hidden"
    """An empty folder it cannot write, or an empty file."""
    SCRATCH = "scratch"
    """An empty folder in memory it may write."""
    READ = "read"
    WRITE = "write"
    DEVICE = "device"
    """A device of the host's, which may be opened."""
    LINK = "link"
    """A symbolic link to `source`."""


@dataclass(frozen=True)
class Mount:
    """What a command finds at `path`: `source`, or the path itself."""

    path: Path
    access: Access
    source: Path

    @classmethod
    def of(cls, path: Path, access: Access, source: Path | None = None) -> Mount:
        """A mount of a path on itself, unless a source is named."""
        return cls(path, access, path if source is None else source)


@dataclass(frozen=True)
class Box:
    """What a launcher makes: the host's files read-only, and over them the mounts, parents first.

    Attributes:
        mounts: the deepest one that holds a path decides about it.
        network: whether the host's network is there; without, loopback of its own is up.
    """

    mounts: tuple[Mount, ...]
    network: bool


class Flaw(NamedTuple):
    """Why something does not work on this host, and what mends it."""

    why: str
    mend: str


class Launcher(Protocol):
    """One way to make a box."""

    name: str

    def __hash__(self) -> int:
        """One value for the life of the process: what is tried is tried once."""
        ...

    @property
    def image(self) -> str:
        """The image whose programs run in its boxes; empty: the host's own do."""
        ...

    def wrap(self, argv: tuple[str, ...], box: Box) -> tuple[str, ...]:
        """The command in the box. It keeps working directory, environment, streams and user."""
        ...

    def version(self) -> str:
        """Its program and version, as people say it; empty when it is not there."""
        ...

    def flaw(self) -> Flaw | None:
        """Why it cannot be used, as far as that is seen without trying it."""
        ...

    def mend(self, said: str) -> str:
        """What mends the failure that it spoke of."""
        ...

    def not_executed(self, stderr: str) -> str:
        """Why a command never ran, when nothing but the launcher's own complaint was printed; else empty."""
        ...
