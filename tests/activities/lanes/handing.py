"""A lane: a repository with its store, a workspace of the incumbent with the wrapper in it, and a round."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from temporalio.testing import ActivityEnvironment

from orch.activities.home import Home
from orch.activities.lanes import desk
from orch.activities.lanes import manifest as manifests
from orch.activities.lanes.intake import Intake
from orch.activities.lanes.round_door import UnansweredError
from orch.activities.repository import inspect
from orch.activities.snapshots import take_baseline
from orch.activities.store import Store
from orch.activities.workspaces.clone import CloneProvider
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.round.lane import TakeIn, TakenIn
from orch.workflows.model.round.plan import (
    Command,
    Commands,
    DeviceSet,
    Direction,
    Entry,
    FileHash,
    Gates,
    LanePlan,
    Metric,
    RoundPlan,
)
from orch.workflows.model.round.ticket import Submission, TicketState, TicketStatus

RUN = "round-c-r1"
FILES: Mapping[str, str | bytes] = {
    "src/a.py": "a = 1\n",
    "src/deep/b.py": "b = 1\n",
    "src/run.sh": "#!/bin/sh\n",
    "other/c.py": "c = 1\n",
    "bench/run.py": "print(1)\n",
    "README.md": "read\n",
    ".gitignore": "*.log\nbuild/\n",
}


def make_plan(incumbent: str, globs: Sequence[str] = ("src/**",), **facts: Any) -> RoundPlan:
    """A round of two lanes: `l1` has the globs, `l2` what lies in `other`."""
    entry = Entry(id="e1", plane="algorithm", hypothesis="faster", headroom=0.5)
    lanes = (
        LanePlan(id="l1", entry=entry, globs=tuple(globs), agent="cmd:true", submissions=6),
        LanePlan(id="l2", entry=entry.model_copy(update={"id": "e2"}), globs=("other/**",), agent="cmd:true"),
    )
    usual: dict[str, Any] = {
        "id": "r1",
        "campaign": "c",
        "campaign_digest": "0" * 64,
        "incumbent": incumbent,
        "metric": Metric(name="latency", direction=Direction.LOWER, unit="ms"),
        "gates": Gates(validator=(FileHash(path="src/check it.py", sha256="0" * 64),)),
        "protected": ("bench/**", "src/golden/**", "=src/tests/**"),
        "devices": (DeviceSet(name="cpu"),),
        "commands": Commands(benchmark=Command(run="true")),
        "lanes": lanes,
    }
    return RoundPlan(**{**usual, **facts})


@dataclass
class FakeRound:
    """A round that takes what it is given and answers once per ticket, as the workflow does.

    Attributes:
        heard: all submissions, in order, repeated ones among them.
        deaf: how many more calls it does not answer.
    """

    heard: list[Submission] = field(default_factory=list)
    states: dict[str, TicketStatus] = field(default_factory=dict)
    deaf: int = 0

    async def submit(self, submission: Submission) -> TicketStatus:
        if self.deaf:
            self.deaf -= 1
            raise UnansweredError("no worker")
        self.heard.append(submission)
        state = TicketState.REJECTED if submission.refused else TicketState.QUEUED
        answer = TicketStatus(ticket=submission.ticket, state=state, cause=submission.refused, detail=submission.detail)
        return self.states.setdefault(submission.ticket, answer)

    async def tickets(self, lane: str) -> tuple[TicketStatus, ...]:
        return tuple(self.states.values())


@dataclass
class LaneBench:
    """One lane of a round.

    Attributes:
        home: the state directory.
        repo: the user's repository, at the incumbent.
        facts: what the plan has instead of the usual.
    """

    home: Home
    repo: Path
    globs: tuple[str, ...] = ("src/**",)
    facts: dict[str, Any] = field(default_factory=dict)
    round: FakeRound = field(default_factory=FakeRound)
    deadline: float = field(default_factory=lambda: time.time() + 3600)
    key: AttemptKey = field(default_factory=lambda: AttemptKey(run=RUN, iteration=1, candidate=1, binding=1))

    @cached_property
    def store(self) -> Store:
        return Store.of(self.home, inspect(self.repo))

    @cached_property
    def incumbent(self) -> str:
        return take_baseline(self.store, inspect(self.repo), RUN).commit

    @cached_property
    def plan(self) -> RoundPlan:
        return make_plan(self.incumbent, self.globs, **self.facts)

    @property
    def folder(self) -> Path:
        return self.home.attempt(self.key)

    @property
    def outbox(self) -> Path:
        return self.folder / "desk" / "outbox"

    @property
    def waiting(self) -> list[str]:
        """What lies in the outbox."""
        return sorted(path.name for path in self.outbox.iterdir())

    @cached_property
    def tree(self) -> Path:
        """The lane's workspace, with the wrapper in it."""
        tree = CloneProvider().open(self.store, self.folder, self.incumbent)
        self.furnish(tree)
        with (self.folder / "git" / "info" / "exclude").open("a") as file:
            file.write("/.orch/\n")
        return tree

    def furnish(self, tree: Path) -> None:
        """Put the wrapper and its facts into a tree, and make the desk."""
        made = desk.make_desk(self.folder)
        (tree / ".orch").mkdir(exist_ok=True)
        (tree / desk.PROGRAM).write_bytes(desk.program())
        (tree / desk.PROGRAM).chmod(0o755)
        (tree / desk.FACTS).write_text(desk.facts(self.plan, self.plan.lanes[0], made, self.deadline))

    def call(self, *words: str, prefix: Sequence[str] = ()) -> tuple[int, dict[str, Any]]:
        """The wrapper's exit status and document."""
        argv = [*prefix, str(self.tree / desk.PROGRAM), *words]
        done = subprocess.run(argv, cwd=self.tree, capture_output=True, timeout=60, check=False)
        assert done.stdout, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return done.returncode, document

    def submit(self) -> dict[str, Any]:
        """Hand over what lies in the workspace."""
        status, document = self.call("submit")
        assert status == 0, document
        return document

    def put(self, files: Mapping[str | bytes, Any], *, name: str = "", manifest: bytes | None = None) -> str:
        """Put an entry into the outbox as a hostile lane may: contents by path, None to delete; return its ticket.

        A value may be bytes, (mode, bytes), or (mode, bytes, sha256).
        """
        entries, contents = [], dict[str, bytes]()
        for path, value in files.items():
            raw = os.fsencode(path)
            if value is None:
                entries.append(manifests.Entry(raw, "000000", ""))
                continue
            mode, content, *told = value if isinstance(value, tuple) else ("100644", value)
            sha256 = told[0] if told else hashlib.sha256(content).hexdigest()
            entries.append(manifests.Entry(raw, mode, sha256))
            contents[sha256] = content
        data = manifests.canonical(self.plan.id, "l1", entries) if manifest is None else manifest
        name = name or f"{self.plan.id}-l1-{hashlib.sha256(data).hexdigest()[:8]}"
        (self.outbox / name / "files").mkdir(parents=True)
        (self.outbox / name / "manifest.json").write_bytes(data)
        for sha256, content in contents.items():
            (self.outbox / name / "files" / sha256).write_bytes(content)
        return name

    def request(self, **facts: Any) -> TakeIn:
        usual = {"attempt": self.key, "store": self.store.key, "plan": self.plan, "lane": "l1", "once": True}
        return TakeIn(**{**usual, "deadline": self.deadline, **facts})

    async def taking(self, environment: ActivityEnvironment | None = None, **facts: Any) -> TakenIn:
        """The activity, by a worker of its own."""
        step = Intake(self.home, lambda _: self.round).take_in
        environment = environment or ActivityEnvironment()
        environment.info = replace(environment.info, started_time=datetime.now(UTC))
        taken: TakenIn = await environment.run(step, self.request(**facts))
        return taken

    def take(self, **facts: Any) -> list[Submission]:
        """Take in once; what the round heard."""
        before = len(self.round.heard)
        asyncio.run(self.taking(**facts))
        return self.round.heard[before:]

    def status(self, ticket: str) -> dict[str, Any]:
        """What is written up for the lane."""
        document: dict[str, Any] = json.loads((self.folder / "desk" / "status" / f"{ticket}.json").read_text())
        return document

    def files(self, commit: str) -> dict[str, tuple[str, bytes]]:
        """The files of a commit, by path: mode, and content or a link's target."""
        found = {}
        for record in self.store.git.lines("ls-tree", "-r", "-z", commit):
            facts, name = record.split(b"\t", 1)
            mode, kind, oid = facts.decode().split()
            content = self.store.git.run("cat-file", "blob", oid) if kind == "blob" else oid.encode()
            found[os.fsdecode(name)] = (mode, content)
        return found
