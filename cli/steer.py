"""`orch approve`, `reject`, `note`, `extend` and `cancel`: steer a live run."""

from __future__ import annotations

import getpass

import click

from .params import DURATION, json_option, run_argument
from .session import ask
from .talk import out, out_json, say


@click.command()
@run_argument
@click.option("--comment", default="", help="Why.")
def approve(run: str, *, comment: str) -> None:
    """Approve the contract that a run waits with."""
    ask(lambda client: client.approve(run, by=_me(), comment=comment))
    say(f"approved\nnext: orch watch {run}")


@click.command()
@run_argument
@click.option("--comment", default="", help="Why.")
def reject(run: str, *, comment: str) -> None:
    """Reject the contract that a run waits with; the run ends."""
    ask(lambda client: client.reject(run, by=_me(), comment=comment))
    say("rejected: the run ends")


@click.command()
@run_argument
@click.argument("text")
def note(run: str, text: str) -> None:
    """Leave guidance for the next prompts."""
    from ..workflows.errors import RefusedError

    if not text.strip() or len(text) > 4000:
        raise RefusedError(f"a note of {len(text):,} characters", hint="write 1 to 4,000")
    ask(lambda client: client.note(run, text, by=_me()))
    say("noted: the prompts of the next iteration carry it")


@click.command()
@run_argument
@click.option("--max-iterations", type=click.IntRange(1, 1000), help="The new cap on iterations.")
@click.option("-n", "--candidates", type=click.IntRange(1, 64), help="Attempts per iteration, from the next one on.")
@click.option("--budget-tokens", type=click.IntRange(1), help="The new token cap.")
@click.option("--budget-usd", type=click.FloatRange(0, min_open=True), help="The new money cap.")
@click.option("--deadline", type=DURATION, help="Time for the whole run, counted from its start.")
@json_option
def extend(  # noqa: PLR0913 - one per cap
    run: str,
    *,
    max_iterations: int | None,
    candidates: int | None,
    budget_tokens: int | None,
    budget_usd: float | None,
    deadline: float | None,
    as_json: bool,
) -> None:
    """Raise what a live run may use; each value is the new cap, not an increment."""
    from ..workflows.errors import RefusedError
    from ..workflows.model.review import Extension

    extension = Extension(
        max_iterations=max_iterations, candidates=candidates, tokens=budget_tokens, usd=budget_usd, deadline_s=deadline
    )
    if not extension.model_dump(exclude_none=True):
        raise RefusedError("nothing to extend", hint="give at least one cap, e.g. --max-iterations 20")
    caps = ask(lambda client: client.extend(run, extension))
    if as_json:
        out_json(caps)
    else:
        held = caps.model_dump(exclude_none=True)
        out("\n".join(f"{name.replace('_', ' ')}: {value:g}" for name, value in held.items()))


@click.command()
@run_argument
def cancel(run: str) -> None:
    """End a run; agents are stopped and everything it held is cleaned up."""
    ask(lambda client: client.cancel(run))
    say(f"cancelling: the run stops its agents and cleans up\nnext: orch watch {run}")


def _me() -> str:
    """Who decides; a user without a name stays nameless."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
