"""Whatever an agent does to its files, every provider's workspace gives the tree that plain git gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from orch.activities.workspaces.registry import PROVIDERS

from .edits.rig import Rig
from .edits.scripts import make_script, smaller

CHUNKS, CHUNK = 8, 250


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_edits_give_the_same_tree_by_every_provider_and_by_plain_git(tmp_path: Path, chunk: int) -> None:
    rig = Rig.make(tmp_path)
    scripts = [make_script(chunk * CHUNK + number) for number in range(CHUNK)]
    wanted = rig.by_git(scripts)
    for name, provider in PROVIDERS.items():
        found = rig.by_provider(provider, scripts)
        wrong = [script for script, one, other in zip(scripts, found, wanted, strict=True) if one != other]
        assert not wrong, name
