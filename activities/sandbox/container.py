"""Boxes by a container engine: podman over the host's own files, or podman and docker with an image of the user's."""

from __future__ import annotations

import os
import re
import resource
import shutil
from pathlib import Path

from .. import processes
from . import Access, Box, Flaw, Mount

IMAGE = "ORCH_SANDBOX_IMAGE"
"""Names the image whose programs are used instead of the host's; docker needs one."""

ENTER = """\
engine=$1; shift
names=$(env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/--env=\\1/p')
exec "$engine" run $names --workdir "$PWD" "$@"
"""
"""Passes the whole environment on by its names: the values stand in no command line."""

SAFE = (
    "--rm", "--interactive", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--ipc=private",
    "--log-driver=none",
)  # fmt: skip
PODMAN = ("--read-only-tmpfs=false", "--security-opt=label=disable", "--cgroups=disabled", "--no-hosts", "--pull=never")

MOST = 32_768
"""Of files and processes; podman's own default."""

_NOT_EXECUTED = re.compile(r"(?s)(?:Error|docker): .*?(?:executable file|OCI runtime)([^\n]*)\n?.*")


class Container:
    """Containers of one engine. What runs in them is ended by the supervisor; docker's also needs its client alive."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def image(self) -> str:
        """As the user says; empty with the host's files."""
        return os.environ.get(IMAGE, "")

    def wrap(self, argv: tuple[str, ...], box: Box) -> tuple[str, ...]:
        """The command in a container; with an image only what is shown of the host is mounted."""
        mounts = [word for mount in box.mounts for word in _mount(mount, podman=self.name == "podman")]
        network = "--network=host" if box.network else "--network=none"
        base = (self.image,) if self.image else ("--rootfs", "/:O")
        engine = PODMAN if self.name == "podman" else (f"--user={os.getuid()}:{os.getgid()}",)
        return ("sh", "-c", ENTER, "sh", self.name, *SAFE, *engine, *_limits(), network, *mounts, *base, *argv)

    def version(self) -> str:
        """`podman version 4.3.1`."""
        if shutil.which(self.name) is None:
            return ""
        command = processes.Command((self.name, "--version"), Path("/"), processes.scrubbed_environment({}))
        return processes.run(command, timeout_s=processes.ANSWER_S).stdout.decode(errors="replace").strip()

    def flaw(self) -> Flaw | None:
        """Missing, or without the image it needs."""
        if shutil.which(self.name) is None:
            return Flaw(f"{self.name} is not installed", f"install {self.name}")
        if self.name == "docker" and not self.image:
            return Flaw("docker has no image", f"name one in {IMAGE} that has the project's programs")
        return None

    def mend(self, said: str) -> str:  # noqa: ARG002 - engines fail in many ways
        """What to try by hand."""
        return f"see that `{self.name} run` works for this user, or set ORCH_SANDBOX=bwrap"

    def not_executed(self, stderr: str) -> str:
        """An engine's own complaint names the program."""
        found = _NOT_EXECUTED.fullmatch(stderr)
        return found[0].strip() if found else ""


def _limits() -> tuple[str, ...]:
    """This process's own limits, as far as podman has them: an engine would raise them, which not everybody may do."""
    kinds = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
    limits = ((name, resource.getrlimit(kind)) for name, kind in kinds.items())
    return tuple(f"--ulimit={name}={_capped(soft)}:{_capped(hard)}" for name, (soft, hard) in limits)


def _capped(limit: int) -> int:
    return MOST if limit == resource.RLIM_INFINITY else min(limit, MOST)


def _mount(mount: Mount, *, podman: bool) -> tuple[str, ...]:
    path, empty = str(mount.path), "notmpcopyup" if podman else "mode=755"
    match mount.access:
        case Access.HIDDEN if not mount.path.is_dir():
            return ("--volume", f"/dev/null:{path}:ro")
        case Access.HIDDEN:
            return ("--tmpfs", f"{path}:ro,{empty}")
        case Access.SCRATCH:
            return ("--tmpfs", f"{path}:rw,{empty}")
        case _:
            return _shared(mount)


def _shared(mount: Mount) -> tuple[str, ...]:
    """What is the host's own, as far as it is there; a link's target in its place: an engine mounts no links."""
    there = mount.access is Access.LINK or mount.source.exists()
    if mount.access is Access.DEVICE:
        return (f"--device={mount.source}:{mount.path}",) if there else ()
    mode = ":ro" if mount.access is Access.READ else ""
    return ("--volume", f"{mount.source}:{mount.path}{mode}") if there else ()
