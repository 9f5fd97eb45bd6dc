"""Whatever an agent does to its files, every provider's workspace gives the tree that plain git gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from orch.activities.workspaces.registry import PROVIDERS

from .edits.rig import Rig
from .edits.scripts import make_git_script, make_script

CHUNKS, BUNDLES, PARTS = 8, 24, 10
"""1,920 scripts that only edit, each on a part of a tree of its own, ten parts to a workspace."""

GIT_CHUNKS, GIT_SCRIPTS = 2, 40
"""80 scripts that also use git, which works on a whole tree."""

SHARED = {"worktree"}
"""Providers whose workspaces share stash and branches: what an agent's git does there depends on the other agents."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_edits_give_the_tree_of_plain_git_by_every_provider(tmp_path: Path, chunk: int) -> None:
    rig = Rig.make(tmp_path, [f"part{n}" for n in range(PARTS)])
    first = chunk * BUNDLES * PARTS
    bundles = [[make_script(first + n * PARTS + part) for part in range(PARTS)] for n in range(BUNDLES)]
    wanted = rig.by_git(bundles)
    for provider in PROVIDERS.values():
        wrong = rig.differing(provider, bundles, wanted)
        assert not wrong, rig.least(provider, wrong[0])
    assert len(set(wanted)) == BUNDLES


@pytest.mark.parametrize("chunk", range(GIT_CHUNKS))
def test_git_used_by_the_agent_changes_nothing_but_files(tmp_path: Path, chunk: int) -> None:
    rig = Rig.make(tmp_path, [""], normalized=True)
    bundles = [[make_git_script(chunk * GIT_SCRIPTS + n)] for n in range(GIT_SCRIPTS)]
    wanted = rig.by_git(bundles)
    for provider in [provider for provider in PROVIDERS.values() if provider.name not in SHARED]:
        wrong = rig.differing(provider, bundles, wanted)
        assert not wrong, rig.least(provider, wrong[0])
