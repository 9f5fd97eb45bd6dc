"""The real agents, the model server they talk to, and agents started without `orch`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orch import Client

from .direct import Direct, ended
from .model.server import ModelServer
from .starting import Runs

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(os.environ.get("ORCH_TEST_AGENTS") or ROOT / ".cache" / "agents") / "bin"
"""Where `scripts/install_test_agents.py` puts them."""

PRICES = """\
dated = 2026-11-29
["fake-model"]
input = 3.0
cached = 0.3
output = 15.0
["gpt-5.5"]
input = 1.25
cached = 0.125
output = 10.0
"""
"""US dollars per million tokens; the model server counts 1,000 fresh, 200 cached and 50 written a request."""

ALWAYS = ("codex", "pi")
OPTIONAL = ("claude",)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `program` runs once for each: those that must be there, and those that somebody installed."""
    if "program" in metafunc.fixturenames:
        metafunc.parametrize("program", [*ALWAYS, *(name for name in OPTIONAL if (PROGRAMS / name).exists())])


@pytest.fixture(scope="session")
def agent_programs() -> Path:
    """The folder of the agents' programs, for a PATH; a missing one fails the test and is never skipped."""
    if missing := [name for name in ALWAYS if not (PROGRAMS / name).exists()]:
        pytest.fail(f"no {' and no '.join(missing)} in {PROGRAMS}: run `make test-agents`, which installs them")
    return PROGRAMS


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    """The provider of all agents; a run of its own per agent process keeps them apart."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def start_agent(
    agent_programs: Path, model_server: ModelServer, make_repo: Callable[..., Path], tmp_path: Path
) -> Iterator[Callable[[str, str], Direct]]:
    """Start an agent at a scenario, each in a repository, a home and a run of its own; afterwards none may be left."""
    started: list[Direct] = []

    def start(name: str, scenario: str) -> Direct:
        run = f"{tmp_path.name}-{len(started)}"
        folder = tmp_path / str(len(started))
        url = model_server.url(scenario, run=run)
        started.append(Direct(name, run, url, agent_programs, make_repo(folder / "tree"), folder / "home"))
        return started[-1]

    yield start
    left = [process for agent in started for process in agent.processes() if not ended(process, within=20)]
    for agent in started:
        agent.kill()
    assert not left


@pytest.fixture
def runs(
    client: Client,
    agent_programs: Path,
    model_server: ModelServer,
    make_repo: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Runs]:
    """Starts goal runs of real agents; afterwards no process, copy, slot or port block of theirs may be left."""
    (client.home.root / "prices.toml").write_text(PRICES)
    monkeypatch.setenv("PATH", f"{agent_programs}{os.pathsep}{os.environ['PATH']}")
    projects = (make_repo(tmp_path / f"project-{number}", {"readme.txt": "one\n"}) for number in itertools.count())
    started = Runs(client, model_server, projects)
    yield started
    assert [started.supervised(run) for run in started.ids] == [{}] * len(started.ids)
    copies = [tree for run in started.ids for tree in client.home.run(run).glob("attempts/**/tree")]
    assert copies == []
    held = [*client.home.slots.glob("[0-9]*"), *client.home.ports.glob("[0-9]*")]
    assert [path for path in held if path.read_text().partition("/")[0] in started.ids] == []
