"""A host takes an attempt when it has room and is fit for it; a slot that was claimed in vain comes free again."""

from __future__ import annotations

import os
from typing import Any

import pytest

from orch.activities import slots
from orch.activities.exchange.claiming import UNUSED_S, Claims, has_room
from orch.workflows.errors import HostFaultError
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.claim import Claimed, ClaimHost


def _ask(scene: Any, candidate: int, **more: Any) -> ClaimHost:
    key = AttemptKey(run="r1", iteration=1, candidate=candidate, binding=candidate)
    given = {"agent": "cmd:true", "exchange": scene.exchange, "sandbox": False, **more}
    return ClaimHost(attempt=key, **given)


@pytest.fixture
def claims(scene: Any) -> Claims:
    home = scene.there.home
    home.root.mkdir()
    home.host_id.write_text("there\n")
    return Claims(home, 2)


def test_host_takes_as_many_as_it_has_slots(scene: Any, claims: Claims) -> None:
    home = scene.there.home
    assert has_room(home, 2)

    assert [claims._claim(_ask(scene, n)) for n in (1, 2)] == [Claimed(host="there")] * 2

    assert not has_room(home, 2)
    with pytest.raises(HostFaultError, match="there: no room"):
        claims._claim(_ask(scene, 3))
    assert claims._claim(_ask(scene, 2)) == Claimed(host="there")  # asked again, it holds the slot it has
    assert sorted(slots.held(home.slots).values()) == ["r1/i1-c1-b1", "r1/i1-c2-b2"]


def test_slot_that_was_claimed_in_vain_comes_free(scene: Any, claims: Claims) -> None:
    home = scene.there.home
    for n in (1, 2):
        ask = _ask(scene, n)
        claims._claim(ask)
    home.attempt(ask.attempt).mkdir(parents=True)  # only the second one has begun
    for path in home.slots.glob("[0-9]"):
        old = path.stat().st_mtime - UNUSED_S - 1
        os.utime(path, (old, old))

    assert has_room(home, 2)
    assert list(slots.held(home.slots).values()) == ["r1/i1-c2-b2"]


def test_host_without_the_agents_program_gives_the_attempt_back(scene: Any, claims: Claims) -> None:
    with pytest.raises(HostFaultError, match="program 'no-such-agent' is not there"):
        claims._claim(_ask(scene, 1, agent="pi:m,bin=no-such-agent"))

    assert slots.held(scene.there.home.slots) == {}


def test_host_that_cannot_reach_the_artifact_store_gives_the_attempt_back(scene: Any, claims: Claims) -> None:
    scene.shared.rename(scene.shared.with_name("elsewhere"))

    with pytest.raises(HostFaultError, match="cannot be read"):
        claims._claim(_ask(scene, 1))
