"""What a lane may write: its globs match no other lane's path and no protected one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from ..model.round.facts import Flaw, LaneFacts, PlanFacts, Where

_OURS = frozenset({".git", ".orch", ".gitmodules", ".gitattributes", ".gitignore"})
"""Names that no lane may write at any depth: git obeys them, or we do."""

MAX_STARS = 16
"""In one glob: more than people write, and few enough for a search by trying."""

_SHOWN = 3


def scope_flaws(facts: PlanFacts) -> tuple[Flaw, ...]:
    """What is wrong with the lanes' globs; of paths that are not there yet it is only warned, as intake checks them."""
    own = (flaw for index, lane in enumerate(facts.lanes) for flaw in _globs(("lanes", index, "globs"), lane))
    return (*own, *_shared_paths(facts))


def _globs(where: Where, lane: LaneFacts) -> Iterator[Flaw]:
    for index, glob in enumerate(lane.globs):
        if crowded(glob):
            message = f"glob `{glob[:60]}` has three stars in a row, or more than {MAX_STARS}"
            yield Flaw(where=(*where, index), message=message, mend="write `*` within a name, `**` for folders")
        elif flaw := _form(glob, idle=index in lane.idle, broken=index in lane.broken):
            yield Flaw(where=(*where, index), message=f"glob `{glob}` {flaw[0]}", mend=flaw[1])
        elif index in lane.idle:
            yield Flaw(
                where=(*where, index),
                message=f"glob `{glob}` matches nothing of the incumbent: it could only create files",
                mend="check its spelling; a name without a slash matches at any depth",
                warning=True,
            )
    if lane.globs and all(glob.startswith("!") for glob in lane.globs):
        yield Flaw(where=where, message="all globs take paths away: none gives any", mend="name what it may write")
    if lane.closed:
        yield Flaw(
            where=where,
            message=f"the globs of lane `{lane.id}` reach {_count(len(lane.closed), 'protected path')}: "
            f"{_some(lane.closed)}",
            mend="narrow them, or take files away with `!FILE` or `!FOLDER/**`; the same in `protected:` opens them",
        )


def crowded(glob: str) -> bool:
    """Whether a glob has more stars than matching bears: each may multiply the time that a path takes."""
    return "***" in glob or glob.count("*") > MAX_STARS


def _form(glob: str, *, idle: bool, broken: bool) -> tuple[str, str] | None:
    """What is wrong with a glob by itself, and the mend."""
    body = glob.removeprefix("!")
    parts = {part.casefold() for part in body.split("/")}
    if glob.startswith("="):
        return "begins with `=`, which only protected globs do", f"write `{glob[1:]}`"
    if ".." in parts:
        return "leaves the tree", "write paths below the top of the repository, without `..`"
    if parts & _OURS:
        return f"names {', '.join(sorted(parts & _OURS))}, which no lane may write", "leave it out"
    if body.startswith("~") or (body.startswith("/") and idle):
        return "is an absolute path", "write it from the top of the repository: `src/…`"
    if broken or "\n" in body or "\0" in body or body.startswith("#") or not body.strip(" /"):
        return "is no glob", "write one glob per item, as in a .gitignore; `\\#` is a name's first #"
    return None


def _shared_paths(facts: PlanFacts) -> Iterator[Flaw]:
    for (one, left), (other, right) in combinations(enumerate(facts.lanes), 2):
        common = sorted(set(left.paths) & set(right.paths))
        names = f"lanes `{left.id}` and `{right.id}`"
        if common:
            yield Flaw(
                where=("lanes", other, "globs"),
                message=f"{names} both match {_count(len(common), 'path')}: {_some(common)}",
                mend="narrow one of them (`!FILE` or `!FOLDER/**` takes files away), or run fewer lanes",
            )
            continue
        new = next((meeting.path for meeting in facts.meetings if meeting.lanes == (one, other)), None)
        if new is not None:
            yield Flaw(
                where=("lanes", other, "globs"),
                message=f"no clean split: {names} would both match a new file such as {new}, "
                "and a ticket that brings one is rejected",
                mend="narrow one of them, or run fewer lanes",
                warning=True,
            )


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more


def _count(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"
