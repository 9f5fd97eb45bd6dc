"""Hosts that lack something: which provider and sandbox they get, what they refuse, and what `orch doctor` says.

Each host is made for an ordinary user with a state directory of his own, and asked by `orch` as he would.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from orch.activities.sandbox.bubblewrap import USER_NAMESPACES

OLD = "#!/bin/sh\necho bubblewrap 0.3.3\n"
INSTALL = "install bubblewrap 0.4 or newer"
NEEDED = ("env", "git", "sh", "stat", "mkdir", "mv", "rm", "ln", "true")

Ordinary = Callable[[str], tuple[str, ...]]


class Host(NamedTuple):
    """A host and what is true of it.

    Attributes:
        kind: for `ordinary.py`; `STATE` is the state directory.
        bwrap: the text of its bubblewrap; None is the real one, empty is none.
        provider: of its workspaces.
        without_overlay: why there are no overlays; empty where there are.
        without_sandbox: why there is no sandbox, and the mend; empty where there is one.
    """

    kind: str = "plain"
    bwrap: str | None = None
    provider: str = "overlay"
    without_overlay: str = ""
    without_sandbox: tuple[str, str] = ("", "")


HOSTS = {
    "ordinary user": Host(),
    "no user namespaces": Host(
        "no-namespaces", None, "clone", "this host gives no user namespace", ("namespace", USER_NAMESPACES)
    ),
    "state on an overlay": Host("overlay=STATE", None, "clone", "lies on a file system of the kind overlay"),
    "no attributes": Host("ramfs=STATE", None, "clone", "file system (ramfs) keeps no extended attributes"),
    "no bubblewrap": Host(bwrap="", without_sandbox=("bwrap is not installed", INSTALL)),
    "old bubblewrap": Host(bwrap=OLD, without_sandbox=("bubblewrap 0.3.3 is too old", INSTALL)),
}


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> Host:
    """Each host in its turn."""
    return HOSTS[request.param]


@pytest.fixture
def ask(host: Host, user_home: Path, ordinary: Ordinary) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Ask `orch` on that host, in a repository of the user's; keywords are variables of the environment."""
    state, path = user_home / "state", os.defpath
    if host.bwrap is not None:
        path = str(_programs(user_home / "bin", host.bwrap))
    start = ordinary(host.kind.replace("STATE", str(state)))
    git = "git init -q p 2>/dev/null; cd p && exec"

    def ask(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
        environment = {"HOME": str(user_home), "PATH": path, "ORCH_STATE": str(state), **env}
        argv = (*start, "/bin/sh", "-c", f'{git} "$@"', "sh", sys.executable, "-m", "orch.cli.main", *args)
        return subprocess.run(argv, check=False, env=environment, cwd=user_home, capture_output=True, text=True)

    return ask


def _programs(folder: Path, bwrap: str) -> Path:
    """A folder with what `orch` needs at the least, and this bubblewrap."""
    folder.mkdir()
    for name in NEEDED:
        (folder / name).symlink_to(str(shutil.which(name, path=os.defpath)))
    if bwrap:
        (folder / "bwrap").write_text(bwrap)
        (folder / "bwrap").chmod(0o755)
    return folder


def test_doctor_tells_provider_and_sandbox_with_reason_and_mend(
    host: Host, ask: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = ask("doctor", "--json")

    found = json.loads(done.stdout)
    assert {one["what"] for one in found if one["grade"] == "bad"} <= {"disk"}  # ramfs tells of no free room
    used, *worse = [one["said"] for one in found if one["what"] == "workspaces"]
    assert used == host.provider
    assert [host.without_overlay in said for said in worse] == [True] * bool(host.without_overlay)
    sandbox = [one for one in found if one["what"].startswith("sandbox")]
    why, mend = host.without_sandbox
    if why:
        ((grade, said, advice),) = [(one["grade"], one["said"], one["mend"]) for one in sandbox]
        assert (grade, why in said, advice) == ("warn", True, mend)
    else:
        assert [one for one in sandbox if one["grade"] != "ok"] == []
        assert len(sandbox) > 35


@pytest.mark.parametrize(
    "host", [host for host in HOSTS.values() if host.without_sandbox[0]], ids=lambda h: h.without_sandbox[0]
)
def test_required_sandbox_is_refused_before_anything_starts(
    host: Host, user_home: Path, ask: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = ask("start", "goal", "x", "--verify", "true", "--agent", "cmd:true", "--sandbox")

    said = " ".join(done.stderr.split())
    assert done.returncode == 2
    assert "error: --sandbox: " in said
    assert host.without_sandbox[0] in said
    assert f"hint: {' '.join(host.without_sandbox[1].split())}; or give --no-sandbox" in said
    assert not (user_home / "state").exists()


@pytest.mark.parametrize("host", [HOSTS["no user namespaces"]], ids=lambda h: h.kind)
def test_required_overlays_are_told_to_be_impossible(
    host: Host, ask: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = ask("doctor", "--json", ORCH_WORKSPACES="overlay")

    first = next(one for one in json.loads(done.stdout) if one["what"] == "workspaces")
    assert (done.returncode, first["grade"]) == (1, "bad")
    assert host.without_overlay in first["said"]
    assert first["mend"] == "use auto: it takes what works here"
