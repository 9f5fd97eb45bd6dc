"""The activity that opens a lane: workspace, desk and wrapper, and the probe that the target resolves inside."""

from __future__ import annotations

from ...workflows.model.attempt import OpenWorkspace
from ...workflows.model.round.lane import LaneOpened, OpenLane
from ...workflows.model.round.ticket import Cause
from .. import clock
from ..admission import Admission
from ..effect import effect, in_thread
from ..home import Home
from ..openings import opened
from ..places import Place
from ..store import Store
from .opening import lay_out
from .probe import probe
from .prompt import lane_prompt


class Lanes:
    """Opens lanes; everything is found again that an earlier worker began."""

    def __init__(self, home: Home, admission: Admission) -> None:
        self._home = home
        self._admission = admission

    @effect
    async def open_lane(self, request: OpenLane) -> LaneOpened:
        """Make a lane's workspace with its wrapper; no room, a failing set-up or probe are values."""
        place, store = _place(self._home, request), Store(self._home, request.store)
        if not await self._admission.enter(place.owner, request.deadline + clock.offset()):
            return LaneOpened(path=None)
        place.folder.mkdir(parents=True, exist_ok=True)
        workspace = await opened(store, place, _workspace(request), own_refs=True)
        if workspace.setup is not None and not workspace.setup.ok:
            return LaneOpened(
                path=workspace.path,
                failed=Cause.SETUP_FAILED,
                exit=workspace.setup,
                detail=f"set-up: {workspace.setup}",
                output=workspace.setup_output,
            )
        await in_thread(lay_out, place, request)
        lane = LaneOpened(path=workspace.path, prompt=lane_prompt(request.plan, request.lane, request.deadline))
        if request.plan.commands.probe is None:
            return lane
        probed = await probe(place, request.plan.commands.probe, sandbox=request.sandbox)
        if not probed.flaw:
            return lane
        failed = {"failed": Cause.PROBE_FAILED, "exit": probed.exit, "detail": probed.flaw, "output": probed.output}
        return lane.model_copy(update=failed)


def _workspace(request: OpenLane) -> OpenWorkspace:
    """The lane's workspace as an attempt's."""
    return OpenWorkspace(
        attempt=request.attempt,
        store=request.store,
        commit=request.plan.incumbent,
        contract=request.contract,
        sandbox=request.sandbox,
        deadline=request.deadline,
    )


def _place(home: Home, request: OpenLane) -> Place:
    return Place(home, request.attempt, home.attempt(request.attempt))
