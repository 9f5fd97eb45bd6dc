"""The repositories that workspaces are measured on: made by rule, so that everybody has the same.

Files lie in folders of 1 to 53 (27 on average), three levels deep, as in large source trees. A file has from 40 B to
64 kB, half of them less than 900 B, the mean being about 1.7 kB, in lines of random words. One commit, packed.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

WORDS = [bytes(random.Random(n).choices(b"abcdefghijklmnopqrstuvwxyz_", k=3 + n % 9)) for n in range(400)]
ATTRIBUTES = b"*.txt text eol=lf\n*.png -text\n*.up filter=up\n"
IGNORED = b"node_modules/\n*.log\nbuild/\n"
SETTLED_S = 1.1


def make_repository(path: Path, files: int) -> Path:
    """Make it, with attributes, ignored names and a filter that no file of it needs: they are to be looked up."""
    chance, left, folder = random.Random(files), files - 2, 0
    while left > 0:
        count = min(left, chance.randrange(1, 54))
        place = path / f"part{folder % 37:02}" / f"unit{folder // 37 % 61:02}" / f"set{folder:05}"
        place.mkdir(parents=True)
        for number in range(count):
            (place / f"file{number:02}.{chance.choice(('py', 'js', 'md', 'txt'))}").write_bytes(text(chance))
        left, folder = left - count, folder + 1
    (path / ".gitattributes").write_bytes(ATTRIBUTES)
    (path / ".gitignore").write_bytes(IGNORED)
    git(path, "init", "-q", "-b", "main", "--template=")
    git(path, "config", "filter.up.clean", "tr A-Z a-z")
    git(path, "add", "-A")
    git(path, "-c", "user.name=A User", "-c", "user.email=user@example.org", "commit", "-q", "-m", "first")
    git(path, "repack", "-q", "-a", "-d")
    git(path, "prune-packed", "-q")
    time.sleep(SETTLED_S)
    git(path, "update-index", "-q", "--refresh")
    return path


def make_dependencies(path: Path, megabytes: int) -> int:
    """Fill a folder as installers do, with 50 kB a file on average; return the number of files."""
    chance, left, number = random.Random(megabytes), megabytes << 20, 0
    block = random.Random(1).randbytes(1 << 20)
    while left > 0:
        size = min(left, int(chance.lognormvariate(9.7, 1.5)) + 1, 1 << 20)
        place = path / f"package{number // 20:04}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"module{number % 20:02}.js").write_bytes(block[:size])
        left, number = left - size, number + 1
    return number


def text(chance: random.Random) -> bytes:
    """A file's content."""
    size = min(max(40, int(chance.lognormvariate(6.8, 1.1))), 64 << 10)
    words = b" ".join(chance.choices(WORDS, k=size // 7 + 1))
    return b"\n".join(words[at : at + 72] for at in range(0, len(words), 72)) + b"\n"


def git(folder: Path, *args: str, **env: str) -> str:
    """Run git in a folder as a user would; raise with what it said when it fails."""
    scrubbed = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    argv = ["git", "-c", "gc.auto=0", "-c", "advice.detachedHead=false", *args]
    done = subprocess.run(argv, cwd=folder, env={**scrubbed, **env}, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(args)}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode().strip()
