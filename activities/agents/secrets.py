"""The secrets of a run: what its agents and set-up may see, in files that only their owner can read.

Two kinds: variables that agents' adapters name, taken from whoever started the run; and those that the contract refers
to. Neither travels through the engine. A run that nobody started from a shell, such as a nightly one, uses the worker's
own environment.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from ...workflows.errors import RefusedError
from ...workflows.model.contract import Secret, SecretUse
from ..artifacts import REQUEST, is_closed, kept_request
from ..home import Home
from ..processes import Command, run
from ..supervisor import write_whole
from .registry import secret_names

FILE = "secrets.json"
DECLARED = "declared.json"
"""Below the run's folder: the adapters' variables, and the contract's secrets."""

KEY = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
"""Names of variables whose value is a secret; others that adapters read are addresses and names of models."""

PATIENCE_S = 60.0
"""How long a command may take to print a secret."""

LONGEST = 64 << 10
"""Bytes of a value: more does not fit into an environment."""

_looking_up = threading.Lock()
"""Steps of many candidates begin at once; a command that prints a secret is run once for all."""

Kept = Mapping[str, dict[str, str] | None]


def keep(
    home: Home, run_id: str, names: Iterable[str], environ: Mapping[str, str], declared: Mapping[str, str] | None = None
) -> Kept:
    """Keep those of the named variables that are set, and the contract's; return what was kept, for `put_back`."""
    before = {file: _read(home, run_id, file) for file in (FILE, DECLARED)}
    found = {name: environ[name] for name in sorted(set(names)) if environ.get(name)}
    put_back(home, run_id, {FILE: found, DECLARED: dict(declared or {})})
    return before


def put_back(home: Home, run_id: str, before: Kept) -> None:
    """Undo `keep`: the run was another one's."""
    home.run(run_id).mkdir(parents=True, exist_ok=True)
    for file, values in before.items():
        path = home.run(run_id) / file
        path.unlink(missing_ok=True) if values is None else write_whole(str(path), values)


def find(home: Home, run_id: str, names: Iterable[str]) -> dict[str, str]:
    """The named variables: the contract's for agents, else as they were kept for the run, else as this process's."""
    kept = _read(home, run_id, FILE)
    known = {**(os.environ if kept is None else kept), **given(home, run_id, SecretUse.AGENT)}
    return {name: known[name] for name in names if known.get(name)}


def given(home: Home, run_id: str, to: SecretUse) -> dict[str, str]:
    """The contract's secrets for agents or for set-up, by name.

    Raises:
        RefusedError: one cannot be looked up, in a run that nobody started from a shell.
    """
    wanted = _references(home, run_id)
    known = _declared(home, run_id, wanted) if wanted else {}
    return {secret.name: known[secret.name] for secret in wanted if to in secret.to and secret.name in known}


def hidden(home: Home, run_id: str) -> dict[str, str]:
    """Every secret value of the run by name: what no output may show."""
    kept, wanted = _read(home, run_id, FILE), _references(home, run_id)
    if kept is None:
        names = secret_names(kept_request(home, run_id).agents) if _prepared(home, run_id) else ()
        kept = {name: os.environ.get(name, "") for name in names}
    return {**keys_of(kept), **(_declared(home, run_id, wanted) if wanted else {})}


def keys_of(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of some variables whose value is a secret."""
    return {name: value for name, value in variables.items() if value and KEY.search(name)}


def resolve(wanted: Iterable[Secret], environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Look up references; commands run in `folder` with the whole of `environ`, outside of any sandbox.

    Raises:
        RefusedError: one cannot be had; it is named, and nothing that was printed is shown.
    """
    return {secret.name: _value(secret, environ, folder) for secret in wanted}


def drop(home: Home, run_id: str) -> None:
    """Forget them. Idempotent."""
    for file in (FILE, DECLARED):
        for path in (home.run(run_id) / file, home.run(run_id) / f"{file}.new"):  # a killed writer left the latter
            path.unlink(missing_ok=True)


def _value(secret: Secret, environ: Mapping[str, str], folder: Path) -> str:
    kind, _, what = secret.source.partition(":")
    value = environ.get(what, "") if kind == "env" else _printed(secret.name, what, environ, folder)
    if not value.strip():
        raise _cannot(secret.name, f"{what} is not set" if kind == "env" else "its command prints nothing", kind)
    if len(value.encode("utf-8", "surrogateescape")) > LONGEST or "\0" in value:
        raise _cannot(secret.name, f"it does not fit into a variable of at most {LONGEST >> 10} KiB", kind)
    return value


def _printed(name: str, line: str, environ: Mapping[str, str], folder: Path) -> str:
    done = run(Command(("sh", "-c", line), folder, environ), timeout_s=PATIENCE_S)
    if not done.exit.ok:
        raise _cannot(name, f"its command ended with {done.exit}", "cmd")
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def _cannot(name: str, why: str, kind: str) -> RefusedError:
    mend = "export the variable" if kind == "env" else "try the command by hand"
    return RefusedError(f"secret {name}: {why}", hint=f"{mend}, or mend the reference in `secrets:` or --secret")


def _declared(home: Home, run_id: str, wanted: tuple[Secret, ...]) -> dict[str, str]:
    """The contract's secrets as they were kept; where nobody did, they are looked up here and kept.

    A run that is closed keeps none: who looks into it later sets up anew, and nobody gets what agents got.
    """
    folder = home.run(run_id)
    with _looking_up:
        known = _read(home, run_id, DECLARED)
        if known is None and is_closed(home, run_id):
            return resolve((secret for secret in wanted if SecretUse.SETUP in secret.to), os.environ, folder)
        if known is None:
            known = resolve(wanted, os.environ, folder)
            write_whole(str(folder / DECLARED), known)
    return known


def _references(home: Home, run_id: str) -> tuple[Secret, ...]:
    return kept_request(home, run_id).contract.secrets if _prepared(home, run_id) else ()


def _prepared(home: Home, run_id: str) -> bool:
    return (home.run(run_id) / REQUEST).exists()


def _read(home: Home, run_id: str, file: str) -> dict[str, str] | None:
    try:
        kept: dict[str, str] = json.loads((home.run(run_id) / file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return kept
