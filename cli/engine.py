"""`orch up`, `down` and `status`: the local engine in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .params import json_option
from .talk import out, out_json, say

if TYPE_CHECKING:
    from ..activities.home import Home
    from ..worker.engine import EngineStatus


@click.command()
@click.option(
    "--port", type=click.IntRange(1024, 65535), help="The engine's port [default: the last one, else a free one]."
)
@json_option
def up(*, port: int | None, as_json: bool) -> None:
    """Start the local engine: server and worker outlive this command."""
    import asyncio

    from ..worker.engine import ensure_up

    _print(asyncio.run(ensure_up(_home(), port=port, say=say)), as_json=as_json)


@click.command()
def down() -> None:
    """Stop the local engine; running agents go on and are found again by the next start."""
    import asyncio

    from ..worker import engine

    asyncio.run(engine.down(_home()))
    say("the engine is down\nnext: orch up")


@click.command()
@json_option
def status(*, as_json: bool) -> None:
    """Tell what runs of the local engine, and where."""
    import asyncio

    from ..worker import engine

    _print(asyncio.run(engine.status(_home())), as_json=as_json)


def _home() -> Home:
    from ..worker.settings import load_settings

    return load_settings().home


def _print(engine: EngineStatus, *, as_json: bool) -> None:
    if as_json:
        out_json({**vars(engine), "state": str(_home().root)})
        return
    for name, state in (("server", engine.server), ("worker", engine.worker)):
        pid = engine.pids.get(name)
        out(f"{name}: {state}" + (f" (process {pid})" if pid else ""))
    if engine.address:
        out(f"address: {engine.address}, namespace {engine.namespace}")
        out(f"web: {engine.ui_url}")
    if engine.codec_url:
        out(f"codec: {engine.codec_url}, for the Web UI" + ("" if engine.worker == "running" else " (with the worker)"))
    out(f"state: {_home().root}")
    if not engine.up:
        say("next: orch up")
