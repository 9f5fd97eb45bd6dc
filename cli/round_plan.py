"""A round plan's file and its campaign's, compiled to one frozen plan; every refusal and warning at its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..activities.campaigns import read_record
from ..activities.commit_tree import CommitTree, named_commit
from ..activities.home import Home
from ..activities.repository import Repository
from ..activities.round_facts import entry_facts, matched, meetings, plan_flaws, validator_hashes
from ..activities.trials.devices import disturbances
from ..activities.trials.devices import flaws as device_flaws
from ..workflows.errors import RefusedError
from ..workflows.model.round.campaign import Campaign, NamedFile, Record
from ..workflows.model.round.facts import EntryFacts, LaneFacts, PlanFacts
from ..workflows.model.round.plan import Entry, EntryStatus, FileHash, Gates, LanePlan, RoundPlan, digest_of
from ..workflows.rules.campaign import last_rows
from ..workflows.rules.round_plan import TIGHTER, loosened
from .campaign_file import GATE_KEYS, check_campaign
from .checked import CheckedRound
from .round_file import ROUND_KEYS, RoundDraft, read_round
from .round_protection import protection, sound_globs
from .talk import clean, one_line, plural
from .yaml_lines import Document
from .yaml_tables import At, build

Look = Callable[[str], str | None]
"""The full id of the commit that a name stands for."""


def check_round(file: Path, repository: Repository, home: Home, *, sandbox: bool = True) -> CheckedRound:
    """Read, check and compile; what is refused stands in the documents. RefusedError without a file."""
    draft, document = read_round(file)
    checked = CheckedRound(document)
    campaign = _campaign(draft, checked)
    _devices(draft, document, sandbox=sandbox)
    if campaign is None:
        _without_tree(draft, checked)
        return checked
    record = read_record(home, campaign.id)
    stands = _incumbent(draft, checked, campaign, record, partial(named_commit, repository.git))
    tree = _tree(checked, stands, repository, home)
    if tree is None:
        _without_tree(draft, checked)
    else:
        _compile(_Compiling(draft, checked, campaign, record, tree))
    return checked


def _devices(draft: RoundDraft, document: Document, *, sandbox: bool) -> None:
    sets = draft.fields.get("devices", ())
    for index, devices in enumerate(sets):
        if devices is not None and (flaw := device_flaws(devices, sandbox=sandbox)):
            document.refuse(("devices", index), f"device set `{devices.name}`: {flaw}", "name what this host has")
    known = [devices for devices in sets if devices is not None]
    for why, mend in disturbances(known) if known else ():
        document.warn(("devices",), why, mend)


def check_campaign_alone(file: Path, repository: Repository, home: Home) -> CheckedRound:
    """Check a campaign's file without a round: its search plan, its incumbent, its validator."""
    campaign, document = check_campaign(file)
    checked = CheckedRound(document)
    if campaign is None:
        return checked
    record = read_record(home, campaign.id)
    stands = _incumbent(RoundDraft(None), checked, campaign, record, partial(named_commit, repository.git))
    tree = _tree(checked, stands, repository, home)
    said = sound_globs(document, campaign.protected)
    if tree is not None:
        files = _hashes(campaign.validator, document, tree)
        checked.protected, told = protection(campaign.commands, said, [file.path for file in files], tree)
        standing = (entry_facts(entry, record) for entry in campaign.entries)
        checked.facts += [*told, *(f"entry {entry.id}: {entry.status.value}{_by(entry)}" for entry in standing)]
    if not document.refusals:
        checked.digest = digest_of(campaign)
        checked.summary = f"campaign {campaign.id}, {plural(len(campaign.entries), 'entry')}"
    return checked


@dataclass(frozen=True)
class _Compiling:
    draft: RoundDraft
    checked: CheckedRound
    campaign: Campaign
    record: Record
    tree: CommitTree


def _campaign(draft: RoundDraft, checked: CheckedRound) -> Campaign | None:
    if draft.campaign is None:
        return None
    try:
        campaign, checked.other = check_campaign(draft.campaign)
    except RefusedError as error:
        checked.document.refuse(("campaign",), f"the campaign's file cannot be read: {error.message}", error.hint)
        return None
    return campaign


def _incumbent(draft: RoundDraft, checked: CheckedRound, campaign: Campaign, record: Record, look: Look) -> str:
    """The commit that the campaign stands at: by its record, else what its file names; empty where that is none."""
    stands = record.state.incumbent or look(campaign.incumbent) or ""
    if not stands:
        checked.campaign.refuse(
            ("incumbent",),
            f"`{campaign.incumbent}` names no commit of the repository",
            "name a branch, a tag or a commit",
        )
    elif draft.incumbent and draft.incumbent != stands:
        checked.document.refuse(
            ("incumbent",),
            f"the incumbent moved: the campaign stands at {stands}, the plan says {draft.incumbent}",
            "leave the key out to start from where the campaign stands",
        )
    by = record.state.evidence if record.state.incumbent else campaign.incumbent
    if stands and by != stands:
        checked.facts.append(f"incumbent: {stands[:12]}, by {clean(by)}")
    return stands


