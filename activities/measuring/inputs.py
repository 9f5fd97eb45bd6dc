"""Grading inputs: the protected files of a measuring copy, which no rung may write while a candidate is measured."""

from __future__ import annotations

import os

from ...workflows.model.attempt import Measure
from ..places import Place
from ..protection import matcher, matches
from .tampering import habits

MOST = 50
"""Each is a mount or two, and mounts cost a rung 0.2 ms each, many of them more: 400 took 0.4 s. Of more files than
this, the comparison after the ladder is the only defence."""


FILES = (b"100644", b"100755")
"""Modes of what can be mounted: links cannot."""


def read_only_inputs(place: Place, request: Measure) -> tuple[str, ...]:
    """The protected files that the ladder did not rewrite on the baseline; none for the baseline, or when too many."""
    known, globs = habits(place), request.contract.protected
    if known is None or place.key.iteration == 0 or not globs:
        return ()
    spec = matcher(globs)
    entries = place.store.git.lines("ls-tree", "-r", "-z", request.commit)
    names = [entry.partition(b"\t")[2] for entry in entries if entry.startswith(FILES)]
    found = [os.fsdecode(name) for name in names if matches(spec, name) and name not in known]
    return tuple(found) if len(found) <= MOST else ()
