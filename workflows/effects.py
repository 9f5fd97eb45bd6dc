"""Every activity as a signature, with its time limits and retry policy.

`activities/` implements the same names and types, the worker registers those, and a test compares every pair. A body
here is never run.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity
from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType, ActivityConfig

from .model.attempt import (
    AgentReport,
    CloseAttempt,
    Measure,
    OpenWorkspace,
    RunAgent,
    Snapshot,
    TakeSnapshot,
    Workspace,
    YieldSlot,
)
from .model.claim import Claimed, ClaimHost
from .model.goal import CloseRun, KeepEvents, MoveHead, PrepareRun, RunPrepared
from .model.promotion import Promote, Promotion
from .model.review import Review, ReviewHead
from .model.round.campaign import RecordRound, RoundRecord
from .model.round.lane import (
    BuildTrial,
    Built,
    Composed,
    ComposeStep,
    LaneOpened,
    MeasurePairs,
    OpenLane,
    TakeIn,
    TakenIn,
    ValidateOutputs,
)
from .model.round.request import PrepareRound, RoundPrepared
from .model.round.trial import Measurement, Validated
from .model.verdict import Verdict

HEARTBEAT = timedelta(seconds=10)
"""A worker that says nothing for this long is dead; a live one beats every 2 s, and a false alarm only re-attaches."""

RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=500),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=20,
    non_retryable_error_types=["RefusedError", "ValidationError"],
)
"""Generous: a worker's shutdown consumes an attempt. Outcomes of agents and rungs are values and never retried."""

STEP = ActivityConfig(
    start_to_close_timeout=timedelta(minutes=30),
    heartbeat_timeout=HEARTBEAT,
    retry_policy=RETRY,
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)
"""Git, store and promotion steps: idempotent, minutes at most."""

WAIT = ActivityConfig(
    start_to_close_timeout=timedelta(days=30),
    heartbeat_timeout=HEARTBEAT,
    retry_policy=RETRY,
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)
"""Steps bounded from inside: waiting for a slot, agents (absolute deadline), rungs (their own time limits)."""

CLAIM = ActivityConfig(
    start_to_close_timeout=timedelta(seconds=20),
    retry_policy=RetryPolicy(
        initial_interval=timedelta(milliseconds=500),
        backoff_coefficient=1.5,
        maximum_interval=timedelta(seconds=5),
        non_retryable_error_types=["RefusedError", "ValidationError"],
    ),
    cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
)
"""Waits in the queue until a host has room; one that cannot take the attempt gives it back, as often as need be."""

AWAY = timedelta(days=7)
"""How long a step waits for its host to come back before it counts as lost."""


def options(config: ActivityConfig, *, queue: str, summary: str, away: timedelta = AWAY) -> ActivityConfig:
    """The limits of a step, with the host's queue it goes to and its line in the Web UI."""
    merged = config.copy()
    merged["task_queue"], merged["schedule_to_start_timeout"], merged["summary"] = queue, away, summary[:200]
    return merged


@activity.defn
async def prepare_run(request: PrepareRun) -> RunPrepared:
    """Check the repository, take the baseline into the store, reserve the tree; a refusal is a value."""
    raise NotImplementedError


@activity.defn
async def claim_host(request: ClaimHost) -> Claimed:
    """Reserve a slot of this host for an attempt; a host that cannot take it gives it back to the others."""
    raise NotImplementedError


@activity.defn
async def open_workspace(request: OpenWorkspace) -> Workspace:
    """Make the workspace once this host has room, and set it up; no room and a failing set-up are values."""
    raise NotImplementedError


@activity.defn
async def run_agent(request: RunAgent) -> AgentReport:
    """Start the agent under its supervisor, or attach to the one already running, and report how it ended."""
    raise NotImplementedError


@activity.defn
async def take_snapshot(request: TakeSnapshot) -> Snapshot:
    """Record the workspace's tree in the store, protected paths restored."""
    raise NotImplementedError


@activity.defn
async def measure(request: Measure) -> Verdict:
    """Run the contract's rungs in a fresh copy of a commit; red and unevaluable are values."""
    raise NotImplementedError


@activity.defn
async def yield_slot(request: YieldSlot) -> None:
    """Give the attempt's slot back while it rests."""
    raise NotImplementedError


@activity.defn
async def close_attempt(request: CloseAttempt) -> None:
    """End what still runs of the attempt, remove its workspace, give its slot back."""
    raise NotImplementedError


@activity.defn
async def move_head(request: MoveHead) -> None:
    """Point the run's head in the store at a commit, and keep the newest events on disk."""
    raise NotImplementedError


@activity.defn
async def review_head(request: ReviewHead) -> Review:
    """Ask the reviewer about the head's tree; anything but a clear answer is a veto."""
    raise NotImplementedError


@activity.defn
async def promote(request: Promote) -> Promotion:
    """Move the user's tree or a branch to the result, all or nothing; a refusal is a value."""
    raise NotImplementedError


@activity.defn
async def keep_events(request: KeepEvents) -> None:
    """Append to the ledger in the run's folder what it does not have yet."""
    raise NotImplementedError


@activity.defn
async def close_run(request: CloseRun) -> None:
    """Write the ledger to the run's folder and let go of what the run reserved."""
    raise NotImplementedError


@activity.defn
async def prepare_round(request: PrepareRound) -> RoundPrepared:
    """Check host, repository and plan, and bring the incumbent into the store; a refusal is a value."""
    raise NotImplementedError


@activity.defn
async def open_lane(request: OpenLane) -> LaneOpened:
    """Make a lane's workspace with its wrapper; no room, a failing set-up or probe are values."""
    raise NotImplementedError


@activity.defn
async def take_in(request: TakeIn) -> TakenIn:
    """Watch a lane's outbox and submit what is new in it to the round, until it is cancelled."""
    raise NotImplementedError


@activity.defn
async def build_trial(request: BuildTrial) -> Built:
    """Make and build fresh checkouts of both sides; a failing step is a value."""
    raise NotImplementedError


@activity.defn
async def measure_pairs(request: MeasurePairs) -> Measurement:
    """Lease the device set and run the pairs; a busy device and a failing benchmark are values."""
    raise NotImplementedError


@activity.defn
async def validate_outputs(request: ValidateOutputs) -> Validated:
    """Validate the outputs that nobody looked at while the device was held, and let go of the trial."""
    raise NotImplementedError


@activity.defn
async def compose_step(request: ComposeStep) -> Composed:
    """Lay a ticket's files on a head as one commit."""
    raise NotImplementedError


@activity.defn
async def record_round(request: RecordRound) -> RoundRecord:
    """Write the round's ledger document and advance the campaign's record."""
    raise NotImplementedError
