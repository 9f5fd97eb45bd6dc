"""A round's plan: compiled once from its file and its campaign's, frozen by its digest."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from ..base import Digest, Sha, Value
from ..contract import Contract, Rung

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]
"""The id of a campaign, round, entry, lane or device set."""

Text = Annotated[str, StringConstraints(min_length=1, max_length=4000)]

MAX_LANES = 16
MAX_SUBMISSIONS = 50
"""Per lane: a round's history holds every ticket."""

LONGEST_S = 72 * 3600.0
"""Of a round: while it waits for a busy device its history grows."""

MAX_RUNS = 512
"""Benchmark runs of one side in one measurement (pairs times repetitions): every sample travels in a history."""


class Direction(StrEnum):
    """Which way a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"


class Metric(Value):
    """What a benchmark writes to its result file, `{"NAME": {"value": 12.5, "unit": "ms"}}`.

    Attributes:
        name: its key.
        direction: which way it improves.
        unit: must be written beside each value; another one makes the result unevaluable.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,59}$")]
    direction: Direction
    unit: Annotated[str, StringConstraints(min_length=1, max_length=20)]


class FileHash(Value):
    """A file of the incumbent's tree and the SHA-256 of its content."""

    path: str
    sha256: Digest


class Gates(Value):
    """What a measurement must show to count; a round may tighten the campaign's gates, never loosen them.

    The defaults find a gain of 5 % on a shared machine with 2 % of noise in a run, spikes and drift, in over 95 % of
    rounds. Where runs are steadier one repetition, or fewer pairs, do: `tests/bench/README.md` has the rates.

    Attributes:
        pairs: AB/BA pairs of one measurement, half of them in each order.
        repetitions: benchmark runs of each side in a pair; a side's value is their median.
        sigmas: a gain below so many standard errors of the measured noise is no gain.
        rollback: the smallest gain worth keeping, as a fraction of the incumbent's value (0.01: one percent).
        noise: the largest standard deviation of one A/A pair, as such a fraction; above it nothing is measured.
        validator: files that decide whether a result is right, with their hashes; protected besides.
    """

    pairs: int = Field(default=8, ge=4, le=256)
    repetitions: int = Field(default=3, ge=1, le=64)
    sigmas: float = Field(default=2.0, ge=2.0, le=10.0, allow_inf_nan=False)
    rollback: float = Field(default=0.0, ge=0.0, lt=1.0, allow_inf_nan=False)
    noise: float = Field(default=0.1, gt=0.0, lt=1.0, allow_inf_nan=False)
    validator: tuple[FileHash, ...] = ()

    @model_validator(mode="after")
    def _orders_are_balanced(self) -> Self:
        if self.pairs % 2:
            raise ValueError("pairs must be even, half of them in each order: write an even number")
        if self.pairs * self.repetitions > MAX_RUNS:
            raise ValueError(f"pairs times repetitions must be at most {MAX_RUNS}: lower one of them")
        return self


class DeviceSet(Value):
    """What one measurement has for itself; no two measurements of one host share any of it.

    Attributes:
        name: names it in the plan.
        cpus: processors to be pinned to; empty for all of the host's, unpinned.
        cuda: indexes of NVIDIA devices.
        load: the most that the host's one-minute load may be, measurement aside and of named processors theirs alone;
            None for no check.
        governor: the frequency governor the processors must have; empty for no check.
    """

    name: Name
    cpus: tuple[int, ...] = ()
    cuda: tuple[int, ...] = ()
    load: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    governor: str = ""


class Command(Value):
    """A shell line with the wall seconds it may take."""

    run: Annotated[str, StringConstraints(min_length=1, max_length=4000)]
    timeout_s: float = Field(default=600.0, gt=0, le=86_400)


class Commands(Value):
    """What is run in every checkout, and in this order.

    Attributes:
        setup: makes a checkout ready, with what the campaign trusts to be there; None for nothing to do.
        probe: prints the path of the target package; it must lie inside of the checkout. None: nothing is imported.
        build: builds the candidate; None for nothing to do.
        smoke: a short look at whether it works at all; None for none.
        benchmark: writes the result file `$ORCH_RESULT`.
        validate_: exits 0 when what the benchmark left, `$ORCH_RESULT` and `$ORCH_OUTPUT`, is right; None for none.
    """

    setup: Command | None = None
    probe: Command | None = None
    build: Command | None = None
    smoke: Command | None = None
    benchmark: Command
    validate_: Command | None = None


class EntryStatus(StrEnum):
    """Where an entry of the search plan stands."""

    PLANNED = "planned"
    KEPT = "kept"
    REJECTED = "rejected"


