#!/usr/bin/env python3
"""Optimization rounds on a real package: three scripted lanes make the parser of sqlparse 0.5.3 faster.

The release comes as its source distribution from the package index. The benchmark parses a large script of SQL, the
smoke test is the release's own test suite, and the validator compares every tree with the release's. `lexing` and
`grouping` are independent; `matching` speeds up a function that `grouping` mostly no longer calls, so it passes
alone and fails its composition step. It goes back to planned, has a round of its own at the new incumbent, and is
rejected there. `make demo-round` runs both rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml
from shared import BIN, DemoError, call, commit, console, head, orch, sdist

from orch.worker.settings import load_settings

HERE = Path(__file__).resolve().parent
PACKAGE, VERSION = "sqlparse", "0.5.3"
PREFIX = "orch-round-"


@dataclass(frozen=True)
class Lane:
    """A lane: what it may write, what it is expected to win, and what is told of it."""

    id: str
    path: str
    stage: str
    headroom: str
    hypothesis: str


LANES = (
    Lane("lexing", "sqlparse/lexer.py", "lexing", "25%", "one alternation finds a token faster than sixty patterns do"),
    Lane("grouping", "sqlparse/engine/grouping.py", "grouping", "50%", "most passes over a tree find nothing to group"),
    Lane("matching", "sqlparse/utils.py", "grouping", "15%", "most comparisons of tokens fail at the type already"),
)

ROUNDS = {"r1": LANES, "r2": LANES[2:]}
"""The rounds with their lanes: the second one has the lane that lost its gain in the first."""


@dataclass(frozen=True)
class Scene:
    """What the rounds start from: the project, the campaign's id, and the folder of its file and the round plans."""

    repo: Path
    campaign: str
    plans: Path

    def run(self, name: str) -> str:
        """The run of a round."""
        return f"round-{self.campaign}-{name}"


