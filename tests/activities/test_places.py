"""Where an attempt's commands run: what they get in their environment, and what their fence lets them write."""

from __future__ import annotations

from pathlib import Path

import pytest

from orch.activities import artifacts, places
from orch.activities.home import Home
from orch.activities.places import FIRST_PORT, PORT_BLOCKS, PORTS_PER_BLOCK, Place
from orch.workflows.errors import HostFaultError
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.goal import PrepareRun, SandboxMode
from orch.workflows.model.promotion import PromoteTarget


def _place(home: Home, *, candidate: int = 1, repo: str = "/home/me/project", path: str = "/usr/bin") -> Place:
    key = AttemptKey(run="goal-x", iteration=1, candidate=candidate, binding=candidate)
    request = PrepareRun(
        run="goal-x",
        repo=repo,
        contract=Contract(goal="x", rungs=(Rung(name="a", run="true"),)),
        agents=("cmd:true",),
        sandbox=SandboxMode.AUTO,
        promote=PromoteTarget(),
        path=path,
    )
    artifacts.keep_request(home, request)
    return Place(home, key, home.attempt(key))


def test_environment_is_scrubbed_and_private(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("SOME_TOKEN", "secret")

    environment = _place(home).environment({"MORE": "1"})

    assert not {"GIT_DIR", "CLAUDECODE", "SOME_TOKEN"} & environment.keys()
    assert Path(environment["HOME"]).is_relative_to(home.root)
    assert Path(environment["TMPDIR"]).is_dir()
    assert (environment["ORCH_CANDIDATE"], environment["ORCH_ITERATION"], environment["MORE"]) == ("1", "1", "1")


def test_commands_find_the_programs_of_whoever_started_the_run(home: Home) -> None:
    assert _place(home, path="/opt/tools:/usr/bin").environment({})["PATH"] == "/opt/tools:/usr/bin"


def test_every_attempt_has_ports_of_its_own_until_it_gives_them_back(home: Home) -> None:
    first, second = _place(home), _place(home, candidate=2)

    ports = [int(place.environment({})["ORCH_PORT"]) for place in (first, second, first)]
    first.release_ports()
    again = int(_place(home, candidate=3).environment({})["ORCH_PORT"])

    assert ports == [FIRST_PORT, FIRST_PORT + PORTS_PER_BLOCK, FIRST_PORT]
    assert again == FIRST_PORT


def test_taken_ports_are_a_fault_of_the_host_and_not_of_the_candidate(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "PORT_BLOCKS", 1)
    _place(home).environment({})

    with pytest.raises(HostFaultError, match="port blocks"):
        _place(home, candidate=2).environment({})
    assert PORT_BLOCKS == 200


def test_real_tmp_is_kept_when_project_programs_or_command_lie_there(home: Home) -> None:
    quiet = _place(home)
    assert "/tmp" in _binds(quiet, ("true",)) or home.root.is_relative_to("/tmp")
    for place, argv in (
        (quiet, ("sh", "-c", "sh /tmp/agent.sh")),
        (_place(home, repo="/tmp/project"), ("true",)),
        (_place(home, path="/tmp/venv/bin:/usr/bin"), ("true",)),
    ):
        assert "/tmp" not in _binds(place, argv)


def _binds(place: Place, argv: tuple[str, ...]) -> list[str]:
    words = place.fenced(argv, sandbox=True, network=False)
    return [words[index + 2] for index, word in enumerate(words) if word == "--bind"]


def test_without_a_sandbox_the_command_is_itself(home: Home) -> None:
    assert _place(home).fenced(("true",), sandbox=False, network=True) == ("true",)
