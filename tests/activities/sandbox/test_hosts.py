"""The sandbox on other hosts: as an ordinary user, without user namespaces, without bubblewrap or with an old one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from orch.activities.sandbox import Flaw, registry
from orch.activities.sandbox.bubblewrap import USER_NAMESPACES
from orch.workflows.errors import RefusedError

USER = 65534
ROOT = Path(__file__).parents[3]

ORDINARY = f"""
import ctypes, os, sys
libc, spaces, argv = ctypes.CDLL(None, use_errno=True), sys.argv[1] == "spaces", sys.argv[2:]
def call(function, *args):
    if function(*args):
        raise OSError(ctypes.get_errno(), function.__name__)
def bind(source, target):
    os.makedirs(target, exist_ok=True)
    call(libc.mount, source.encode(), target.encode(), None, 4096 | 16384, None)
if os.getuid() == 0:  # the interpreter may lie where nobody else can go: make a way to it, seen by this process alone
    call(libc.unshare, 0x20000)
    call(libc.mount, None, b"/", None, 16384 | (1 << 18), None)
    for needed in {sorted({sys.base_prefix, sys.prefix, str(ROOT)})!r}:
        parts = needed.split("/")
        closed = [p for n in range(2, len(parts)) if not os.stat(p := "/".join(parts[:n])).st_mode & 1]
        if closed:
            bind(closed[0], "/mnt")
            call(libc.mount, b"none", closed[0].encode(), b"tmpfs", 0, b"mode=755")
            bind("/mnt" + needed[len(closed[0]):], needed)
if not spaces:
    ready, go = os.pipe(), os.pipe()
    parent = os.getpid()
    if not (child := os.fork()):
        os.read(ready[0], 1)
        ids = "0 0 65535" if os.getuid() == 0 else None
        for kind, own in (("uid", os.getuid()), ("gid", os.getgid())):
            if kind == "gid" and not ids:
                open(f"/proc/{{parent}}/setgroups", "w").write("deny")
            open(f"/proc/{{parent}}/{{kind}}_map", "w").write(ids or f"{{own}} {{own}} 1")
        os._exit(0)
    call(libc.unshare, 0x10000000)
    os.write(ready[1], b"x")
    os.waitpid(child, 0)
    open("/proc/sys/user/max_user_namespaces", "w").write("0")
if os.getuid() == 0:
    os.setgroups([])
    os.setresgid({USER}, {USER}, {USER})
    os.setresuid({USER}, {USER}, {USER})
os.execv(argv[0], argv)
"""


@pytest.fixture
def user_home() -> Iterator[Path]:
    """The home of an ordinary user, with a state directory to be."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        if os.getuid() == 0:
            os.chown(name, USER, USER)
        yield Path(name)


def as_user(home: Path, *argv: str, spaces: bool = True, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command as an ordinary user, with or without the right to user namespaces."""
    environment = {"HOME": str(home), "PATH": path or f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    start = (sys.executable, "-I", "-S", "-c", ORDINARY, "spaces" if spaces else "none")
    return subprocess.run(
        (*start, *argv), check=False, env=environment, cwd="/", capture_output=True, text=True, timeout=120
    )


def doctor(home: Path, *, spaces: bool = True) -> list[dict[str, str]]:
    """What `orch doctor` says of the sandbox to an ordinary user."""
    done = as_user(home, sys.executable, "-m", "orch.cli.main", "doctor", "--json", spaces=spaces)
    assert done.stdout, done.stderr
    return [finding for finding in json.loads(done.stdout) if finding["what"].startswith("sandbox")]


def test_an_ordinary_user_has_the_whole_sandbox(user_home: Path) -> None:
    found = doctor(user_home)
    assert [one for one in found if one["grade"] != "ok"] == []
    assert len(found) > 35


def test_without_user_namespaces_doctor_names_the_mend(user_home: Path) -> None:
    (found,) = doctor(user_home, spaces=False)
    assert (found["grade"], found["mend"]) == ("warn", USER_NAMESPACES)
    assert "namespace" in found["said"]


def test_without_user_namespaces_a_required_sandbox_is_refused_before_anything_starts(user_home: Path) -> None:
    script = "git init -q p && cd p && exec orch start goal x --verify true --agent cmd:true --sandbox --id here"
    done = as_user(user_home, "/bin/sh", "-c", f"cd {user_home} && {script}", spaces=False)
    assert done.returncode == 2
    assert "--sandbox: bwrap: " in done.stderr
    assert USER_NAMESPACES.replace("\n", " ") in " ".join(done.stderr.split())
    assert not list(user_home.glob(".local/state/orch/runs/*"))


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Launchers are tried anew."""
    monkeypatch.setenv(registry.VARIABLE, "bwrap")
    registry._tried.cache_clear()
    yield
    registry._tried.cache_clear()


def test_without_bubblewrap_the_flaw_says_what_to_install(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert registry.probe() == Flaw("bwrap is not installed", "install bubblewrap 0.4 or newer")


@pytest.mark.parametrize(
    ("version", "why"),
    [("bubblewrap 0.3.3", "bubblewrap 0.3.3 is too old"), ("", "bwrap does not tell its version")],
)
def test_a_bubblewrap_that_is_too_old_is_not_tried(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, why: str
) -> None:
    (tmp_path / "bwrap").write_text(f'#!/bin/sh\n[ "$1" = --version ] || touch {tmp_path}/tried\necho "{version}"\n')
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    assert registry.probe() == Flaw(why, "install bubblewrap 0.4 or newer")
    assert not (tmp_path / "tried").exists()


def test_a_bubblewrap_that_does_not_keep_anything_out_is_no_sandbox(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    version = '[ "$1" != --version ] || exec echo bubblewrap 0.8.0'
    (tmp_path / "bwrap").write_text(f'#!/bin/sh\n{version}\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    flaw = registry.probe()
    assert flaw is not None
    assert flaw.why == "writing outside is not refused (exit 1)"


def test_an_unknown_launcher_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.VARIABLE, "jail")
    with pytest.raises(RefusedError, match="'jail'"):
        registry.chosen()
