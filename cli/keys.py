"""`orch keys`: make, rotate and retire the keys that payloads are encrypted with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .params import json_option
from .talk import out, out_json, say

if TYPE_CHECKING:
    from ..activities.home import Home


@click.group()
def keys() -> None:
    """Manage the keys that payloads are encrypted with (AES-256-GCM): the newest encrypts, all decrypt.

    They are in the file that ORCH_KEYS names, else in `keys` in the state directory. The first one turns encryption on;
    whoever loses the file can read no run any more, so keep a copy. Copy a new key to every host before it is used.
    """


@keys.command("new")
@json_option
def new(*, as_json: bool) -> None:
    """Make a key, which encrypts from now on; what older keys encrypted stays readable."""
    from ..worker.keys import add_key, key_file
    from ..worker.state import open_state

    home = _home()
    open_state(home)
    key = add_key(home)
    if as_json:
        out_json({"id": key.id, "file": str(key_file(home))})
        return
    out(key.id)
    say(f"in {key_file(home)}: keep a copy of it, and give it to every host that works for the same engine")
    say("next: orch up   (a running worker is replaced by one with the new key)")


@keys.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List the keys, oldest first; never their secrets."""
    from ..worker.keys import load_keys

    ring = load_keys(_home())
    rows = [{"id": k.id, "created": k.created, "encrypts": k is ring.newest} for k in ring.keys] if ring else []
    if as_json:
        out_json(rows)
    elif rows:
        for row in rows:
            out(f"{row['id']}  {row['created'] or '-'}" + ("  encrypts" if row["encrypts"] else ""))
    else:
        out("no keys: payloads are not encrypted\nnext: orch keys new")


@keys.command("retire")
@click.argument("key", metavar="KEY")
@click.option("--yes", is_flag=True, help="Do it: what only this key can read is lost, running runs among it.")
def retire(key: str, *, yes: bool) -> None:
    """Forget an older key; nobody can read any more what was encrypted with it."""
    from ..worker.keys import retire_key
    from ..workflows.errors import RefusedError

    if not yes:
        raise RefusedError(
            f"what was encrypted with {key} would be lost",
            hint="wait until `orch list` shows no run from its time, then add --yes",
        )
    retire_key(_home(), key)
    say("retired")


def _home() -> Home:
    from ..worker.settings import load_settings

    return load_settings().home
