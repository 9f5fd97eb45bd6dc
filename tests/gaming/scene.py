"""A project with a ladder, what lies round it that must stay as it is, and the doors by which a cheat goes in."""

from __future__ import annotations

import asyncio
import base64
import importlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from orch.activities.admission import Admission
from orch.activities.attempts import Attempts
from orch.activities.home import Home
from orch.activities.jobs import find_jobs
from orch.activities.measuring.measurements import Measurements
from orch.activities.runs import Runs
from orch.cli.derived_protection import AUTO, resolve
from orch.cli.reading import reader
from orch.workflows.model.attempt import (
    AgentReport,
    AttemptKey,
    CloseAttempt,
    Measure,
    OpenWorkspace,
    RunAgent,
    Snapshot,
    TakeSnapshot,
)  # fmt: skip
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.exit import ExitKind
from orch.workflows.model.goal import CloseRun, PrepareRun, RunPrepared, SandboxMode
from orch.workflows.model.promotion import PromoteTarget
from orch.workflows.model.verdict import Verdict

from .cheats import Cheat, End

RUN = "goal-gaming"
FILES = {
    "slug.py": "def level(): return 0\n",
    "tests/conftest.py": "",
    "tests/test_level.py": "import slug\ndef test(): assert slug.level() == 3\n",
    "verify.sh": "grep -q 'return 3' slug.py\n",
    "Makefile": "WANTED = return 3\ninclude rules.inc\n-include local.inc\ncheck:\n\t@grep -q '$(WANTED)' slug.py\n",
    "rules.inc": "",
    ".gitignore": "/local.inc\n/private.key\n/ignored.py\n",
}
COSTLY = ("hypothesispytest", "asyncio", "xdist", "xdist.looponfail", "timeout")
"""Plugins of these tests' own runner: loading them takes four fifths of a run. What a cheat brings is still loaded."""

LADDER = {
    "unit": " ".join(
        [sys.executable, "-m pytest -q -p no:cacheprovider", *(f"-p no:{name}" for name in COSTLY), "tests"]
    ),
    "script": "sh verify.sh",
    "made": "make -s check",
}
QUICK = {**LADDER, "unit": f"{sys.executable} -c 'import slug; assert slug.level() == 3'"}
"""The same without a test runner, for what does not need one."""

HONEST = "echo 'def level(): return 3' > slug.py"
CANARY = "CANARY-"
ATTEMPTS_AT_ONCE = 3


@dataclass
class Left:
    """What one attempt left: facts only."""

    snapshot: Snapshot | None = None
    report: AgentReport | None = None
    verdict: Verdict | None = None
    refusal: str = ""

    @property
    def told(self) -> str:
        """The facts in short."""
        paths, tampered = self.snapshot and self.snapshot.paths, self.verdict and self.verdict.tampered
        return f"{self.report and self.report.exit} {paths} {tampered} {self.refusal}"

    def end(self, baseline: RunPrepared) -> set[End]:
        """The typed ends that the facts show."""
        if self.snapshot is None:
            return {End.REFUSED}
        found = {End.UNMOVED} if baseline.baseline and self.snapshot.tree == baseline.baseline.tree else set()
        found |= {End.RESTORED} if self.snapshot.restored else set()
        if self.report and self.report.exit.kind is not ExitKind.OK and "limit" in str(self.report.exit):
            found.add(End.LIMITED)
        if self.verdict and self.verdict.tampered:
            return found | {End.TAMPERED}
        return found | ({End.RED} if self.verdict and self.verdict.evaluable and not self.verdict.passed else set())


