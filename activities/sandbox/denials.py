"""Proof of the sandbox on this host: all that it is to deny is tried in a box of the real profile, with bait laid out.

The bait lies in a state directory, a checkout and a home of the user's own, for a moment; nothing of the user's is
touched, and all of it is removed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import processes
from . import AGENT, MEASURE, Launcher, Profile, acts, guard
from .hiding import homes
from .view import Needs, box

BAIT = "bait"


@dataclass(frozen=True)
class Denial:
    """One thing that a command of a profile was to be denied.

    Attributes:
        profile: whose command tried it.
        what: what it tried, as it follows "cannot".
        denied: whether that failed.
        said: what it saw, or what failed instead.
    """

    profile: str
    what: str
    denied: bool
    said: str = ""


@dataclass(frozen=True)
class Act:
    """What is tried: an act of `acts.py`, its bait, and the file that it must leave as it was (empty: none)."""

    what: str
    name: str
    bait: Any
    kept: str = ""


@dataclass(frozen=True)
class Lab:
    """Where the bait lies: below `root` all but what is named."""

    root: Path
    home: Path
    socket: Path
    port: int
    pid: int

    def path(self, name: str) -> str:
        """A bait file by its name."""
        return str(self.root / name)

    def acts(self, profile: Profile, launcher: Launcher) -> Iterator[Act]:
        """What a command of the profile tries in a box of the launcher."""
        yield from self._reaching_out()
        yield from self._reaching_the_network(profile, launcher)
        if profile.grades:
            protected = self.path("state/runs/r/attempts/own/tree/protected")
            yield Act("write to a protected file", "write", protected, protected)
            yield Act("replace a protected file", "replace", protected, protected)

    def _reaching_out(self) -> tuple[Act, ...]:
        ledger, sibling = self.path("state/runs/r/ledger.jsonl"), self.path("state/runs/r/attempts/other/tree/file")
        store, checkout, outside = (
            self.path("state/stores/s/refs"),
            self.path("checkout/file"),
            self.path("outside/file"),
        )
        return (
            Act("read the home directory", "read", str(self.home)),
            Act("write to the home directory", "write", str(self.home), str(self.home)),
            Act("read the ledger of the run", "read", ledger),
            Act("write to the ledger of the run", "write", ledger, ledger),
            Act("write to the store", "replace", store, store),
            Act("read another candidate's workspace", "read", sibling),
            Act("write to another candidate's workspace", "replace", sibling, sibling),
            Act("write to the real checkout", "write", checkout, checkout),
            Act("write outside of its workspace", "write", outside, outside),
            Act("read others' temporary files", "read", self.path("file")),
            Act("see a process of the host", "see", self.pid),
            Act("signal a process of the host", "end", self.pid),
            Act("reach a socket of a daemon", "connect", str(self.socket)),
            Act("unmount what hides the home directory", "uncover", str(self.home)),
            Act("mount the disk writable again", "remount", outside, outside),
            Act("reach a hidden file by another process's root", "around", ledger),
            Act("write a setting of the kernel", "kernel", None),
            Act("open a disk or the memory", "devices", None),
        )

    def _reaching_the_network(self, profile: Profile, launcher: Launcher) -> Iterator[Act]:
        engine = ["127.0.0.1", self.port]
        if not profile.network:
            yield Act("reach the network", "connect", engine)
        elif not guard.flaw(launcher):
            yield Act("reach the engine", "connect", engine)
            yield Act("reach the engine by a detour", "detour", engine)
            yield Act("listen in the engine's place", "listen", self.port)
        if not profile.network or guard.hides_sockets(launcher):
            yield Act("reach an abstract socket of a daemon", "connect", f"\0{self.socket}")

    def needs(self, argv: tuple[str, ...], profile: Profile) -> Needs:
        """The needs of a real command of the profile."""
        own = self.root / "state/runs/r/attempts/own"
        return Needs(
            argv,
            os.environ.get("PATH", ""),
            self.root / "state",
            tmp=own / "tmp",
            tree=own / "tree",
            repo=self.root / "checkout",
            names=frozenset({"file", "protected"}),
            protected=("protected",) if profile.grades else (),
            expose=(self.root / "outside",),
        )


def denials(launcher: Launcher) -> Iterator[Denial]:
    """Try everything that agents' commands and rungs are to be denied."""
    with _lab() as lab:
        for profile in (AGENT, MEASURE):
            yield from _tried(lab, profile, launcher)


def _tried(lab: Lab, profile: Profile, launcher: Launcher) -> Iterator[Denial]:
    tries = list(lab.acts(profile, launcher))
    facts = json.dumps([(act.name, act.bait) for act in tries])
    argv = (sys.executable, "-I", "-S", acts.__file__, facts)
    needs = lab.needs((sys.executable, guard.PYTHON, acts.__file__), profile)
    program = guard.guarded(argv, frozenset({lab.port}), launcher) if profile.network else argv
    boxed = launcher.wrap(program, box(needs, network=profile.network))
    assert needs.tree is not None  # noqa: S101 - for the types
    done = processes.run(
        processes.Command(boxed, needs.tree, processes.scrubbed_environment({})), timeout_s=processes.ANSWER_S
    )
    try:
        saw = json.loads(done.stdout)
    except ValueError:
        words = (done.stderr or done.stdout).decode(errors="replace").strip()
        yield Denial(profile.name, "do anything at all", False, f"the box failed: {words} ({done.exit})")  # noqa: FBT003
        return
    for act, said in zip(tries, saw, strict=True):
        changed = act.kept and Path(act.kept).read_text(encoding="utf-8") != BAIT
        lost = act.name == "end" and processes.start_ticks(lab.pid) is None
        said = "it was changed" if changed else "it ended" if lost else said  # noqa: PLW2901
        yield Denial(profile.name, act.what, not said, said or "")


@contextmanager
def _lab() -> Iterator[Lab]:
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="orch-doctor-"))).resolve()
        for name in (
            "file", "outside/file", "checkout/file", "state/runs/r/ledger.jsonl", "state/stores/s/refs",
            "state/runs/r/attempts/other/tree/file", "state/runs/r/attempts/own/tree/file",
            "state/runs/r/attempts/own/tree/protected", "state/runs/r/attempts/own/tmp/file",
        ):  # fmt: skip
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(BAIT, encoding="utf-8")
        home = stack.enter_context(_home_bait(root))
        path, port = stack.enter_context(_listening(root))
        yield Lab(root, home, path, port, stack.enter_context(_process(root)))


@contextmanager
def _home_bait(root: Path) -> Iterator[Path]:
    """A file in the user's home; below the laboratory where there is none that can be written."""
    folder = next((home for home in homes() if os.access(home, os.W_OK)), root)
    with tempfile.NamedTemporaryFile("w", prefix=".orch-doctor-", dir=folder, encoding="utf-8") as file:
        file.write(BAIT)
        file.flush()
        yield Path(file.name)


@contextmanager
def _listening(root: Path) -> Iterator[tuple[Path, int]]:
    """A socket where daemons have theirs, if that can be written, and one on loopback."""
    places = (Path("/run"), Path(os.environ.get("XDG_RUNTIME_DIR") or root), root)
    folder = next(place for place in places if os.access(place, os.W_OK) and place.is_dir())
    path = folder / f"orch-doctor-{os.getpid()}.sock"
    local, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    with local, abstract, socket.create_server(("127.0.0.1", 0)) as network:
        for one, name in ((local, str(path)), (abstract, f"\0{path}")):
            one.bind(name)
            one.listen(8)
        try:
            yield path, network.getsockname()[1]
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def _process(root: Path) -> Iterator[int]:
    """A process of the user's to look for; it ends by itself after a minute."""
    argv = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)", "canary")
    pid = processes.spawn_detached(processes.Command(argv, root, {}), log=root / "log")
    ticks = processes.start_ticks(pid)
    try:
        yield pid
    finally:
        with suppress(ProcessLookupError):
            if ticks is not None:
                processes.send(pid, ticks, signal.SIGKILL)
