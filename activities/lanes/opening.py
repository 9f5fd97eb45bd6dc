"""What a lane finds beside the files of the incumbent: its desk, its wrapper, and what it may do, for fast feedback."""

from __future__ import annotations

import os

from ...workflows.model.round.lane import OpenLane
from ..artifacts import write_whole
from ..places import Place
from ..workspaces.excluding import exclude
from ..workspaces.registry import provider_of
from .desk import FACTS, PROGRAM, facts, make_desk, program

LAID = "laid"
"""In the lane's folder, once all of that is there: what an agent makes of it later is its own affair."""


def lay_out(place: Place, request: OpenLane) -> None:
    """Put desk, wrapper and facts into a lane, once; git does not see them there. Nobody may be at work in it."""
    desk = make_desk(place.folder)
    if (place.folder / LAID).exists():
        return
    written = provider_of(place.folder).written(place.folder)
    folder = (written / PROGRAM).parent
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
        folder.unlink()
    write_whole(written / FACTS, facts(request.plan, request.lane, desk.resolve(), request.deadline))
    aside = folder / ".round"
    aside.unlink(missing_ok=True)
    aside.write_bytes(program())
    aside.chmod(0o755)
    aside.replace(written / PROGRAM)
    exclude(place.folder, f"/{folder.name}/")
    (place.folder / LAID).touch()