class Entry(Value):
    """One direction of a campaign's search plan.

    Attributes:
        id: its id in the campaign.
        plane: the one plane it changes (for example `algorithm`, `memory`, `io`).
        hypothesis: what is expected to make it faster.
        stage: the stage or resource it attacks; two entries with the same one chase the same bottleneck.
        headroom: the share of the metric it can win at most, as a fraction.
    """

    id: Name
    plane: Name
    hypothesis: Text
    stage: str = ""
    headroom: float = Field(gt=0, lt=1, allow_inf_nan=False)


class LaneBudget(Value):
    """What a lane's agents may use over all attempts; None is no cap.

    Attributes:
        attempts: launches of the agent, the first one included; each is a binding that stays charged once claimed.
        wall_s: wall seconds of one attempt.
        turns: turns of one attempt, where the agent can limit them.
        tokens: tokens of the lane.
        usd: US dollars of the lane.
    """

    attempts: int = Field(default=1, ge=1, le=20)
    wall_s: float = Field(default=3600.0, gt=0, le=604_800)
    turns: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class LanePlan(Value):
    """One entry, the files it may change, and who works at it.

    Attributes:
        id: the lane.
        entry: what it pursues.
        globs: gitwildmatch globs of the paths it may write.
        agent: the agent's spec, with its model.
        budget: what its agents may use.
        submissions: how many distinct manifests it may submit.
        deadline_s: seconds after the round's start at which it is over; None: with the round.
        condition: what changed since this entry was rejected; empty when it never was.
    """

    id: Name
    entry: Entry
    globs: tuple[Text, ...] = Field(min_length=1)
    agent: Text
    budget: LaneBudget = LaneBudget()
    submissions: int = Field(default=6, ge=1, le=MAX_SUBMISSIONS)
    deadline_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    condition: str = ""


Composition = Literal["stepwise", "strict"]
"""`stepwise`: after a failed rerun the best single lane is rerun once; `strict`: the incumbent stays at once."""


class RoundPlan(Value):
    """Everything a round is decided by.

    Attributes:
        id: the round's id in its campaign.
        campaign: the campaign's id.
        campaign_digest: SHA-256 over the canonical JSON of the campaign's file, as it was read.
        incumbent: the commit that all lanes start from.
        metric: what is measured.
        gates: what a measurement must show.
        protected: gitwildmatch globs that belong to no lane.
        devices: what measurements have for themselves.
        commands: what is run in every checkout.
        lanes: the lanes, in the order of the file.
        composition: what follows a failed rerun.
        deadline_s: seconds after the start at which nothing more is submitted or measured for a ticket.
        aa_every: after so many measured tickets the incumbent is measured against itself.
        max_bytes: the most that one submission may hold.
        max_files: the most files that one submission may hold.
    """

    id: Name
    campaign: Name
    campaign_digest: Digest
    incumbent: Sha
    metric: Metric
    gates: Gates
    protected: tuple[Text, ...] = ()
    devices: tuple[DeviceSet, ...] = Field(min_length=1)
    commands: Commands
    lanes: tuple[LanePlan, ...] = Field(min_length=1, max_length=MAX_LANES)
    composition: Composition = "stepwise"
    deadline_s: float = Field(default=28_800.0, gt=0, le=LONGEST_S, allow_inf_nan=False)
    aa_every: int = Field(default=6, ge=1, le=100)
    max_bytes: int = Field(default=64 << 20, ge=1)
    max_files: int = Field(default=2_000, ge=1)

    @property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON."""
        return digest_of(self)

    @property
    def contract(self) -> Contract:
        """Set-up and protected paths in the shape that workspaces know; its one rung, the benchmark, ranks nothing."""
        setup, benchmark = self.commands.setup, self.commands.benchmark
        return Contract(
            goal=f"round {self.id} of campaign {self.campaign}",
            rungs=(Rung(name="benchmark", run=benchmark.run, timeout_s=benchmark.timeout_s),),
            protected=self.protected,
            setup=setup.run if setup else "",
            setup_timeout_s=setup.timeout_s if setup else benchmark.timeout_s,
        )

    def only(self, name: str | None = None) -> Self:
        """The plan without the other lanes, for a step that reads nothing of them: it is in each one's input."""
        return self.model_copy(update={"lanes": (self.lane(name or self.lanes[0].id),)})

    def lane(self, name: str) -> LanePlan | None:
        """The lane of that id."""
        return next((lane for lane in self.lanes if lane.id == name), None)


def digest_of(value: Value) -> str:
    """SHA-256 over a value's canonical JSON: sorted keys, no spaces, UTF-8."""
    text = json.dumps(value.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
