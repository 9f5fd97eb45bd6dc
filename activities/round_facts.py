"""What the rules of a round's plan are asked about: which globs match what, what a campaign's record says, hashes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations

import pathspec

from ..workflows.model.round.campaign import CampaignEntry, NamedFile, Record
from ..workflows.model.round.facts import EntryFacts, Flaw, LaneFacts, Meeting, PlanFacts
from ..workflows.model.round.plan import FileHash, RoundPlan
from ..workflows.rules.campaign import last_rows, tried
from ..workflows.rules.round_plan import flaws
from ..workflows.rules.scopes import crowded, scope_flaws
from .changes import display
from .commit_tree import CommitTree
from .glob_overlap import common_path
from .protection import matcher, matches


def plan_flaws(facts: PlanFacts) -> tuple[Flaw, ...]:
    """Everything that is wrong with a plan."""
    return (*flaws(facts), *scope_flaws(facts))


def frozen_facts(plan: RoundPlan, record: Record, tree: CommitTree) -> PlanFacts:
    """The facts of a plan that is frozen, by the record as it is now."""
    entries = [CampaignEntry(**lane.entry.model_dump()) for lane in plan.lanes]
    asked = [
        LaneFacts(
            id=lane.id,
            entry=lane.entry.id,
            globs=lane.globs,
            condition=lane.condition,
            submissions=lane.submissions,
        )
        for lane in plan.lanes
    ]
    lanes = matched(asked, plan.protected, tree)
    return PlanFacts(
        lanes=lanes,
        entries=tuple(entry_facts(entry, record) for entry in entries),
        devices=plan.devices,
        meetings=meetings(lanes),
        gates=plan.gates,
        noise=record.state.noise,
        direction=plan.metric.direction,
    )


def entry_facts(entry: CampaignEntry, record: Record) -> EntryFacts:
    """An entry of the campaign's file with what the record says of it."""
    last = last_rows(record.revisions).get(entry.id)
    return EntryFacts(
        id=entry.id,
        planes=(entry.plane,),
        hypothesis=entry.hypothesis,
        stage=entry.stage,
        headroom=entry.headroom,
        status=last.status if last else entry.status,
        last=last,
        tried=tried(record.revisions, entry.id),
    )


def matched(lanes: Iterable[LaneFacts], protected: Sequence[str], tree: CommitTree) -> tuple[LaneFacts, ...]:
    """The lanes with what their globs match in a commit's tree, and what of that is protected."""
    closed = matcher(protected)
    return tuple(_matched(lane, closed, list(tree.leaves)) for lane in lanes)


def broken(glob: str) -> bool:
    """Whether a text is no glob of a .gitignore, or one that takes longer than anybody waits."""
    if crowded(glob):
        return True
    try:
        patterns = list(pathspec.GitIgnoreSpec.from_lines([glob]).patterns)
    except (ValueError, re.error):
        return True
    return not patterns or patterns[0].include is None


def meetings(lanes: Sequence[LaneFacts]) -> tuple[Meeting, ...]:
    """For each two lanes a path that is not there yet and that both could write, where one is found."""
    found = (
        (pair, _meeting(left, right))
        for pair, left, right in (((i, j), lanes[i], lanes[j]) for i, j in combinations(range(len(lanes)), 2))
    )
    return tuple(Meeting(lanes=pair, path=path) for pair, path in found if path)


def validator_hashes(
    files: Sequence[NamedFile | None], tree: CommitTree
) -> tuple[list[FileHash], list[tuple[int, str, str]]]:
    """The hashes of the validator's files in a commit's tree, and for each that cannot be: index, why, mend.

    None stands for a file that is refused already.
    """
    hashes, wrong = [], []
    for index, file in enumerate(files):
        if file is None:
            continue
        found = tree.sha256(file.path)
        if found is None:
            wrong.append(
                (index, f"`{file.path}` is no file of the incumbent {tree.commit[:12]}", "name a tracked file")
            )
        elif file.sha256 not in {None, found}:
            why = f"`{file.path}` of the incumbent {tree.commit[:12]} has the SHA-256 {found}, not the one given"
            wrong.append((index, why, "look at what changed in it; leave `sha256:` out to take it as it is"))
        else:
            hashes.append(FileHash(path=file.path, sha256=found))
    return hashes, wrong


def _matched(lane: LaneFacts, closed: pathspec.GitIgnoreSpec, names: Sequence[bytes]) -> LaneFacts:
    bad = tuple(index for index, glob in enumerate(lane.globs) if broken(glob))
    sound = [(index, glob) for index, glob in enumerate(lane.globs) if index not in bad]
    spec = matcher([glob for _, glob in sound])
    own = [name for name in names if matches(spec, name)]
    plain = [(index, matcher([glob])) for index, glob in sound if not glob.startswith("!")]
    return lane.model_copy(
        update={
            "paths": tuple(sorted(map(display, own))),
            "closed": tuple(sorted(display(name) for name in own if matches(closed, name))),
            "idle": tuple(index for index, one in plain if not any(matches(one, name) for name in names)),
            "broken": bad,
        }
    )


def _meeting(left: LaneFacts, right: LaneFacts) -> str | None:
    """A witness, by globs alone, that holds against the whole lists with what they take back."""
    specs = [matcher([glob for i, glob in enumerate(lane.globs) if i not in lane.broken]) for lane in (left, right)]
    for one in _positive(left):
        for other in _positive(right):
            path = common_path(one, other)
            if path and all(matches(spec, path.encode()) for spec in specs):
                return path
    return None


def _positive(lane: LaneFacts) -> list[str]:
    return [glob for i, glob in enumerate(lane.globs) if not glob.startswith(("!", "=")) and i not in lane.broken]
