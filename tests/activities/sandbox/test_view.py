"""What a command sees: the deepest mount decides, what programs need is put back, logins never are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities import processes
from orch.activities.sandbox import Access, Mount
from orch.activities.sandbox.registry import LAUNCHERS
from orch.activities.sandbox.view import Needs, box, credentials

See = Callable[..., str]


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The user's home, with a login, a private note and programs in the usual places."""
    home = tmp_path / "user"
    for name, text in {
        ".ssh/id": "key",
        "note": "private",
        ".local/bin/.keep": "",
        ".local/share/tool/v2/run": "#!/bin/sh\necho tool $0\n",
        ".local/share/other/data": "private",
        ".pack/bin/packed": "#!/bin/sh\ncat $(dirname $0)/../lib/text\n",
        ".pack/lib/text": "packed\n",
        ".pack/credentials.toml": "token",
        "lib/engine/bin/engine": "#!/bin/sh\necho engine\n",
    }.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
        (home / name).chmod(0o755)
    (home / ".local/bin/tool").symlink_to(home / ".local/share/tool/v2/run")
    (home / ".local/bin/wrapper").write_text(f'#!/bin/sh\nexec "{home}/lib/engine/bin/engine" "$@"\n')
    (home / ".local/bin/wrapper").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def needs(user: Path, tmp_path: Path) -> Callable[..., Needs]:
    """The needs of a command of an attempt, whose user has a checkout in the home directory."""
    attempt = tmp_path / "state/runs/r/attempts/a"
    for folder in (attempt / "tree", attempt / "tmp", user / "project", tmp_path / "state/runs/r/attempts/b/tree"):
        folder.mkdir(parents=True)
    (attempt / "tree/file").write_text("candidate\n")
    (attempt / "tree/check").write_text("check\n")
    (user / "project/file").write_text("user\n")

    def make(*argv: str, **more: object) -> Needs:
        path = f"{user}/.local/bin:{user}/.pack/bin:/usr/bin:/bin"
        given: dict[str, Any] = {
            "path": path,
            "state": tmp_path / "state",
            "tmp": attempt / "tmp",
            "tree": attempt / "tree",
            "names": frozenset({"file", "check"}),
            "repo": user / "project",
            **more,
        }
        return Needs(argv, **given)

    return make


@pytest.fixture
def see(needs: Callable[..., Needs]) -> See:
    """Run a script in a box and return what it printed."""

    def run(script: str, **more: object) -> str:
        need = needs("sh", "-c", script, **more)
        assert need.tree is not None
        argv = LAUNCHERS["bwrap"].wrap(need.argv, box(need, network=False))
        environment = {"PATH": need.path}
        done = processes.run(processes.Command(argv, need.tree, environment), timeout_s=20)
        return (done.stdout + done.stderr).decode()

    return run


def test_programs_run_from_wherever_they_are_installed(see: See, user: Path) -> None:
    assert see("tool; packed; wrapper") == f"tool {user}/.local/bin/tool\npacked\nengine\n"


def test_nothing_else_of_a_home_is_seen(see: See, user: Path) -> None:
    found = see(f"cd {user} && find . | sort | grep -v lib/engine").split()
    assert found == [
        ".", "./.local", "./.local/bin", "./.local/bin/.keep", "./.local/bin/tool", "./.local/bin/wrapper",
        "./.local/share", "./.local/share/tool", "./.local/share/tool/v2", "./.local/share/tool/v2/run",
        "./.pack", "./.pack/bin", "./.pack/bin/packed", "./.pack/credentials.toml", "./.pack/lib", "./.pack/lib/text",
        "./lib", "./project",
    ]  # fmt: skip


def test_a_home_cannot_be_written(see: See, user: Path) -> None:
    assert "Read-only" in see(f"echo x > {user}/x")


@pytest.mark.parametrize("name", [".ssh", ".ssh/id", ".cargo/credentials.toml", ".config/gh"])
def test_a_login_is_not_shown_even_when_it_is_asked_for(see: See, user: Path, name: str) -> None:
    path = user / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text("secret")

    said = see(f"cat {path}/id {path}", expose=(path,))
    assert not {"secret", "key"} & set(said.split())
    assert credentials((path, user / "note")) == (path,)


