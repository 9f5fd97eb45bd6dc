"""A whole pilot at the synthetic repository: `python -m tests.bench.pilot -o FOLDER`.

Three lanes of scripted agents think for some seconds, submit, wait for the verdict, think again and submit something
better. The benchmark sleeps for a while in real processes, and its value comes from a seeded noise model, so the gains
are known and the times are real. Pilot, report (text and JSON), and the replay of its first round are written down.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from ..rounds import kit
from ..rounds import lanes as scripted

TRIES = {"parse": (0.7, 0.5), "layout": (0.8, 0.5), "index": (0.7, 0.4)}
"""What each lane makes of its stage of 30, 20 and 20 milliseconds of 100: first, then better."""

WON = 0.37
"""What the better ones win together: 15, 10 and 12 of 100."""


def main() -> None:
    """Run the pilot and its replay."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="orch-pilot-") as folder:
        repo = kit.synthetic(Path(folder) / "repo", sleep_s=options.sleep)
        plans = _write(Path(folder) / "plans", repo, options)
        ran = _orch(repo, options.out / "report", plans / "pilot.yaml")
        if ran:
            first = f"round-synthetic-{options.id}-p1-r1"
            _orch(repo, options.out / "replay", "--replay", first)
            for path in plans.iterdir():
                shutil.copyfile(path, options.out / path.name)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.pilot", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True, help="the folder for what it shows")
    parser.add_argument("--id", default="three", help="the pilot's id (default three)")
    parser.add_argument("--pairs", type=int, default=3, help="repetitions of both policies (default 3)")
    parser.add_argument("--think", type=float, default=20.0, help="seconds before each submission (default 20)")
    parser.add_argument("--sleep", type=float, default=0.2, help="seconds of one benchmark run (default 0.2)")
    return parser.parse_args()


def _write(folder: Path, repo: Path, options: argparse.Namespace) -> Path:
    lanes = [kit.Lane(name, _agent(name, options.think)) for name in TRIES]
    kit.write_plan(folder, repo, lanes, deadline="20m", aa_every=20)
    pilot = {"pilot": options.id, "plan": "round.yaml", "repetitions": options.pairs}
    rule = {"target": WON, "fraction": 0.8, "threshold": 0.8}
    (folder / "pilot.yaml").write_text(yaml.safe_dump({**pilot, **rule}, sort_keys=False))
    return folder


def _agent(lane: str, think_s: float) -> str:
    return scripted.cmd(*(line for factor in TRIES[lane] for line in _try(lane, factor, think_s)))


def _try(lane: str, factor: float, think_s: float) -> tuple[str, ...]:
    return f"sleep {think_s:g}", scripted.turn(lane, factor), scripted.SUBMIT, scripted.WAIT


def _orch(repo: Path, out: Path, *args: str | Path) -> bool:
    """Run `orch pilot`, and once more for the document, which costs nothing; write down what it printed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "orch.cli.main", "pilot", *map(str, args), "--repo", str(repo)]
    for suffix, more in ((".txt", ()), (".json", ("--json",))):
        done = subprocess.run([*argv, *more], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            return False
        out.with_suffix(suffix).write_text(done.stdout)
    return True


if __name__ == "__main__":
    main()
