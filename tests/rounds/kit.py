"""The synthetic repository of rounds: a knob per lane, a benchmark of real processes, and the files of a round at it.

Seven knobs: `index` and `cache` share the stage `lookup`, so that the second of these two gains almost nothing once
the first is in; every other knob has a stage of its own. A knob is a module with `FACTOR`, the share
of its stage's milliseconds that is left, and may have `ANSWER`: anything but `right` is a wrong result.

Test modules reach all this by the fixture `rounds`; the scripted lanes are in `lanes.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

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

HERE = Path(__file__).parent
SYNTHETIC = HERE / "synthetic"

KNOBS = {
    **{name: name for name in ("parse", "layout", "emit", "sort", "names")},
    **dict.fromkeys(("index", "cache"), "lookup"),
}
"""Each knob, by the name of its lane, and the stage that it is of."""

STAGES = {"parse": 30.0, "layout": 20.0, "lookup": 20.0, "emit": 10.0, "sort": 10.0, "names": 5.0, "rest": 5.0}
"""Milliseconds of each stage at the incumbent: 100 together, 5 of which no knob reaches."""

MODEL: dict[str, Any] = {
    "stages": STAGES,
    "knobs": KNOBS,
    "sigma": 0.003,
    "seed": 1,
    "sleep_s": 0.0,
    "offset": 0.0,
    "unit": "ms",
    "exit": 0,
}
"""What the benchmark reads: noise of one run (sigma, log-normal), real seconds of a run, what is added, its exit."""

COMMANDS: dict[str, Any] = {
    "probe": 'python3 -Bc "import engine; print(engine.__file__)"',
    "benchmark": {"run": "python3 -B bench/bench.py", "timeout": "60s"},
    "validate": {"run": "python3 -B bench/validate.py", "timeout": "60s"},
}

_DATE = "2024-01-02T03:04:05Z"
_AUTHOR = {
    **{
        f"GIT_{who}_{what}": said
        for who in ("AUTHOR", "COMMITTER")
        for what, said in (("NAME", "A User"), ("DATE", _DATE))
    },
    **{f"GIT_{who}_EMAIL": "user@example.org" for who in ("AUTHOR", "COMMITTER")},
}
"""The user's identity and clock: the same repository has the same commit everywhere."""


@dataclass(frozen=True)
class Lane:
    """A lane of a plan; what is left out follows from its id.

    Attributes:
        id: the lane, and the entry of the campaign that it pursues.
        agent: the agent's spec.
        globs: what it may write; by default everything in its knob's folder.
        more: further keys of the lane in the plan's file (`budget`, `submissions`, `deadline` …).
        entry: further keys of its entry in the campaign's file.
    """

    id: str
    agent: str
    globs: Sequence[str] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    entry: Mapping[str, Any] = field(default_factory=dict)

    @property
    def plan(self) -> dict[str, Any]:
        """The lane in the plan's file."""
        globs = list(self.globs or (f"engine/{self.id}/**",))
        return {"id": self.id, "entry": self.id, "globs": globs, "agent": self.agent, **self.more}

    @property
    def searched(self) -> dict[str, Any]:
        """Its entry in the campaign's file."""
        stage = KNOBS.get(self.id, self.id)
        return {
            "id": self.id,
            "plane": "algorithm",
            "hypothesis": f"the {stage} stage does more than it must",
            "stage": stage,
            "headroom": 0.15,
            **self.entry,
        }


def knob(factor: float = 1.0, answer: str = "right") -> str:
    """A knob's module."""
    return f"FACTOR = {factor}\nANSWER = {answer!r}\n"


