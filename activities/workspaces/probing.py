"""Whether overlays work in a state directory, found by trying: mounted as they will be, written to and looked at."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from ...workflows.model.exit import ExitKind
from .. import processes
from ..artifacts import write_whole
from ..home import Home
from . import enter
from .bases import BOOT_ID
from .removal import remove_tree

KEPT = "overlays"
"""What the last try found, in the state directory: the boot, then the reason why not, if any."""

UNUSABLE = frozenset({"overlay", "fuse", "nfs", "nfs4", "9p", "cifs", "smb3", "ecryptfs", "vboxsf", "virtiofs"})
"""Kinds of file systems that overlays cannot be written on, or only almost."""

PROBE = """
[ "$(stat -c %i kept)" = "$1" ] || { echo "files change their inode numbers under an overlay"; exit 1; }
echo new > kept && mv gone moved && rm -r folder && mkdir folder && ln -s kept link || exit 1
"""


def overlay_flaw(home: Home) -> str:
    """Why overlay workspaces cannot be used here; empty when they can. Tried once for each boot and user.

    What may pass (a full disk, a host too busy to answer) is not remembered.
    """
    kept, boot = home.root / KEPT, f"{BOOT_ID.read_text().strip() if BOOT_ID.exists() else ''} {os.geteuid()}"
    if kept.is_file():
        known, _, flaw = kept.read_text(encoding="utf-8").partition("\n")
        if known == boot:
            return flaw
    home.root.mkdir(parents=True, exist_ok=True)
    try:
        flaw = _tried(home.root)
    except OSError as error:
        return f"trying it failed: {error}"
    write_whole(kept, f"{boot}\n{flaw}")
    return flaw


def _tried(root: Path) -> str:
    if not sys.platform.startswith("linux"):
        return "overlays need Linux"
    kind = _file_system(root.resolve())
    if kind.partition(".")[0] in UNUSABLE:
        return f"the state directory lies on a file system of the kind {kind}"
    folder = Path(tempfile.mkdtemp(dir=root, prefix="probe-"))
    try:
        return _flaw(folder)
    finally:
        remove_tree(folder)


def _flaw(folder: Path) -> str:
    layer = folder / "bases" / "layer" / "tree"
    for path in (layer / "folder", folder / "upper", folder / "work", folder / "tree"):
        path.mkdir(parents=True)
    for name in ("kept", "gone", "folder/inner"):
        (layer / name).write_text("old")
    (folder / "base").write_text("layer\n")
    script = ("sh", "-c", PROBE, "sh", str((layer / "kept").stat().st_ino))
    argv = (sys.executable, "-I", "-S", enter.__file__, str(folder), "work", *script)
    command = processes.Command(argv, folder / "tree", processes.scrubbed_environment({}))
    done = processes.run(command, timeout_s=processes.ANSWER_S)
    if done.exit.kind is ExitKind.TIMED_OUT:
        raise TimeoutError(f"it took longer than {done.exit.detail}")
    if not done.exit.ok and not _keeps_attributes(folder / "upper"):
        return f"the state directory's file system ({_file_system(folder)}) keeps no extended attributes"
    if not done.exit.ok:
        said = (done.stdout + done.stderr).decode(errors="replace").strip()
        return said.removeprefix(enter.COMPLAINT) or str(done.exit)
    return _misread(folder / "upper", layer)


def _keeps_attributes(folder: Path) -> bool:
    """Whether a folder takes marks of the kind that an overlay leaves: root's, or anybody's."""
    for kind in ("trusted", "user"):
        with suppress(OSError):
            os.setxattr(folder, f"{kind}.orch", b"y")
            return True
    return False


def _misread(upper: Path, layer: Path) -> str:
    """What is not as the overlay should have left it."""
    gone = (upper / "gone").lstat()
    marks = {name.partition(".")[2] for name in os.listxattr(upper / "folder")}
    if not (gone.st_rdev == 0 and (gone.st_mode & 0o170000) == 0o020000):
        return "a deleted file leaves no whiteout"
    if "overlay.opaque" not in marks:
        return "a folder made anew is not marked as such"
    if (layer / "kept").read_text() != "old" or (upper / "kept").read_text() != "new\n":
        return "writing reaches the layer below"
    return ""


def _file_system(path: Path) -> str:
    """The kind of the file system that holds a path."""
    best, kind = "", ""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), before.split()[4])
        if path.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind
