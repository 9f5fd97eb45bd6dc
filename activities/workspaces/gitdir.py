"""Git directories made by hand, which costs no process: own refs and settings, the store's objects, no remote."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from ..objects import IMPORTED
from ..settings import FILE
from ..store import Store

_COPIED = ("config", FILE, "shallow", "info/attributes", "info/exclude")


def make_git_dir(store: Store, git_dir: Path, commit: str) -> None:
    """Make a git directory that borrows the store's shared objects, its HEAD detached at a commit, without an index."""
    for name in ("objects/info", "refs", "info"):
        (git_dir / name).mkdir(parents=True)
    for name in _COPIED:
        if (store.git_dir / name).exists():
            shutil.copyfile(store.git_dir / name, git_dir / name)
    with (git_dir / "config").open("a") as config:
        config.write("[core]\n\tbare = false\n")
    (git_dir / "objects/info/alternates").write_bytes(os.fsencode(store.git_dir / "objects") + b"\n")
    (git_dir / "HEAD").write_text(f"{commit}\n")
    give_own(store, git_dir / "objects", commit)


def give_own(store: Store, objects: Path, commit: str) -> None:
    """Put what of a commit and its history lies apart in the store into another folder of objects, as a pack.

    Of a commit of the user's nothing does.
    """
    if (store.git_dir / IMPORTED / commit).exists():
        return
    pack = objects / "pack"
    pack.mkdir(parents=True, exist_ok=True)
    known = store.git.text("for-each-ref", "--format=^%(objectname)", IMPORTED)
    options = ("-q", "--revs", "--local", "--non-empty", "--delta-base-offset")
    store.git.run("pack-objects", *options, str(pack / "pack"), stdin=f"{commit}\n{known}\n".encode())


def settings_digest(store: Store) -> str:
    """What tells apart the checkouts that one commit can have: the store's settings, as a short hexadecimal word."""
    digest = hashlib.sha256()
    for name in _COPIED:
        path = store.git_dir / name
        data = path.read_bytes() if path.exists() else b""
        digest.update(b"%d %s\n%s" % (len(data), name.encode(), data))
    return digest.hexdigest()[:12]