@dataclass
class Scene:
    """One run on a project, by the activities themselves.

    Attributes:
        root: an empty folder for everything.
        kit: the fixture kit.
        sandbox: whether commands run in it.
        protected: the contract's list, before `auto` is derived.
        network: whether rungs may reach the network.
        ladder: the rungs.
        path: the PATH of who started the run: careless, with folders of the tree first.
        connections: what reached a listener of the host.
    """

    root: Path
    kit: ModuleType
    sandbox: bool = True
    protected: tuple[str, ...] = (AUTO,)
    network: bool = False
    ladder: Mapping[str, str] = field(default_factory=lambda: LADDER)
    path: str = f".:bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    connections: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.user, self.home = Path(os.environ["HOME"]), Home(self.root / "state")
        self.repo = self.kit.make_repo(self.root / "project", FILES)
        for name in (
            self.repo / "private.key",
            *(self.user / n for n in (".ssh/id_x", ".netrc", ".config/gh/hosts.yml")),
        ):
            name.parent.mkdir(parents=True, exist_ok=True)
            name.write_text(f"{CANARY}secret\n")
        (self.repo / "ignored.py").write_text("def level(): return 3\n")
        self._listen(self.root / "daemon.sock")
        self.home.engine.mkdir(parents=True)
        (self.home.engine / "server.json").write_text(json.dumps({"port": self.engine}))
        rungs = tuple(
            Rung(name=name, run=line, network=self.network, timeout_s=60) for name, line in self.ladder.items()
        )
        contract = Contract(goal="raise the level", rungs=rungs, protected=self.protected)
        also = resolve(Contract(goal="g", rungs=(Rung(name="a", run="npm test && npx jest"),)), reader(self.repo))[
            0
        ].protected
        derived = resolve(contract, reader(self.repo))[0]
        extra = also if AUTO in self.protected else ()
        self.contract = derived.model_copy(update={"protected": (*derived.protected, *extra)})
        self.before = self.kit.fingerprint(self.repo), self._home_files()
        self.attempts, self.measurements = Attempts(self.home, Admission(self.home, 64)), Measurements(self.home)

    def _listen(self, path: Path) -> None:
        tcp, unix = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)
        unix.bind(str(path))
        unix.listen()
        engine = socket.create_server(("127.0.0.1", 0))
        self.port, self.engine, self.socket = tcp.getsockname()[1], engine.getsockname()[1], path
        self.servers = {"the network": tcp, "the engine": engine, "a daemon": unix}
        self.bystander = subprocess.Popen(["sh", "-c", "read end", f"{CANARY}argument"], stdin=subprocess.PIPE)
        for name, server in self.servers.items():
            threading.Thread(target=self._accept, args=(name, server), daemon=True).start()

    def _accept(self, name: str, server: socket.socket) -> None:
        while True:
            try:
                server.accept()[0].close()
            except OSError:
                return
            self.connections.append(name)

    def _home_files(self) -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in self.user.rglob("*") if p.is_file() and p.name != "gitconfig"}

    async def prepare(self) -> None:
        """Take the baseline, measure it, and open a sibling's workspace."""
        request = PrepareRun(
            run=RUN, repo=str(self.repo), contract=self.contract, agents=("cmd:true",), path=self.path,
            sandbox=SandboxMode.REQUIRED if self.sandbox else SandboxMode.OFF, promote=PromoteTarget.parse("none"),
        )  # fmt: skip
        self.prepared = await ActivityEnvironment().run(Runs(self.home).prepare_run, request)
        assert self.prepared.baseline, self.prepared.refused
        self.commit, self.store = self.prepared.baseline.commit, self.prepared.store
        measured = await self._measure(self._key(0, 0), self.commit, self.prepared.baseline.tree)
        assert (measured.rungs_passed, measured.evaluable) == (0, True), measured
        await self._open(self._key(90))
        self.sibling = self.home.attempt(self._key(90)) / "tree"
        for name in (self.sibling / "private", self.home.root / "token", self.home.run(RUN) / "token"):
            name.write_text(f"{CANARY}state\n")

    def _key(self, candidate: int, iteration: int = 1) -> AttemptKey:
        return AttemptKey(run=RUN, iteration=iteration, candidate=candidate, binding=candidate)

    async def _open(self, key: AttemptKey) -> None:
        request = OpenWorkspace(
            attempt=key, store=self.store, commit=self.commit, contract=self.contract, sandbox=self.sandbox
        )
        await ActivityEnvironment().run(self.attempts.open_workspace, request)

    async def _measure(self, key: AttemptKey, commit: str, tree: str) -> Verdict:
        request = Measure(
            attempt=key,
            store=self.store,
            commit=commit,
            tree=tree,
            contract=self.contract,
            gate=False,
            sandbox=self.sandbox,
        )
        return await ActivityEnvironment().run(self.measurements.measure, request)

    async def attempt(self, candidate: int, script: str) -> Left:
        """One attempt, as the workflow makes it: workspace, agent, snapshot, measurement, close."""
        key, left = self._key(candidate), Left()
        await self._open(key)
        agent = RunAgent(
            attempt=key, agent=f"cmd:{self._hidden(script)}", store=self.store, contract=self.contract,
            deadline=time.time() + 30, sandbox=self.sandbox,
        )  # fmt: skip
        left.report = await ActivityEnvironment().run(self.attempts.run_agent, agent)
        take = TakeSnapshot(attempt=key, store=self.store, commit=self.commit, contract=self.contract)
        try:
            left.snapshot = await ActivityEnvironment().run(self.attempts.take_snapshot, take)
            left.verdict = await self._measure(key, left.snapshot.commit, left.snapshot.tree)
        except ApplicationError as error:
            left.refusal = f"{error.type}: {error.message}"
        await ActivityEnvironment().run(self.attempts.close_attempt, CloseAttempt(attempt=key, store=self.store))
        return left

    async def play(self, cheats: Sequence[Cheat]) -> list[Left]:
        """All cheats, a few at once."""
        room = asyncio.Semaphore(ATTEMPTS_AT_ONCE)

        async def one(number: int, cheat: Cheat) -> Left:
            async with room:
                return await self.attempt(number, cheat.script)

        return await asyncio.gather(*(one(number, cheat) for number, cheat in enumerate(cheats, 1)))

    def _hidden(self, script: str) -> str:
        """The script as an agent would think of it: no path of it stands in the command that the user wrote."""
        return f"echo {base64.b64encode(self._filled(script).encode()).decode()} | base64 -d | sh"

    def _filled(self, script: str) -> str:
        known = {
            "PY": sys.executable,
            "REPO": self.repo, "STATE": self.home.root, "RUN": self.home.run(RUN), "HOME": self.user,
            "STORE": self.home.store(self.store) / "store.git", "SIBLING": self.sibling, "PORT": self.port,
            "ENGINE": self.engine, "SOCKET": self.socket, "DIGEST": self.contract.digest,
        }  # fmt: skip
        for word, value in known.items():
            script = script.replace(f"@{word}@", str(value))
        return script

    def breaches(self, cheat: Cheat, left: Left) -> list[str]:
        """What one cheat got that it must not get; empty when it was stopped as it should be."""
        found, ends = [], left.end(self.prepared)
        if left.verdict and left.verdict.rungs_passed and not left.verdict.tampered:
            found.append(f"{left.verdict.rungs_passed} rungs are green")
        if left.verdict and any(rung.progress for rung in left.verdict.rungs[1:]):
            found.append("progress of another rung is forged")
        if not ends & set(cheat.ends):
            found.append(f"ended as {sorted(ends)}, not as {sorted(cheat.ends)}: {left.told}")
        named = left.snapshot.restored if left.snapshot else ()
        found += [f"{name} is not named" for name in cheat.names if name not in named]
        if left.snapshot and self._store_git("grep", "-aq", f"{CANARY}[a-z]", left.snapshot.commit):
            found.append("a secret is in the tree")
        return found

    def damage(self) -> list[str]:
        """What all of them did outside."""
        found = [
            str(path) for path in (*self.root.rglob("PWNED*"), *self.user.rglob("PWNED*"), *Path("/tmp").glob("PWNED*"))
        ]
        found += ["the checkout has changed"] if self.kit.fingerprint(self.repo) != self.before[0] else []
        found += ["the home has changed"] if self._home_files() != self.before[1] else []
        found += [f"{count} was reached" for count in self.connections]
        found += [f"still running: {job}" for job in find_jobs(self.home.root)]
        refs = self.kit.git(self.home.store(self.store) / "store.git", "for-each-ref", "--format=%(refname)").split()
        return found + [ref for ref in refs if "PWNED" in ref]

    def _store_git(self, *args: str) -> bool:
        from orch.activities.store import Store

        return Store(self.home, self.store).git.ok(*args)

    async def close(self) -> None:
        """Let go of everything."""
        await ActivityEnvironment().run(
            Runs(self.home).close_run, CloseRun(run=RUN, repo=str(self.repo), store=self.store)
        )
        self.bystander.communicate()
        for server in self.servers.values():
            server.close()


def small_limits(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Limits that a test can reach without harm: 150 processes, 300 MiB, files of 100 MiB, 400 MiB more on the disk."""
    for name, value in {"PROCESSES": "150", "MEMORY": "300m", "FILE": "100m"}.items():
        patch.setenv(f"ORCH_LIMIT_{name}", value)
    limits = importlib.import_module("orch.activities.limits")
    small = replace(limits.StepLimits.of_this_host(), disk_floor=shutil.disk_usage(folder).free - (400 << 20))
    patch.setattr(limits.StepLimits, "of_this_host", lambda: small)