def set_scene(folder: Path, cache: Path, campaign: str, pairs: int) -> Scene:
    """Make the project: the release as published, then the benchmark; beside it campaign and round plans."""
    repo = folder / PACKAGE
    call("cp", "-R", sdist(PACKAGE, VERSION, cache), repo)
    call("git", "init", "--quiet", "--initial-branch", "main", repo)
    commit(repo, f"{PACKAGE} {VERSION}, as published")
    shutil.copytree(HERE / "benchmark", repo / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(HERE / "lanes", repo / "agents")
    with tempfile.TemporaryDirectory() as out:
        env = {**os.environ, "ORCH_RESULT": f"{out}/result.json", "ORCH_OUTPUT": out}
        call(sys.executable, "-B", "bench/bench.py", cwd=repo, env=env)
        shutil.copyfile(f"{out}/trees.txt", repo / "bench" / "expected.txt")
    commit(repo, "A benchmark of the parser, and what the scripted agents will do")
    write(folder / "campaign.yaml", campaign_file(campaign, head(repo), pairs))
    for name, lanes in ROUNDS.items():
        write(folder / f"{name}.yaml", round_file(name, lanes))
    return Scene(repo, campaign, folder)


def campaign_file(campaign: str, incumbent: str, pairs: int) -> dict[str, object]:
    """The campaign: what is measured and what may be tried."""
    return {
        "campaign": campaign,
        "incumbent": incumbent,
        "metric": {"name": "parse", "direction": "lower", "unit": "texts"},
        "gates": {
            "pairs": pairs,
            "repetitions": 1,
            "rollback": "4.5%",
            "noise": "10%",
            "validator": ["bench/validate.py", "bench/expected.txt"],
        },
        "protected": ["bench/**", "agents/**", "tests/**"],
        "commands": {
            "probe": 'python -Bc "import sqlparse; print(sqlparse.__file__)"',
            "smoke": {"run": "python -Bm pytest -q -p no:asyncio -p no:cacheprovider tests", "timeout": "2m"},
            "benchmark": {"run": "python -B bench/bench.py", "timeout": "1m"},
            "validate": {"run": "python -B bench/validate.py", "timeout": "1m"},
        },
        "entries": [
            {
                "id": lane.id,
                "plane": "algorithm",
                "hypothesis": lane.hypothesis,
                "stage": lane.stage,
                "headroom": lane.headroom,
            }
            for lane in LANES
        ],
    }


def round_file(name: str, lanes: tuple[Lane, ...]) -> dict[str, object]:
    """A round: one scripted agent per lane, which applies its patch and submits."""
    return {
        "round": name,
        "campaign": "campaign.yaml",
        "devices": [{"name": "cpu"}],
        "deadline": "30m",
        "lanes": [
            {
                "id": lane.id,
                "entry": lane.id,
                "globs": [lane.path],
                "agent": f"cmd:git apply agents/{lane.id}.patch && .orch/round submit",
                "budget": {"wall": "5m"},
            }
            for lane in lanes
        ],
    }


def write(path: Path, data: dict[str, object]) -> None:
    """Write a YAML file."""
    path.write_text(yaml.safe_dump(data, sort_keys=False, width=200), encoding="utf-8")


def play(scene: Scene) -> None:
    """Run the rounds, look at them, check that they are what the demo promises. Raises DemoError."""
    console.print(f"[bold]{PACKAGE} {VERSION}[/bold] in {scene.repo}")
    for lane in LANES:
        console.print(f"  [cyan]{lane.id:<9}[/cyan] {lane.path:<28} {lane.hypothesis}")
    orch("check", scene.plans / "r1.yaml", "--repo", scene.repo)
    begin(scene, "r1", "--promote", "branch:faster")
    check(scene)
    begin(scene, "r2", ends=1)  # nothing is gained


def begin(scene: Scene, name: str, *options: str, ends: int = 0) -> None:
    """Run a round to its end and show it. Raises DemoError when it ends with another exit status."""
    run = scene.run(name)
    status = orch("start", "round", scene.plans / f"{name}.yaml", "--repo", scene.repo, *options, quiet=True)
    orch("show", run)
    if status != ends:
        raise DemoError(f"{run} ended with exit status {status}, not with {ends}")


def events(run: str) -> list[dict[str, object]]:
    """The round's ledger."""
    return [json.loads(line) for line in call(BIN / "orch", "ledger", run, "--json").splitlines()]


def check(scene: Scene) -> None:
    """Compare the first round's outcome with what the demo promises."""
    decided = next(event for event in events(scene.run("r1")) if event["type"] == "round_decided")
    if decided["lanes"] != ["grouping", "lexing"]:
        raise DemoError(f"expected grouping and lexing in the new incumbent, found {decided['lanes']}")
    changed = call("git", "diff", "--name-only", "main", "faster", cwd=scene.repo).split()
    if changed != ["sqlparse/engine/grouping.py", "sqlparse/lexer.py"]:
        raise DemoError(f"expected the files of these lanes on the branch, found {changed}")


def keep(scene: Scene, folder: Path) -> None:
    """Write report and ledger document of every round into a folder, and the files that they were started with."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ROUNDS:
        run = scene.run(name)
        if orch("report", run, "-o", folder / f"{name}.html"):
            raise DemoError("no report was written")
        shutil.copyfile(load_settings().home.run(run) / "round-ledger.json", folder / f"{name}-ledger.json")
    for path in scene.plans.glob("*.yaml"):
        shutil.copyfile(path, folder / path.name)


def main() -> int:
    """Read the options and play; the exit status is 0 only when everything was as promised."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dir", type=Path, help="an empty folder for the project (default: a new temporary one)")
    parser.add_argument("--cache", type=Path, default=HERE / ".cache", help="where the source distributions are kept")
    parser.add_argument("--campaign", help="the campaign's id; a round is run once in each (default: a new one)")
    parser.add_argument("--pairs", type=int, default=8, help="AB/BA pairs of one measurement")
    parser.add_argument("--example", type=Path, help="write reports, ledger documents and plans into this folder")
    options = parser.parse_args()
    os.environ["PATH"] = os.pathsep.join((str(BIN), os.environ.get("PATH", os.defpath)))  # `python` is this one
    folder = (options.dir or Path(tempfile.mkdtemp(prefix=PREFIX))).resolve()
    campaign = options.campaign or f"{PACKAGE}-{folder.name.removeprefix(PREFIX).lower()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scene = set_scene(folder, options.cache.resolve(), campaign, options.pairs)
        play(scene)
        if options.example is not None:
            keep(scene, options.example)
    except (DemoError, OSError) as error:
        console.print(f"error: {error}", style="red", markup=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