def synthetic(folder: Path, **model: Any) -> Path:
    """Make the repository, one commit on `main`; `model` changes what the benchmark reads."""
    files = {
        "README.md": "An engine with knobs.\n",
        ".gitignore": "__pycache__/\n",
        "engine/__init__.py": '"""The engine."""\n',
        "bench/model.json": json.dumps({**MODEL, **model}, indent=1) + "\n",
        **{f"bench/{path.name}": path.read_text() for path in (SYNTHETIC / "bench").glob("*.py")},
        **{f"engine/{name}/__init__.py": f'"""The part {name}."""\n' for name in KNOBS},
        **{f"engine/{name}/knob.py": knob() for name in KNOBS},
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "init", "-q", "-b", "main", "--template=")
    commit(folder, "The engine, all knobs at 1")
    return folder


def commit(repo: Path, message: str) -> str:
    """Commit everything; return the commit."""
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", message)
    return git(repo, "rev-parse", "HEAD")


def git(repo: Path, *args: str) -> str:
    """What git prints; raise when it fails."""
    env = {**os.environ, **_AUTHOR}
    return subprocess.run(["git", *args], cwd=repo, env=env, capture_output=True, check=True, text=True).stdout.strip()


def frozen(repo: Path, lanes: Sequence[Lane], **overrides: Any) -> RoundPlan:
    """The frozen plan of these lanes, without any file; `overrides` replace its fields (`budget` of a lane: `more`)."""
    fields: dict[str, Any] = {
        "id": "r1",
        "campaign": "synthetic",
        "campaign_digest": "0" * 64,
        "incumbent": git(repo, "rev-parse", "HEAD"),
        "metric": Metric(name="latency_ms", direction=Direction.LOWER, unit="ms"),
        "gates": Gates(pairs=4, repetitions=1, rollback=0.01, noise=0.1, validator=_hashes(repo, "bench/validate.py")),
        "protected": ("bench/**",),
        "devices": (DeviceSet(name="cpu"),),
        "commands": Commands(
            probe=Command(run=COMMANDS["probe"], timeout_s=60),
            benchmark=Command(run=COMMANDS["benchmark"]["run"], timeout_s=60),
            validate_=Command(run=COMMANDS["validate"]["run"], timeout_s=60),
        ),
        "lanes": tuple(LanePlan(**{**lane.plan, "entry": Entry(**lane.searched)}) for lane in lanes),
        "deadline_s": 300.0,
    }
    return RoundPlan.model_validate({**fields, **overrides})


def _hashes(repo: Path, *paths: str) -> tuple[FileHash, ...]:
    return tuple(FileHash(path=path, sha256=hashlib.sha256((repo / path).read_bytes()).hexdigest()) for path in paths)


def write_plan(folder: Path, repo: Path, lanes: Sequence[Lane], **overrides: Any) -> Path:
    """Write `campaign.yaml` and `round.yaml`, whose path is returned.

    `overrides` replace keys of the files; `campaign=…` and `gates=…` are merged into the campaign's.
    """
    folder.mkdir(parents=True, exist_ok=True)
    campaign = _campaign(repo, lanes, overrides.pop("campaign", {}), overrides.pop("gates", {}))
    round_ = {
        "round": "r1",
        "campaign": "campaign.yaml",
        "devices": [{"name": "cpu"}],
        "lanes": [lane.plan for lane in lanes],
        "composition": "stepwise",
        "deadline": "5m",
        "aa_every": 6,
    }
    _dump(folder / "campaign.yaml", campaign)
    _dump(folder / "round.yaml", {**round_, **overrides})
    return folder / "round.yaml"


def _campaign(repo: Path, lanes: Sequence[Lane], more: Mapping[str, Any], gates: Mapping[str, Any]) -> dict[str, Any]:
    validator = {"validator": ["bench/validate.py"]}
    return {
        "campaign": "synthetic",
        "incumbent": git(repo, "rev-parse", "HEAD"),
        "metric": {"name": "latency_ms", "direction": "lower", "unit": "ms"},
        "gates": {"pairs": 4, "repetitions": 1, "rollback": 0.01, "noise": 0.1, **validator, **gates},
        "protected": ["bench/**"],
        "commands": COMMANDS,
        "entries": [lane.searched for lane in lanes],
        **more,
    }


def _dump(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(yaml.safe_dump(dict(data), sort_keys=False, width=200))
