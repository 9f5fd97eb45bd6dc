"""`orch pilot`: whether all lanes in one round reach a gain sooner than one lane per round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .exits import ExitStatus
from .params import json_option
from .session import ask
from .talk import clean, out, out_json, plural, say

if TYPE_CHECKING:
    from ..activities.repository import Repository
    from ..workflows.model.round.pilot import PilotPlan, PilotRun
    from ..workflows.model.round.plan import RoundPlan
    from .client import Client
    from .replaying import Replay
    from .round_options import RoundOptions


@click.command()
@click.argument("file", metavar="[FILE]", type=click.Path(path_type=Path), required=False)
@click.option("--replay", metavar="ID", help="Measure what a finished round submitted once more, without its agents.")
@click.option(
    "--repo", type=click.Path(path_type=Path), default=".", show_default=True, help="A folder of its repository."
)
@click.option("--no-sandbox", "sandbox", flag_value=False, default=True, help="Do without the sandbox.")
@click.option("--dry-run", is_flag=True, help="Show the rounds in their order and start nothing.")
@json_option
def pilot(file: Path | None, replay: str | None, repo: Path, *, sandbox: bool, dry_run: bool, as_json: bool) -> None:
    """Compare two policies by the pilot in FILE: all lanes in one round (P), and one lane per round (S).

    FILE names a round plan, the number of repetitions, the gain to be reached and the threshold. The runs are made in
    turns, P S S P and so on, each at a copy of the campaign; nothing is promoted. Each finished run is kept, so the
    same command goes on with an interrupted pilot. It is a workflow-policy comparison: the later agents of S see newer
    code. --replay bounds the measurement queue of a finished round instead.
    """
    from ..activities.repository import inspect
    from .round_options import RoundOptions

    if (file is None) == (replay is None):
        raise click.UsageError("give the pilot's FILE, or --replay ID")
    repository = inspect(repo)
    options = RoundOptions(plan=file or Path(), repo=repo, sandbox=sandbox)
    if replay is not None:
        _replay(replay, options, repository, as_json=as_json)
    elif file is not None:
        _compare(file, options, repository, dry_run=dry_run, as_json=as_json)


def _compare(file: Path, options: RoundOptions, repository: Repository, *, dry_run: bool, as_json: bool) -> None:
    from ..worker.settings import load_settings
    from .pilot_report import report, report_lines
    from .piloting import run_pilot
    from .playing import Player
    from .round_start import preflight_round, request_of

    home = load_settings().home
    plan = _checked(file, options, repository)
    if dry_run:
        _show(plan, lambda one: request_of(one, options, repository, home).run, as_json=as_json)
        return
    preflight_round(request_of(plan.round, options, repository, home), repository, home)

    async def compare(client: Client) -> list[PilotRun]:
        runs: list[PilotRun] = []
        async for run in run_pilot(plan, home.pilot(plan.id), Player(client, options, repository)):
            say(f"{run.arm.value}{run.pair + 1} is done, {len(runs) + 1} of {2 * plan.repetitions}")
            runs.append(run)
        return runs

    with _pilot_waits(f"orch pilot {file}"):
        shown = report(plan, ask(compare))
    if as_json:
        out_json(shown)
    else:
        out("\n".join(report_lines(shown, plan.round.metric.direction)))


def _checked(file: Path, options: RoundOptions, repository: Repository) -> PilotPlan:
    """The frozen pilot, its warnings told; RefusedError with every refusal of the three files."""
    from ..worker.settings import load_settings
    from .pilot_file import check_pilot

    checked = check_pilot(file, repository, load_settings().home, sandbox=options.sandbox)
    if checked.plan is None:
        raise checked.error()
    for warning in checked.warnings:
        say(f"warning: {clean(warning)}")
    return checked.plan


def _show(plan: PilotPlan, run_of: Callable[[RoundPlan], str], *, as_json: bool) -> None:
    from ..workflows.rules.pilot import order
    from .pilot_plans import round_of, steps

    runs = {
        f"{arm.value}{pair + 1}": [
            run_of(round_of(plan, arm, pair, step, plan.round.incumbent)) for step in range(steps(plan, arm))
        ]
        for arm, pair in order(plan.repetitions)
    }
    if as_json:
        out_json({"pilot": plan.id, "digest": plan.digest, "plan": plan, "runs": runs})
        return
    out(f"pilot {plan.id}, {plural(plan.repetitions, 'repetition')}, digest {plan.digest}")
    for name, rounds in runs.items():
        out(f"{name}  {'  '.join(rounds)}")


def _replay(run: str, options: RoundOptions, repository: Repository, *, as_json: bool) -> None:
    from ..activities.store import Store
    from ..activities.workspaces.gitdir import give_own
    from .playing import Player
    from .replaying import Replay, queue_of, replay_of, submitted
    from .runs import all_events

    async def play(client: Client) -> Replay:
        recorded = await all_events(client.link, run)
        plan = replay_of(run, recorded)
        say(f"replaying {plural(len(plan.lanes), 'lane')} of {run}")
        store = Store.of(client.home, repository)
        for commit in chain.from_iterable(submitted(recorded).values()):
            give_own(store, store.git_dir / "objects", commit)  # what runs made lies apart, where no lane reads it
        player = Player(client, options, repository)
        ledger = await player(plan)
        return Replay(recorded=queue_of(run, recorded), replayed=queue_of(player.last, ledger))

    with _pilot_waits(f"orch pilot --replay {run}"):
        found = ask(play)
    if as_json:
        out_json(found)
    else:
        out("\n".join(_replay_lines(found)))


def _replay_lines(found: Replay) -> list[str]:
    from .durations import show_duration
    from .render import columns

    rows = [("", "run", "tickets", "queue", "device", "idle")]
    for name, queue in (("recorded", found.recorded), ("replayed", found.replayed)):
        times = (show_duration(queue.span_s), show_duration(queue.held_s))
        rows.append((name, queue.run, str(queue.tickets), *times, f"{queue.idle:.0%}"))
    return [found.label, *columns(rows)]


@contextmanager
def _pilot_waits(again: str) -> Iterator[None]:
    """Turn Ctrl-C into exit status 130, with the way back to the pilot."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"\ninterrupted: the round that runs goes on, no other begins\nnext: {again}")
        raise SystemExit(ExitStatus.INTERRUPTED) from None
