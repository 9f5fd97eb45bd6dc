"""A build, a smoke test and a benchmark run of the running system that try to write what is not theirs.

Each tries the ledger, another lane's clone, a grading file and the user's home, and ends with 13 only if the system
denied all of them: that is what the cause of its ticket tells.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orch import Client
from orch.activities.artifacts import LEDGER, read_events
from orch.activities.home import Home
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.round.event import TicketRejected
from orch.workflows.model.round.ticket import Cause
from orch.workflows.model.round.trial import Judgement

from .playing import Played, play

pytestmark = [pytest.mark.engine]

DENIED = 13

BREAKS_OUT = """\
import os
FACTOR = 0.1
ANSWER = "right"
denied = 0
for path in {paths}:
    try:
        with open(path, "a") as file:
            file.write("stolen")
    except OSError:
        denied += 1
os._exit({denied} if denied == len({paths}) else 0)
"""

IMPORTS = 'python3 -Bc "import engine.{}.knob"'


def breaks_out(rounds: ModuleType, scripted: ModuleType, lane: str, paths: list[str]) -> Any:
    """A lane that submits a knob which tries to write them as soon as it is loaded."""
    text = BREAKS_OUT.format(paths=paths, denied=DENIED)
    program = f"import pathlib\npathlib.Path('engine/{lane}/knob.py').write_text({text!r})"
    return rounds.Lane(lane, scripted.cmd(scripted.python(program), scripted.SUBMIT))


def details(done: Played, lane: str) -> list[str]:
    return [event.detail for event in done.all(TicketRejected) if event.lane == lane]


async def test_what_a_build_a_smoke_test_and_a_trial_write_elsewhere_is_denied_and_their_tickets_fail(
    client: Client, engine_home: Home, rounds: ModuleType, scripted: ModuleType, tmp_path: Path
) -> None:
    campaign = f"c-{uuid.uuid4().hex[:8]}"
    run, private = f"round-{campaign}-r1", Path.home() / "private"
    other = engine_home.attempt(AttemptKey(run=run, iteration=1, candidate=4, binding=4)) / "tree/README.md"
    paths = [str(engine_home.run(run) / LEDGER), str(other), "bench/bench.py", str(private)]
    lanes = [
        *(breaks_out(rounds, scripted, lane, paths) for lane in ("parse", "layout", "emit")),
        rounds.Lane("index", scripted.gain("index", 0.4)),
    ]
    steps = {"build": IMPORTS.format("parse"), "smoke": IMPORTS.format("layout")}

    done = await play(
        client, rounds, tmp_path, lanes, campaign={"campaign": campaign, "commands": {**rounds.COMMANDS, **steps}}
    )

    assert done.run == run
    assert (done.causes("parse"), details(done, "parse")) == ([Cause.BUILD_FAILED], [f"build: exit {DENIED}"])
    assert (done.causes("layout"), details(done, "layout")) == ([Cause.SMOKE_FAILED], [f"smoke: exit {DENIED}"])
    (measured,) = done.measured("emit")
    assert measured.evaluation.verdict is Judgement.UNEVALUABLE
    assert measured.measurement.detail == f"pair 0, candidate: the benchmark ended with exit {DENIED}"
    assert done.decided.lanes == ("index",)
    assert read_events(engine_home.run(run) / LEDGER) == done.events
    assert not private.exists()
