"""A campaign's record in the state directory: what rounds made of its entries, and the revision it stands at.

`revisions.jsonl` is append-only: a row is never changed or removed; `state.json` is replaced. What a round adds to both
is decided under a lock and written aside first, as one file whose rename decides: killed anywhere, it counts once and
whole, and whoever comes next finishes it.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..workflows.model.round.campaign import CampaignState, Record, RecordRound, Revision, RoundRecord
from ..workflows.model.round.plan import RoundPlan
from ..workflows.rules.campaign import superseded
from .artifacts import write_whole
from .home import Home
from .store import Store

STATE = "state.json"
REVISIONS = "revisions.jsonl"

DECIDED = "decided.json"
"""The whole record with a round in it; once it is there, the round is recorded."""

CAMPAIGNS = "refs/campaigns"
"""Below it a store has a ref for the incumbent of each campaign."""

ROUNDS = "rounds"
"""The folder of the rounds' ledger documents: they outlive the folders of their runs. Beside each the run's id."""

DOCUMENT = "round-ledger.json"
"""The ledger document, in the folder of the round's run."""


def read_record(home: Home, campaign: str) -> Record:
    """What is on record; of a campaign without any, its empty state."""
    folder = home.campaign(campaign)
    if not folder.is_dir():
        return Record(state=CampaignState(campaign=campaign))
    with _locked(folder):
        return _read(folder, campaign)


def begun(home: Home, plan: RoundPlan) -> str:
    """The run that this round was begun as; empty when it was not, or its run was collected without being recorded."""
    try:
        run = _begun(home, plan).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    return run if home.run(run).is_dir() else ""


def begin(home: Home, plan: RoundPlan, run: str) -> str:
    """Begin a round as a run and return that, or the run it was begun as before: another key gives a run another id."""
    with _locked(home.campaign(plan.campaign)):
        if before := begun(home, plan):
            return before
        write_whole(_begun(home, plan), run)
        return run


def documents(home: Home, campaign: str) -> list[dict[str, Any]]:
    """The ledger documents of the campaign's rounds that were recorded; one that is no JSON is left out."""
    found = []
    for path in sorted((home.campaign(campaign) / ROUNDS).glob("*.json")):
        with suppress(ValueError):
            found.append(json.loads(path.read_bytes()))
    return found


def record_round(home: Home, request: RecordRound, document: Mapping[str, Any]) -> RoundRecord:
    """Write the round's document, append its rows, and advance the incumbent if it still is the plan's. Idempotent."""
    plan = request.plan
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    data = text.encode()
    write_whole(home.run(request.run) / DOCUMENT, text)
    folder = home.campaign(plan.campaign)
    with _locked(folder):
        record = _read(folder, plan.campaign)
        if (plan.id, plan.digest) not in record.state.rounds:
            write_whole(folder / ROUNDS / f"{plan.id}.json", text)
            record = _after(record, request)
            if record.state.evidence == request.run:
                Store(home, request.store).pin(campaign_ref(plan.campaign), request.incumbent or "")
            _commit(folder, record)
    moved = dict(record.state.overtaken).get(plan.id)
    return RoundRecord(path=DOCUMENT, sha256=sha256(data).hexdigest(), size=len(data), moved=moved)


def campaign_ref(campaign: str) -> str:
    """The ref of a store that keeps a campaign's incumbent, whatever becomes of the run that made it."""
    return f"{CAMPAIGNS}/{campaign}"


def _begun(home: Home, plan: RoundPlan) -> Path:
    return home.campaign(plan.campaign) / ROUNDS / f"{plan.id}.run"


def _after(record: Record, request: RecordRound) -> Record:
    """The record with the round in it: the incumbent is compared and set, of the repository that came first."""
    plan, state = request.plan, record.state
    stands, store = state.incumbent or plan.incumbent, state.store or request.store
    stays = (stands, store) == (plan.incumbent, request.store)
    moved = stands if request.incumbent is not None and not stays else None
    update: dict[str, object] = {"rounds": (*state.rounds, (plan.id, plan.digest)), "store": store}
    if request.noise is not None and store == request.store:
        update["noise"] = request.noise
    if moved is not None:
        update["overtaken"] = (*state.overtaken, (plan.id, moved))
    elif request.incumbent is not None:
        update |= {"incumbent": request.incumbent, "evidence": request.run}
    rows = request.revisions if moved is None else superseded(request.revisions, moved)
    return Record(state=state.model_copy(update=update), revisions=(*record.revisions, *rows))


def _read(folder: Path, campaign: str) -> Record:
    """The record under the lock; what a killed process had decided is finished first."""
    if (folder / DECIDED).exists():
        _finish(folder, Record.model_validate_json((folder / DECIDED).read_bytes()))
    path = folder / STATE
    state = CampaignState.model_validate_json(path.read_bytes()) if path.exists() else None
    return Record(state=state or CampaignState(campaign=campaign), revisions=_rows(folder))


def _commit(folder: Path, record: Record) -> None:
    write_whole(folder / DECIDED, record.model_dump_json(), lasting=True)
    _finish(folder, record)


def _finish(folder: Path, record: Record) -> None:
    rows = "".join(f"{row.model_dump_json()}\n" for row in record.revisions)
    write_whole(folder / REVISIONS, rows, lasting=True)
    write_whole(folder / STATE, record.state.model_dump_json(indent=1) + "\n", lasting=True)
    (folder / DECIDED).unlink()


def _rows(folder: Path) -> tuple[Revision, ...]:
    path = folder / REVISIONS
    if not path.exists():
        return ()
    lines = path.read_text(encoding="utf-8").split("\n")  # JSON may hold U+2028: no splitlines
    return tuple(Revision.model_validate_json(line) for line in lines if line)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
