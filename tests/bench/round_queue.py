"""`python -m tests.bench.round_queue`: how long devices wait in a saturated queue of a real round.

Lanes of scripted agents submit many tickets at once; a trial is a real process that sleeps. Of the time from the first
ticket's measurement to the last one's end, the device is idle whenever no measurement holds it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import uuid
from pathlib import Path

from tests.rounds import kit, lanes

from orch import Client
from orch.activities.home import Home
from orch.worker import engine
from orch.worker.state import open_state
from orch.workflows.model.event import Event
from orch.workflows.model.round.event import GuardMeasured, TicketMeasured, TicketQueued, TicketTaken
from orch.workflows.model.round.trial import Measurement

NAMES = ("parse", "layout", "emit", "sort")


def main() -> None:
    """Measure and print; the process ends at once, as the SDK's threads may not."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.round_queue", description=__doc__)
    parser.add_argument("--tickets", type=int, default=6, help="tickets of each of the four lanes (default 6)")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long one benchmark run takes (default 1)")
    parser.add_argument("--folder", type=Path, help="where to work (default: the system's temporary folder)")
    options = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).resolve().parent}:{os.environ['PATH']}"  # no shim of a version manager
    with tempfile.TemporaryDirectory(prefix="orch-bench-", dir=options.folder) as name:
        events = asyncio.run(_played(Path(name), options.tickets, options.seconds))
    _tell(events, options.seconds)
    sys.stdout.flush()
    os._exit(0)


async def _played(folder: Path, tickets: int, seconds: float) -> list[Event]:
    home = Home(folder / "state")
    open_state(home)
    await engine.ensure_up(home)
    repo = kit.synthetic(folder / "repo", sleep_s=seconds)
    factors = [0.5 + 0.4 * n / tickets for n in range(tickets)]
    players = [kit.Lane(lane, lanes.gains(lane, *factors), more={"submissions": tickets}) for lane in NAMES]
    campaign = {"campaign": f"c-{uuid.uuid4().hex[:8]}"}
    plan = kit.write_plan(folder / "plans", repo, players, campaign=campaign, aa_every=100, deadline="60m")
    client = Client(home)
    run = await client.start_round(plan, repo=repo)
    events = [event async for event in client.events(run)]
    await engine.down(home)
    return events


def _tell(events: list[Event], seconds: float) -> None:
    queued = {e.submission.ticket: e.time for e in events if isinstance(e, TicketQueued)}
    taken = [e.time for e in events if isinstance(e, TicketTaken)]
    measured = [e for e in events if isinstance(e, TicketMeasured)]
    held = [e.measurement for e in measured]
    held += [e.measurement for e in events if isinstance(e, GuardMeasured) and taken and e.time > min(taken)]
    begun = min(e.time - e.measurement.held_s for e in measured)
    span = max(e.time for e in measured) - begun
    busy, runs = sum(one.held_s for one in held), sum(map(_runs, held))
    walls = [sample.wall_s for one in held for pair in one.pairs for sample in (*pair.a, *pair.b)]
    waits = [e.time - e.measurement.held_s - queued[e.ticket] for e in measured]
    print(f"{len(measured)} tickets of {len(NAMES)} lanes, {runs} runs of {seconds:g} s: {span:.1f} s")
    print(f"device held {busy:.1f} s, idle {100 * (1 - busy / span):.2f} %")
    print(f"a benchmark takes {_ms(statistics.median(walls) - seconds)} more than it sleeps (median)")
    print(f"between two of them pass {_ms((busy - sum(walls)) / runs)}, with what is validated on the device")
    least, usual = min(waits), statistics.median(waits)
    print(f"from queued to device: {least:.2f} s at least, {usual:.1f} s median (the queue is full)")


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


def _runs(found: Measurement) -> int:
    return sum(len(pair.a) + len(pair.b) for pair in found.pairs)


if __name__ == "__main__":
    main()
