"""The speed model: how long N lanes take one per round, and all in one round.

With N lanes of A agent seconds and s submissions of M seconds each, N serial rounds take about N(A + sM), one parallel
round about max(A + sM, N·s·M / devices): the agents work at once, the devices are shared. So the speedup tends to N
where agents dominate and to 1 where measuring does. (The seed's section 7; lanes that differ are summed.)
Closing costs both the same: a parallel round of n picks measures n - 1 steps and one rerun, n serial rounds n reruns.
What every round pays, its preparation and its first A/A measurement, N serial rounds pay N times.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..model.round.pilot import LaneLoad, Speed


def serial_s(lanes: Sequence[LaneLoad]) -> float:
    """Seconds of one round per lane: the sum of A + sM."""
    return sum(_alone(lane) for lane in lanes)


def parallel_s(lanes: Sequence[LaneLoad], devices: int = 1) -> float:
    """Seconds of one round with all lanes: the longest lane alone, or all measurements on `devices` device sets.

    Raises:
        ValueError: without a device set.
    """
    if devices < 1:
        raise ValueError(f"{devices} device sets measure nothing: give 1 or more")
    measuring = sum(lane.submissions * lane.measure_s for lane in lanes)
    return max([measuring / devices, *(_alone(lane) for lane in lanes)])


def speed(
    lanes: Sequence[LaneLoad], *, devices: int = 1, picks: int = 0, rerun_s: float = 0.0, fixed_s: float = 0.0
) -> Speed:
    """Both policies with what closes a round and what every round pays.

    Args:
        lanes: what each lane costs.
        devices: how many device sets measure at once.
        picks: how many lanes have a ticket to compose; closing costs so many measurements in either policy.
        rerun_s: seconds of one of these.
        fixed_s: seconds that every round pays besides.
    """
    closing = picks * rerun_s
    serial = serial_s(lanes) + closing + fixed_s * len(lanes)
    parallel = parallel_s(lanes, devices) + closing + (fixed_s if lanes else 0.0)
    return Speed(serial_s=serial, parallel_s=parallel, speedup=serial / parallel if parallel else None)


def _alone(lane: LaneLoad) -> float:
    """A + sM: a lane that has the devices for itself and waits for each result."""
    return lane.agent_s + lane.submissions * lane.measure_s
