"""What goes: the useless always, the spare by age, and the oldest first for want of room."""

from __future__ import annotations

from pathlib import Path

import pytest

from orch.activities.collecting.found import Found, choose


def found(name: str, size: int, used: float, *, spare: bool = True) -> Found:
    return Found("result", Path(name), size, used, tuple, spare=spare)


THINGS = (
    found("rubbish", 5, 100, spare=False),
    found("young", 10, 90),
    found("old", 10, 10),
    found("middle", 10, 50),
    found("empty", 0, 5),
)


@pytest.mark.parametrize(
    ("older_s", "want", "names"),
    [
        (None, 0, "rubbish"),
        (None, -50, "rubbish"),
        (50, 0, "rubbish old middle empty"),
        (51, 0, "rubbish old empty"),
        (0, 0, "rubbish young old middle empty"),
        (None, 5, "rubbish"),
        (None, 6, "rubbish old"),
        (None, 15, "rubbish old"),
        (None, 16, "rubbish old middle"),
        (None, 1000, "rubbish old middle young"),
        (90, 16, "rubbish old empty middle"),
    ],
)
def test_choice(older_s: float | None, want: float, names: str) -> None:
    chosen = choose(THINGS, older_s=older_s, want=want, now=100)

    assert sorted(one.path.name for one in chosen) == sorted(names.split())
