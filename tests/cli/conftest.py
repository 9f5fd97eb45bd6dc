"""The command line as its tests use it: called in process, on a real repository, with a state directory of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Protocol

import pytest
from click.testing import CliRunner, Result

from orch.cli.main import cli


class Orch(Protocol):
    """Run `orch ARGS` and return its result."""

    def __call__(self, *args: str) -> Result: ...


@pytest.fixture
def orch() -> Orch:
    """The command line, called as a user in the current folder would."""
    return lambda *args: CliRunner().invoke(cli, args, prog_name="orch")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory that does not exist yet."""
    path = tmp_path / "state"
    monkeypatch.setenv("ORCH_STATE", str(path))
    for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
def repo(make_repo: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project, and the current folder."""
    path = make_repo(tmp_path / "project", {"slug.py": "", "tests/test_slug.py": "", "check.sh": "exit 1\n"})
    monkeypatch.chdir(path)
    return path


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with a file of `golden/`; `ORCH_UPDATE_GOLDEN=1` writes it instead."""

    def compare(name: str, text: str) -> None:
        path = Path(__file__).with_name("golden") / name
        if os.environ.get("ORCH_UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare


CAMPAIGN = """\
campaign: parser
incumbent: INCUMBENT
metric: {name: latency, direction: lower, unit: ms}
gates: {pairs: 8, rollback: 1%, noise: 5%, validator: [bench/check.py]}
protected: ["docs/**"]
commands:
  setup: {run: "true", timeout: 1m}
  benchmark: sh bench/run.sh --input bench/input.json
  validate: python3 bench/check.py
entries:
  - {id: tokens, plane: algorithm, stage: tokenize, hypothesis: Scan bytes, headroom: 20%}
  - id: format
    plane: memory
    stage: format
    hypothesis: Write into one buffer
    headroom: 0.15
  - {id: spare, plane: io, hypothesis: Map the file, headroom: 10%}
"""

ROUND = """\
round: r01
campaign: campaign.yaml
devices:
  - name: quiet
lanes:
  - id: tok
    entry: tokens
    globs: ["src/tok*.py"]
    agent: cmd:true
    budget: {attempts: 2, wall: 30m, tokens: 200000, usd: 3}
  - id: fmt
    entry: format
    globs: ["src/fmt.py"]
    agent: cmd:true
deadline: 2h
"""


class Written:
    """A repository with a campaign and a round plan beside each other in it; the current folder."""

    def __init__(self, repo: Path, incumbent: str) -> None:
        self.repo, self.incumbent = repo, incumbent
        self.campaign, self.round = repo / "campaign.yaml", repo / "r01.yaml"

    def write(self, campaign: str = CAMPAIGN, round_: str = ROUND) -> Path:
        """Write both; `INCUMBENT` stands for the commit."""
        self.campaign.write_text(campaign.replace("INCUMBENT", self.incumbent))
        self.round.write_text(round_.replace("INCUMBENT", self.incumbent))
        return self.round

    def edit(self, *edits: tuple[str, str], campaign: bool = False) -> Path:
        """Write both, with replacements in one of them."""
        text = CAMPAIGN if campaign else ROUND
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        return self.write(campaign=text) if campaign else self.write(round_=text)


@pytest.fixture
def optimized(
    make_repo: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kit: ModuleType
) -> Written:
    """A small project to be optimized."""
    files = {
        "src/tok.py": "",
        "src/fmt.py": "",
        "bench/run.sh": "",
        "bench/check.py": "check",
        "bench/input.json": "{}",
    }
    path = make_repo(tmp_path / "project", {**files, "docs/a.md": "", "config.sh": ""})
    monkeypatch.chdir(path)
    written = Written(path, kit.git(path, "rev-parse", "HEAD"))
    written.write()
    return written