def _tree(checked: CheckedRound, commit: str, repository: Repository, home: Home) -> CommitTree | None:
    tree = CommitTree.find(home, repository, commit) if commit else None
    if tree is None and commit:
        checked.campaign.refuse(
            ("incumbent",), f"{commit}, where the campaign stands, is no commit of {repository.top}", "fetch it"
        )
    return tree


def _by(entry: EntryFacts) -> str:
    return f" since round {entry.last.round}: {one_line(entry.last.why, 120)}" if entry.last else ""


def _without_tree(draft: RoundDraft, checked: CheckedRound) -> None:
    """Check what needs neither campaign nor tree."""
    checked.note(plan_flaws(PlanFacts(lanes=_lanes(draft), entries=None, devices=draft.devices)))


def _lanes(draft: RoundDraft) -> tuple[LaneFacts, ...]:
    return tuple(
        LaneFacts(
            id=lane.get("id", ""),
            entry=lane.get("entry", ""),
            globs=tuple(glob for glob in lane.get("globs", ()) if glob),
            condition=lane.get("condition", ""),
            submissions=lane.get("submissions", LanePlan.model_fields["submissions"].default),
        )
        for lane in draft.lanes
    )


def _compile(given: _Compiling) -> None:
    draft, checked, campaign, record, tree = given.draft, given.checked, given.campaign, given.record, given.tree
    _run_before(given)
    limits, files = _gates(given)
    checked.said = (
        *sound_globs(checked.campaign, campaign.protected),
        *sound_globs(checked.document, draft.fields.get("protected", ())),
    )
    checked.protected, told = protection(campaign.commands, checked.said, [file.path for file in files], tree)
    checked.facts += told
    checked.note(plan_flaws(_facts(given, limits)))
    if any(document.refusals for document in checked.documents):
        return
    fields = {
        **draft.fields,
        "campaign": campaign.id,
        "campaign_digest": digest_of(campaign),
        "incumbent": tree.commit,
        "metric": campaign.metric,
        "gates": limits.model_copy(update={"validator": files}),
        "protected": checked.protected,
        "commands": campaign.commands,
        "lanes": [_lane(lane, campaign, record) for lane in draft.lanes],
    }
    checked.plan = build(At(checked.document), RoundPlan, fields, ROUND_KEYS)
    if checked.plan is not None:
        checked.digest = checked.plan.digest
        checked.summary = f"round {checked.plan.id} of campaign {campaign.id}, {plural(len(draft.lanes), 'lane')}"


def _facts(given: _Compiling, limits: Gates) -> PlanFacts:
    """What the rules are asked about."""
    lanes = matched(_lanes(given.draft), given.checked.protected, given.tree)
    return PlanFacts(
        lanes=lanes,
        entries=tuple(entry_facts(entry, given.record) for entry in given.campaign.entries),
        devices=given.draft.devices,
        meetings=meetings(lanes),
        gates=limits,
        noise=given.record.state.noise,
        direction=given.campaign.metric.direction,
    )


def _run_before(given: _Compiling) -> None:
    """Refuse a round that is on record: it is run once."""
    ran = dict(given.record.state.rounds).get(given.draft.fields.get("id", ""))
    if ran is not None:
        given.checked.document.refuse(
            ("round",),
            f"round `{given.draft.fields['id']}` of campaign `{given.campaign.id}` has run, with the digest {ran}",
            "give this one another id",
        )


def _gates(given: _Compiling) -> tuple[Gates, tuple[FileHash, ...]]:
    """The campaign's gates, tightened, and the validator's files with their hashes in the incumbent's tree."""
    asked = {name: value for name, value in given.draft.gates.items() if name in TIGHTER}
    document = given.checked.document
    sound = {name: value for name, value in asked.items() if At(document)["gates"][name].sound}
    given.checked.note(loosened(given.campaign.gates, sound))
    at = At(document)["gates"]
    limits = build(at, Gates, {**given.campaign.gates.model_dump(), **sound}, GATE_KEYS) or given.campaign.gates
    own = given.draft.gates.get("validator", ())
    files = [
        *_hashes(given.campaign.validator, given.checked.campaign, given.tree),
        *_hashes(own, document, given.tree),
    ]
    return limits, tuple({file.path: file for file in files}.values())


def _hashes(files: Iterable[NamedFile | None], document: Document, tree: CommitTree) -> list[FileHash]:
    hashes, wrong = validator_hashes(list(files), tree)
    for index, why, mend in wrong:
        document.refuse(("gates", "validator", index), why, mend)
    return hashes


def _lane(lane: Mapping[str, Any], campaign: Campaign, record: Record) -> dict[str, Any]:
    """A lane with its entry; one that is planned again is pursued under the condition that the record states."""
    entry = next(entry for entry in campaign.entries if entry.id == lane["entry"])
    last = last_rows(record.revisions).get(entry.id)
    again = last.condition if last and last.status is EntryStatus.PLANNED else ""
    plain = Entry.model_validate(entry.model_dump(exclude={"status"}))
    return {**lane, "entry": plain, "condition": lane.get("condition") or again}
