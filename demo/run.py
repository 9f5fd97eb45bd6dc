#!/usr/bin/env python3
"""A goal run on a real package: four scripted agents compete to fix a bug that sqlparse 0.5.0 shipped.

The release comes as its source distribution from the package index, with its own test suite. The ladder is
that suite and the regression tests that 0.5.1 brought with the fix. `make demo` runs it.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import yaml
from shared import BIN, DemoError, call, commit, console, orch, sdist

HERE = Path(__file__).resolve().parent
PACKAGE, BROKEN, FIXED = "sqlparse", "0.5.0", "0.5.1"
LIBRARY_FILE = Path("sqlparse/keywords.py")
TEST_FILE = Path("tests/test_tokenize.py")
ISSUE = "issue532"
GOAL = "Read ASC, DESC and NULLS FIRST/LAST, alone or together, as one order token (issue 532)"
AGENTS = ("upstream_fix", "half_a_fix", "edit_the_tests", "do_nothing")
TELLS = (
    "applies upstream's fix of 0.5.1: should win",
    "does half of it: some of the new tests pass",
    "edits the tests: they are protected, so its edit is undone",
    "does nothing: being cheap must not win",
)
STEPS = {
    "run_started": "",
    "baseline_measured": "baseline taken and measured",
    "iteration_decided": "four candidates made, measured, ranked",
    "gate_measured": "the winner's tree measured afresh",
    "run_promoted": "promoted to the working tree",
}


@dataclass(frozen=True)
class Scene:
    """What the run starts from: the project, the file with upstream's fix, the contract."""

    repo: Path
    fixed: Path
    contract: Path


def contract() -> str:
    """The ladder, cheapest first: upstream's regression tests in two parts, then the whole suite."""
    pytest = f"{shlex.quote(str(BIN / 'pytest'))} -q -p no:asyncio"
    both = "(asc or desc) and nulls"
    rungs = {
        "regression alone": f"{pytest} {TEST_FILE} -k 'parse_order and not ({both})'",
        "regression together": f"{pytest} {TEST_FILE} -k 'parse_order and {both}'",
        "suite": f"{pytest} tests",
    }
    ladder = [{"name": name, "run": run, "timeout": "2m"} for name, run in rungs.items()]
    return yaml.safe_dump({"goal": GOAL, "rungs": ladder, "protected": ["tests/**"]}, sort_keys=False, width=200)


def set_scene(folder: Path, cache: Path) -> Scene:
    """Make the project: one commit with the release as published, one with upstream's regression tests."""
    broken, fixed = sdist(PACKAGE, BROKEN, cache), sdist(PACKAGE, FIXED, cache)
    repo = folder / PACKAGE
    call("cp", "-R", broken, repo)
    call("git", "init", "--quiet", "--initial-branch", "main", repo)
    commit(repo, f"{PACKAGE} {BROKEN}, as published")
    (repo / TEST_FILE).write_bytes((fixed / TEST_FILE).read_bytes())
    commit(repo, f"Regression tests of {FIXED}")
    path = folder / "contract.yaml"
    path.write_text(contract(), encoding="utf-8")
    return Scene(repo=repo, fixed=fixed / LIBRARY_FILE, contract=path)


def changelog(fixed: Path) -> str:
    """The entry of upstream's changelog that names the bug."""
    entries = fixed.joinpath("CHANGELOG").read_text(encoding="utf-8").split("\n* ")
    return next(" ".join(entry.split("\n\n")[0].split()) for entry in entries if ISSUE in entry)


def agent_options(scene: Scene) -> list[str]:
    """One `--agent` per script; a script is an agent like any command that edits files."""
    argument = {"upstream_fix": [str(scene.fixed)]}
    lines = [shlex.join(["sh", str(HERE / "agents" / f"{name}.sh"), *argument.get(name, [])]) for name in AGENTS]
    return [word for line in lines for word in ("--agent", f"cmd:{line}")]


def check(scene: Scene) -> None:
    """Compare the project with what the demo promises: upstream's fix, uncommitted, and nothing else."""
    changed = call("git", "status", "--porcelain", cwd=scene.repo)
    if changed != f" M {LIBRARY_FILE}\n" or (scene.repo / LIBRARY_FILE).read_bytes() != scene.fixed.read_bytes():
        raise DemoError(f"expected only upstream's fix in {scene.repo}, found:\n{changed or 'no change'}")


def play(folder: Path, cache: Path) -> None:
    """Set the scene, run the goal, look at it, check it. Raises DemoError."""
    begun = time.monotonic()
    scene, run = set_scene(folder, cache), f"goal-demo-{int(time.time())}"
    console.print(f"[bold]{PACKAGE} {BROKEN}[/bold] with its own test suite, in {scene.repo}")
    console.print(f"the bug, in upstream's words: {changelog(scene.fixed.parents[1])}")
    for index, (name, tells) in enumerate(zip(AGENTS, TELLS, strict=True), 1):
        console.print(f"  candidate {index}  [cyan]{name:<15}[/cyan] {tells}")
    ready = time.monotonic()
    goal = ("start", "goal", "--repo", scene.repo, "--contract", scene.contract, "-n", str(len(AGENTS)))
    status = orch(*goal, *agent_options(scene), "--promote", "worktree", "--id", run, quiet=True)
    ended = time.monotonic()
    if status:
        raise DemoError(f"the run ended with exit status {status}; look at it with: orch show {run}")
    orch("show", run)
    orch("diff", run)
    check(scene)
    console.print(f"\n[bold]Times[/bold]\n  {ready - begun:5.1f} s  the project made")
    console.print(f"  {ended - ready:5.1f} s  the run, with the start of the engine where it was down; of these")
    times(run)
    farewell(scene, run)


def times(run: str) -> None:
    """What took how long, by the run's own ledger."""
    events = [json.loads(line) for line in call(BIN / "orch", "ledger", run, "--json").splitlines()]
    ends = {event["type"]: datetime.fromisoformat(event["at"]) for event in events}
    for before, after in pairwise(STEPS):
        console.print(f"    {(ends[after] - ends[before]).total_seconds():5.1f} s  {STEPS[after]}")


def farewell(scene: Scene, run: str) -> None:
    """What the user should look at now."""
    tool = os.path.relpath(BIN / "orch")
    console.print(f"""
[bold]What to look at[/bold]
  the ranking above: upstream's fix won on the frozen ladder, and every other candidate has its reason
  the Web UI link above: a page for the run with the table of candidates, and one for each attempt

  git -C {scene.repo} diff
      the winner's change, uncommitted; it equals upstream's {FIXED} byte for byte
  {tool} logs {run} --candidate 2
      what the half fix left red
  {tool} restore {run}
      takes the change back; `promote` instead of `restore` brings it again
  {tool} down
      stops the engine that the demo left running""")


def main() -> int:
    """Read the options and play; the exit status is 0 only when everything was as promised."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dir", type=Path, help="an empty folder for the project (default: a new temporary one)")
    parser.add_argument("--cache", type=Path, default=HERE / ".cache", help="where the source distributions are kept")
    options = parser.parse_args()
    folder = (options.dir or Path(tempfile.mkdtemp(prefix="orch-demo-"))).resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        play(folder, options.cache.resolve())
    except (DemoError, OSError) as error:
        console.print(f"error: {error}", style="red", markup=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
