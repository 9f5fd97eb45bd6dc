"""What this host has of the known agents: the program, its version, a login. Asks all at once, changes nothing."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from pathlib import Path

from ..processes import ANSWER_S, Command, run, scrubbed_environment
from .adapter import Traits
from .registry import adapter_of, names
from .secrets import KEY

_VERSION = re.compile(r"\d{1,9}(?:\.\d{1,9})+", re.ASCII)


class Flaw(StrEnum):
    """Why an agent cannot be used here; closed.

    Attributes:
        NOT_LOADED: its adapter, of an installed package, cannot be loaded.
        NOT_FOUND: its program is not on PATH.
        BROKEN: its program does not even tell its version.
        TOO_OLD: its program is older than the oldest known to work.
        NO_LOGIN: neither a key in the environment nor a file with a login.
    """

    NOT_LOADED = "not_loaded"
    NOT_FOUND = "not_found"
    BROKEN = "broken"
    TOO_OLD = "too_old"
    NO_LOGIN = "no_login"


@dataclass(frozen=True)
class Surveyed:
    """What was found of one agent.

    Attributes:
        name: the agent's name in specs.
        traits: what is known of it; None when its adapter cannot be loaded.
        path: where its program lies; empty when it is not on PATH.
        version: what it says; empty when it was not asked or named none.
        flaw: why it cannot be used here; None when it can.
        detail: the words behind a flaw.
    """

    name: str
    traits: Traits | None = None
    path: str = ""
    version: str = ""
    flaw: Flaw | None = None
    detail: str = ""


def survey(patience_s: float = ANSWER_S) -> list[Surveyed]:
    """Look at every known agent, in the order of their names in the registry."""
    known = names()
    with ThreadPoolExecutor(len(known)) as threads:
        return list(threads.map(lambda name: look(name, patience_s=patience_s), known))


def keys(traits: Traits) -> tuple[str, ...]:
    """The variables that can hold the agent's key."""
    return tuple(name for name in traits.secrets if KEY.search(name))


def look(name: str, program: str = "", *, patience_s: float = ANSWER_S) -> Surveyed:
    """Look at one known agent; `program` stands for the one of its name on PATH, and may bring a login of its own."""
    try:
        traits = adapter_of(name).traits
    except Exception as error:  # noqa: BLE001 - somebody else's package may fail in any way
        return Surveyed(name, flaw=Flaw.NOT_LOADED, detail=f"{type(error).__name__}: {error}")
    path = shutil.which(program or traits.program)
    if path is None:
        return Surveyed(name, traits, flaw=Flaw.NOT_FOUND)
    version, trouble = _version(path, traits.version, patience_s) if traits.version else ("", "")
    if trouble:
        return Surveyed(name, traits, path, flaw=Flaw.BROKEN, detail=trouble)
    if _older(version, traits.oldest):
        return Surveyed(name, traits, path, version, Flaw.TOO_OLD)
    return Surveyed(name, traits, path, version, None if program or _login(traits) else Flaw.NO_LOGIN)


def _version(path: str, args: tuple[str, ...], patience_s: float) -> tuple[str, str]:
    """What a program says its version is, or else what went wrong; asked as in a run: with a home of its own."""
    with tempfile.TemporaryDirectory(prefix="orch-agents-", ignore_cleanup_errors=True) as folder:
        env = scrubbed_environment({"HOME": folder, "TMPDIR": folder, "NO_COLOR": "1"})
        done = run(Command((path, *args), Path(folder), env), timeout_s=patience_s)
    said = [stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr)]
    if not done.exit.ok:
        words = [line.strip() for text in said for line in text.splitlines() if line.strip()]
        return "", ": ".join([f"{' '.join(args)}: {done.exit}", *words[-1:]])
    found = (_VERSION.search(text) for text in said)
    return next((match[0] for match in found if match), ""), ""


def _older(version: str, oldest: tuple[int, ...]) -> bool:
    """Whether a version is below the oldest; one that is not told is not."""
    if not version:
        return False
    pairs = list(zip_longest(map(int, version.split(".")), oldest, fillvalue=0))
    return [have for have, _ in pairs] < [least for _, least in pairs]


def _login(traits: Traits) -> bool:
    """Whether the agent has a key or a login, or needs none; a server of the user's own may want none."""
    wanted = keys(traits)
    if not wanted and not traits.login:
        return True
    servers = (name for name in traits.secrets if name.endswith("_BASE_URL"))
    given = any(os.environ.get(name) for name in (*wanted, *servers))
    return given or any(os.access(Path.home() / file, os.R_OK) for file in traits.login)
