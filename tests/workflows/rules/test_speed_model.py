"""The speed model, by literals worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.workflows.model.round.pilot import LaneLoad, Speed
from orch.workflows.rules.speed_model import parallel_s, serial_s, speed


def load(agent_s: float, submissions: int, measure_s: float) -> LaneLoad:
    return LaneLoad(agent_s=agent_s, submissions=submissions, measure_s=measure_s)


@pytest.mark.parametrize(
    ("lanes", "devices", "serial", "parallel"),
    [
        ((), 1, 0, 0),
        ([load(60, 2, 10)], 1, 80, 80),
        ([load(60, 2, 10)] * 4, 1, 320, 80),  # agents dominate: 4(60 + 20) against 60 + 20
        ([load(10, 6, 30)] * 4, 1, 760, 720),  # measuring dominates: 4(10 + 180) against 4·6·30
        ([load(10, 6, 30)] * 4, 2, 760, 360),  # each further device set divides the measuring
        ([load(10, 6, 30)] * 4, 4, 760, 190),  # until one lane alone is the longest
        ([load(100, 1, 5), load(20, 3, 10)], 1, 155, 105),  # lanes that differ are summed
        ([load(100, 0, 5)] * 3, 1, 300, 100),
    ],
)
def test_serial_and_parallel_take(lanes: list[LaneLoad], devices: int, serial: float, parallel: float) -> None:
    assert serial_s(lanes) == serial
    assert parallel_s(lanes, devices) == parallel


def test_closing_costs_both_the_same_and_what_a_round_pays_is_paid_by_each() -> None:
    found = speed([load(60, 2, 10)] * 3, picks=2, rerun_s=10, fixed_s=7)

    assert found == Speed(serial_s=3 * 80 + 20 + 21, parallel_s=80 + 20 + 7, speedup=281 / 107)


def test_no_lanes_have_no_speedup() -> None:
    assert speed([], fixed_s=5) == Speed(serial_s=0, parallel_s=0, speedup=None)


@pytest.mark.parametrize("devices", [0, -1])
def test_without_a_device_set_there_is_no_answer(devices: int) -> None:
    with pytest.raises(ValueError, match="device"):
        parallel_s([load(1, 1, 1)], devices)


@given(
    lanes=st.lists(st.builds(load, st.floats(0, 1e5), st.integers(0, 50), st.floats(0, 1e4)), min_size=1, max_size=16),
    devices=st.integers(1, 8),
)
def test_parallel_is_never_slower_and_never_more_than_n_times_faster(lanes: list[LaneLoad], devices: int) -> None:
    serial, parallel = serial_s(lanes), parallel_s(lanes, devices)

    assert parallel <= serial * (1 + 1e-9)
    assert serial <= len(lanes) * parallel * (1 + 1e-9)
