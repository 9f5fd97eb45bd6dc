"""Grading inputs: the protected files of a measuring copy, which no rung may write while a candidate is measured."""

from __future__ import annotations

import os

from ...workflows.model.contract import Contract
from ..places import Place
from ..protection import matcher, matches
from .tampering import habits

MOST = 200
"""Each is a mount of its own and costs 0.2 ms a rung; of more, the comparison after the ladder is the only defence."""


def read_only_inputs(place: Place, contract: Contract) -> tuple[str, ...]:
    """The protected files that the ladder did not rewrite on the baseline; none for the baseline, or when too many."""
    known, index = habits(place), place.folder / "index"
    if known is None or place.key.iteration == 0 or not contract.protected or not index.exists():
        return ()
    spec = matcher(contract.protected)
    names = place.store.git.with_env(GIT_INDEX_FILE=index).lines("ls-files", "-z")
    found = [name for name in names if matches(spec, name) and name not in known]
    files = [name for name in map(os.fsdecode, found) if _is_file(place, name)]
    return tuple(files) if len(files) <= MOST else ()


def _is_file(place: Place, name: str) -> bool:
    """Whether it can be mounted: a file that no link leads to."""
    path = place.tree / name
    return (
        path.is_file()
        and not path.is_symlink()
        and path.parent.resolve() == place.tree.resolve() / name.rpartition("/")[0]
    )
