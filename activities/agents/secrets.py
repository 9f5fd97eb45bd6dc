"""The secrets of a run: variables of whoever started it that its agents may see, in a file only its owner can read.

They never travel through the engine. A run that nobody started from a shell, such as a nightly one, uses the worker's
own environment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..home import Home
from ..supervisor import write_whole

FILE = "secrets.json"


def keep(home: Home, run: str, names: Iterable[str], environ: Mapping[str, str]) -> dict[str, str] | None:
    """Keep those of the named variables that are set; return what was kept before, for `put_back`."""
    before = _kept(home, run)
    found = {name: environ[name] for name in sorted(set(names)) if environ.get(name)}
    home.run(run).mkdir(parents=True, exist_ok=True)
    write_whole(str(_file(home, run)), found)
    return before


def put_back(home: Home, run: str, before: Mapping[str, str] | None) -> None:
    """Undo `keep`: the run was another one's."""
    if before is None:
        drop(home, run)
    else:
        write_whole(str(_file(home, run)), dict(before))


def find(home: Home, run: str, names: Iterable[str]) -> dict[str, str]:
    """The named variables as they were kept for the run, else as this process has them."""
    kept = _kept(home, run)
    known: Mapping[str, str] = os.environ if kept is None else kept
    return {name: known[name] for name in names if known.get(name)}


def drop(home: Home, run: str) -> None:
    """Forget them. Idempotent."""
    _file(home, run).unlink(missing_ok=True)


def _kept(home: Home, run: str) -> dict[str, str] | None:
    try:
        kept: dict[str, str] = json.loads(_file(home, run).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return kept


def _file(home: Home, run: str) -> Path:
    return home.run(run) / FILE
