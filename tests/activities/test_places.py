"""Where an attempt's commands run: what they get in their environment, and what their fence lets them write."""

from __future__ import annotations

from pathlib import Path

import pytest

from orch.activities import artifacts, places, processes
from orch.activities.home import Home
from orch.activities.places import FIRST_PORT, PORT_BLOCKS, PORTS_PER_BLOCK, Grants, Place
from orch.activities.sandbox import AGENT, BUILD, MEASURE, REVIEW, Profile
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


def test_a_command_gets_its_working_copy_private_folders_and_what_it_is_granted(home: Home) -> None:
    place = _place(home)
    for name in ("tree", "progress/0", "git"):
        (place.folder / name).mkdir(parents=True)
    (place.folder / "prompt.md").touch()

    grants = Grants(writable=(place.folder / "progress/0",), readable=(place.folder / "prompt.md",))
    words = place.fenced(("true",), MEASURE, grants, sandbox=True)

    def mounted(option: str) -> set[str]:
        targets = [Path(words[index + 2]) for index, word in enumerate(words) if word == option]
        return {str(path.relative_to(place.folder)) for path in targets if path.is_relative_to(place.folder)}

    assert mounted("--bind-try") == {"tree", "home", "tmp", "progress/0"}
    assert mounted("--ro-bind-try") == {"git", "prompt.md"}

    words = place.fenced(("true",), AGENT, Grants(writable=(place.folder / "git",)), sandbox=True)

    assert mounted("--bind-try") == {"tree", "home", "tmp", "git"}
    assert mounted("--ro-bind-try") == set()


@pytest.mark.parametrize(
    ("profile", "network", "closed"),
    [(AGENT, None, False), (REVIEW, None, False), (BUILD, None, False), (MEASURE, None, True), (MEASURE, True, False)],
)
def test_the_profile_decides_about_the_network_unless_the_contract_does(
    home: Home, profile: Profile, network: bool | None, closed: bool
) -> None:
    words = _place(home).fenced(("true",), profile, Grants(network=network), sandbox=True)
    assert ("--unshare-net" in words) is closed


def test_what_the_user_exposes_is_shown(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shared").mkdir()
    monkeypatch.setenv("ORCH_EXPOSE", f"{tmp_path}/shared:")
    words = _place(home).fenced(("true",), AGENT, Grants(), sandbox=True)
    assert f"--ro-bind-try {tmp_path}/shared {tmp_path}/shared" in " ".join(words)


def test_without_a_sandbox_the_command_is_itself(home: Home) -> None:
    assert _place(home).fenced(("true",), AGENT, Grants(), sandbox=False) == ("true",)


def test_a_frozen_command_writes_its_own_temporary_files_and_nothing_else(home: Home, tmp_path: Path) -> None:
    place = _place(home, repo=str(tmp_path / "repo"), path="/usr/bin:/bin")
    (place.folder / "tree").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    environment = place.environment({"TMPDIR": str(tmp_path / "out")})
    grants = Grants(frozen=True, tmp=tmp_path / "out")
    script = "for at in . ~ ../tmp $TMPDIR; do (: > $at/made) 2>/dev/null && echo $at; done"
    argv = place.fenced(("sh", "-c", script), MEASURE, grants, sandbox=True)
    done = processes.run(processes.Command(argv, place.tree, environment), timeout_s=30)
    assert done.stdout.decode() == f"{tmp_path}/out\n"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["made"]


def test_a_command_opens_the_devices_that_it_is_granted_and_no_others(home: Home, tmp_path: Path) -> None:
    usual = {"console", "full", "null", "ptmx", "random", "tty", "urandom", "zero"}
    found = [path for path in sorted(Path("/dev").iterdir()) if path.is_char_device() and path.name not in usual]
    if not found:
        pytest.skip("this host has no other devices")
    place = _place(home, repo=str(tmp_path / "repo"), path="/usr/bin:/bin")
    (place.folder / "tree").mkdir(parents=True)
    environment, said = place.environment({}), []
    for devices in ((), (found[0], Path("/dev/no-such-device"))):
        argv = place.fenced(("sh", "-c", f"test -c {found[0]}"), MEASURE, Grants(devices=devices), sandbox=True)
        said.append(processes.run(processes.Command(argv, place.tree, environment), timeout_s=30).exit.ok)
    assert said == [False, True]
