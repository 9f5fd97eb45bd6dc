"""Where one attempt's commands run: private home, temporary folder, ports, and the fence round them.

A fenced command sees a private /tmp, unless it, its programs or its project lie there: then the real one, read-only.
"""

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
from .artifacts import kept_request
from .home import Home
from .processes import scrubbed_environment
from .sandbox import TMP, Fence, wrap
from .workspaces.registry import provider_of

PORT_BLOCKS = 200
PORTS_PER_BLOCK = 50
FIRST_PORT = 20_000
"""200 blocks of 50 ports from 20000: below the range from which the kernel hands out ports by itself."""


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

    def fenced(self, argv: tuple[str, ...], *writable: Path, sandbox: bool, network: bool) -> tuple[str, ...]:
        """The command so that it finds the workspace and writes only to the given paths and the private folders.

        Without a sandbox it writes anywhere.
        """
        if not sandbox:
            return provider_of(self.folder).entering(self.folder, argv)
        tmp = self.folder / "tmp"
        known = (*argv, self._request.path or os.environ.get("PATH", ""), self._request.repo)
        hidden = any(f"{TMP}/" in text for text in known)
        fence = Fence((*writable, self.folder / "home", tmp), network=network, tmp=None if hidden else tmp)
        return provider_of(self.folder).entering(self.folder, wrap(argv, fence))

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
