"""Set-up of a working copy: carried paths, then the contract's set-up command, once per copy."""

from __future__ import annotations

from pathlib import Path

from ...workflows.model.contract import Contract, SecretUse
from ...workflows.model.exit import Exit
from ...workflows.model.verdict import Excerpt
from ..agents import secrets
from ..artifacts import kept_checkout
from ..carry import carried_paths, carry, populated_submodules
from ..effect import in_thread
from ..excerpts import excerpt
from ..jobs import Job, Step, run_job
from ..places import Grants, Place
from ..repository import inspect
from ..sandbox import BUILD
from ..workspaces.overlay import is_overlay

JOB = "setup"
"""The folder of the set-up's job, below the place's."""


async def set_up(
    place: Place, tree: Path, contract: Contract, writable: tuple[Path, ...], *, sandbox: bool
) -> tuple[Exit | None, Excerpt]:
    """Carry ignored paths over and run set-up; return how it ended (None without one) and what a failure printed.

    Set-up may use the network: it installs. It has no secrets.
    """
    await in_thread(_carry, place, tree, contract)
    if not contract.setup:
        return None, Excerpt()
    exit_ = await run_setup(place, tree, contract, writable, sandbox=sandbox)
    return exit_, Excerpt() if exit_.ok else said_by(place)


async def run_setup(place: Place, tree: Path, contract: Contract, writable: tuple[Path, ...], *, sandbox: bool) -> Exit:
    """Run the contract's set-up, once in a place whoever asks, and return how it ended."""
    step = Step(
        name=JOB,
        argv=place.fenced(("sh", "-c", contract.setup), BUILD, Grants(writable=writable), sandbox=sandbox),
        cwd=tree,
        env=place.environment(await in_thread(secrets.given, place.home, place.key.run, SecretUse.SETUP)),
        timeout_s=contract.setup_timeout_s,
    )
    hidden = await in_thread(secrets.hidden, place.home, place.key.run)
    (result,) = await run_job(place.folder / JOB, Job(steps=(step,), hidden=hidden))
    return result.exit


def said_by(place: Place) -> Excerpt:
    """What set-up printed in a place: its errors, or else all the rest."""
    stdout, stderr = (place.folder / JOB / f"1-{name}" for name in ("stdout", "stderr"))
    said = stderr if stderr.exists() and stderr.stat().st_size else stdout
    return excerpt(said, run_folder=place.home.run(place.key.run))


def _carry(place: Place, tree: Path, contract: Contract) -> None:
    done = place.folder / "carried"
    source = kept_checkout(place.home, place.key.run)
    if source is None:
        return
    has_submodules = (source / ".gitmodules").exists()
    if done.exists() or is_overlay(place.folder) or not (contract.carry or has_submodules):
        return  # below an overlay, all that is carried lies already
    submodules = populated_submodules(inspect(source)) if has_submodules else []
    carry(source, tree, [*submodules, *carried_paths(source, contract.carry)])
    done.touch()
