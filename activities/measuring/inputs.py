"""Grading inputs: the protected files of a measuring copy, which no rung may write while a candidate is measured."""

from __future__ import annotations

import os

from ...workflows.model.contract import Contract
from ..places import Place
from ..protection import matcher, matches
from .tampering import habits

MOST = 50
"""Each is a mount or two, and mounts cost a rung 0.2 ms each, many of them more: 400 took 0.4 s. Of more files than
this, the comparison after the ladder is the only defence."""


FILES = (b"100644", b"100755")
"""Modes of what can be mounted: links cannot."""


def read_only_inputs(place: Place, contract: Contract) -> tuple[str, ...]:
    """The protected files that the ladder did not rewrite on the baseline; none for the baseline, or when too many."""
    known, index = habits(place), place.folder / "index"
    if known is None or place.key.iteration == 0 or not contract.protected or not index.exists():
        return ()
    spec = matcher(contract.protected)
    entries = place.store.git.with_env(GIT_INDEX_FILE=index).lines("ls-files", "-z", "--stage")
    names = [entry.partition(b"\t")[2] for entry in entries if entry.startswith(FILES)]
    found = [os.fsdecode(name) for name in names if matches(spec, name) and name not in known]
    return tuple(found) if len(found) <= MOST else ()