def test_keys_of_the_engine_are_not_shown_wherever_they_lie(
    see: See, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    for name in ("ORCH_KEYS", "TEMPORAL_CONFIG_FILE", "TEMPORAL_TLS_CLIENT_KEY_PATH"):
        (tmp_path / "mine" / name).write_text("secret\n")
        monkeypatch.setenv(name, str(tmp_path / "mine" / name))
    (tmp_path / "mine/note").write_text("note\n")
    assert see(f"cat {tmp_path}/mine/*", expose=(tmp_path / "mine",)) == "note\n"


def test_locks_of_devices_are_not_shown_to_those_who_could_take_them(
    see: See, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = tmp_path / "shared/locks"
    locks.mkdir(parents=True)
    (locks / "orch-cpu-0.lock").touch()
    assert see(f"ls {locks}", expose=(tmp_path / "shared",)) == "orch-cpu-0.lock\n"

    monkeypatch.setenv("ORCH_LEASES", str(locks))
    assert see(f"ls {locks}", expose=(tmp_path / "shared",)) == ""


def test_a_login_beside_a_program_is_empty(see: See, user: Path) -> None:
    (user / ".cargo/bin").mkdir(parents=True)
    (user / ".cargo/credentials.toml").write_text("token")
    (user / ".cargo/config.toml").write_text("settings\n")

    assert see(f"cat {user}/.cargo/*.toml", path=f"{user}/.cargo/bin:/usr/bin:/bin") == "settings\n"


def test_what_the_user_exposes_is_read_and_not_written(see: See, user: Path) -> None:
    assert see(f"cat {user}/note; echo x > {user}/note", expose=(user / "note",)).startswith("private")
    assert (user / "note").read_text() == "private"


def test_a_file_that_the_command_names_is_shown_alone(see: See, user: Path) -> None:
    assert (
        see(f"cat {user}/note; ls {user}/.ssh 2>&1")
        == f"privatels: cannot access '{user}/.ssh': No such file or directory\n"
    )


def test_the_working_copy_stands_in_for_the_checkout(see: See, user: Path) -> None:
    """M12, G47: absolute paths into the checkout, such as in a carried environment, mean the candidate's files."""
    assert see(f"cat {user}/project/file; echo more >> {user}/project/file; cat file") == "candidate\ncandidate\nmore\n"
    assert (user / "project/file").read_text() == "user\n"


def test_the_working_copy_stands_in_for_a_checkout_in_a_visible_place(see: See, tmp_path: Path) -> None:
    checkout = tmp_path / "visible/project"
    checkout.mkdir(parents=True)
    (checkout / "file").write_text("user\n")

    said = see(f"cat {checkout}/file; echo more > {checkout}/file", repo=checkout, expose=(tmp_path / "visible",))

    assert (said, (checkout / "file").read_text()) == ("candidate\n", "user\n")


def test_an_environment_of_the_checkout_on_path_works_beside_the_candidates_files(see: See, user: Path) -> None:
    program = user / "project/.venv/bin/made"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ncat {user}/project/file\n")
    program.chmod(0o755)

    assert see("made; ls -A", path=f"{program.parent}:/usr/bin:/bin") == "candidate\ncheck\nfile\n"
    assert "Read-only" in see(f"echo x > {program}", path=f"{program.parent}:/usr/bin:/bin")


def test_a_carried_environment_is_the_candidates_own(see: See, user: Path, needs: Callable[..., Needs]) -> None:
    for top in (user / "project", needs().tree):
        assert top is not None
        (top / ".venv/bin").mkdir(parents=True)
        (top / ".venv/bin/made").write_text(f"#!{user}/project/.venv/bin/sh\necho {top.name}\n")
        (top / ".venv/bin/made").chmod(0o755)
        (top / ".venv/bin/sh").symlink_to("/bin/sh")

    path, names = f"{user}/project/.venv/bin:/usr/bin:/bin", frozenset({".venv", "file"})
    assert see("made", path=path, names=names) == "tree\n"


def test_other_attempts_and_the_state_are_not_seen(see: See, tmp_path: Path) -> None:
    assert see(f"ls {tmp_path}/state {tmp_path}/state/runs/r/attempts") == (
        f"{tmp_path}/state:\nruns\n\n{tmp_path}/state/runs/r/attempts:\na\n"
    )


def test_temporary_files_and_sockets_of_others_are_not_seen(see: See) -> None:
    assert see("ls -A /run /var/tmp; touch /tmp/x /var/tmp/x") == "/run:\n\n/var/tmp:\n"


def test_protected_files_are_read_only_by_every_name(see: See, user: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "visible/project"
    checkout.mkdir(parents=True)
    script = f"for f in check {user}/project/check {checkout}/check; do echo x > $f; mv $f aside; done; cat check"

    for more in ({}, {"repo": checkout, "expose": (tmp_path / "visible",)}):
        said = see(script, protected=("check",), **more)
        assert said.startswith("check\n")
        assert said.count("cannot create check: Read-only") == 1
        assert said.count("project/check: Read-only") >= 1
        assert said.count("busy") == 2


def test_a_repository_that_is_the_home_hides_like_a_home(see: See, user: Path) -> None:
    assert "No such file" in see(f"cat {user}/note.txt; tool", repo=user)


def test_few_mounts_do(needs: Callable[..., Needs]) -> None:
    """Each costs a command 0.2 ms."""
    assert len(box(needs("true"), network=True).mounts) < 30


def test_mounts_come_parents_first_and_decide_by_depth(needs: Callable[..., Needs], tmp_path: Path) -> None:
    mounts = box(needs("true"), network=True).mounts
    assert [len(mount.path.parts) for mount in mounts] == sorted(len(mount.path.parts) for mount in mounts)
    tree = tmp_path / "state/runs/r/attempts/a/tree"
    assert Mount(tree, Access.WRITE, tree) in mounts
    assert Mount(tmp_path / "state", Access.HIDDEN, tmp_path / "state") in mounts
    assert os.path.realpath("/tmp") in {str(mount.path) for mount in mounts if mount.access is Access.SCRATCH}


def test_the_file_of_keys_is_empty_wherever_it_lies(see: See, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = see("cat /etc/passwd")
    monkeypatch.setenv("ORCH_KEYS", "/etc/passwd")

    assert "root" in seen
    assert see("cat /etc/passwd") == ""
