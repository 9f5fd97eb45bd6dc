"""What is recorded of an overlay is what `git add -A` finds in a full copy after the same edits, bit for bit."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orch.activities.home import Home
from orch.activities.repository import inspect
from orch.activities.snapshots import take_baseline, take_candidate
from orch.activities.store import Store
from orch.activities.trees import Trees
from orch.activities.upper_changes import upper_changes
from orch.activities.workspaces.registry import PROVIDERS
from orch.activities.workspaces.upper import redirected
from orch.workflows.model.attempt import AttemptKey, Snapshot
from orch.workflows.model.contract import Contract, Rung

FILES: dict[str, str | bytes] = {
    "a.txt": "one\n",
    "b.txt": "two\n",
    "run.sh": "#!/bin/sh\n",
    "dir/c.txt": "three\n",
    "dir/deep/d.txt": "four\n",
    "dir/deep/e.txt": "five\n",
    "lib/x.py": "x\n",
    "lib/.gitignore": "*.tmp\n",
    "crlf/.gitattributes": "*.txt text eol=crlf\n",
    "crlf/w.txt": "w\nw\n",
    "built/kept.o": "tracked, though ignored\n",
    "tests/test_a.py": "assert 1\n",
    "tests/deep/test_b.py": "assert 2\n",
    ".gitignore": "*.log\nbuilt/\n",
    ".gitattributes": "*.up filter=upper\n*.id ident\n",
    "name.up": "LOWER\n",
    "file.id": "$Id$\n",
    b"odd \xff\n\t\"name'\\".decode("utf-8", "surrogateescape"): "odd\n",
}

EDITS = dict(
    part.split("\n", 1) for part in Path(__file__).with_name("edits.txt").read_text().removeprefix("# ").split("\n\n# ")
)
"""Shell scripts by what they do."""


class Pair:
    """One commit, and two workspaces of it after the same edits."""

    def __init__(self, root: Path, kit: Any) -> None:
        self.repo = kit.make_repo(root / "repo", FILES)
        kit.git(self.repo, "config", "filter.upper.clean", "tr a-z A-Z")
        kit.git(self.repo, "config", "filter.upper.smudge", "tr A-Z a-z")
        repository = inspect(self.repo)
        self.store = Store.of(Home(root / "state"), repository)
        self.commit = take_baseline(self.store, repository, "run").commit
        self.numbers = itertools.count(1)

    def recorded(self, provider: str, edit: str) -> Snapshot:
        number = next(self.numbers)
        key = AttemptKey(run="run", iteration=1, candidate=number, binding=number)
        folder = self.store.home.attempt(key)
        tree = PROVIDERS[provider].open(self.store, folder, self.commit)
        argv = PROVIDERS[provider].entering(folder, ("sh", "-ec", edit))
        done = subprocess.run(argv, cwd=tree, capture_output=True, check=False, text=True)
        assert not done.stderr.strip() or "warning" in done.stderr or "hint" in done.stderr, done.stderr
        contract = Contract(goal="g", rungs=(Rung(name="a", run="true"),), protected=("tests/**",))
        snapshot = take_candidate(
            self.store, tree, attempt=key, commit=self.commit, index=folder / "index", contract=contract, carried=()
        )
        PROVIDERS[provider].close(self.store, folder)
        return snapshot


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, kit: Any) -> Pair:
    return Pair(tmp_path_factory.mktemp("pair"), kit)


@pytest.mark.parametrize("name", EDITS)
def test_the_same_edits_give_the_same_tree(pair: Pair, name: str) -> None:
    full, overlay = pair.recorded("clone", EDITS[name]), pair.recorded("overlay", EDITS[name])

    assert (overlay.tree, overlay.paths, overlay.changed) == (full.tree, full.paths, full.changed)
    assert (overlay.restored, overlay.warnings) == (full.restored, full.warnings)


KILLED = {
    "before the first copy": "mkdir moved.orch-new; touch moved.orch-new/half",
    "while it copies": "mv moved moved.orch-moved; mkdir moved.orch-new; touch moved.orch-new/half",
    "when it has copied": "mv moved moved.orch-moved; cp -a moved.orch-moved moved",
    "while it removes": "mv moved moved.orch-moved; cp -a moved.orch-moved moved; rm -r moved.orch-moved/deep",
}


@pytest.mark.parametrize("when", KILLED)
def test_who_is_killed_while_a_renamed_folder_is_copied_loses_nothing(pair: Pair, when: str) -> None:
    """Only who may mount can rename a folder of the commit; for all others it is a copy from the start."""
    whole = pair.recorded("overlay", "mv dir moved; echo 1 > moved/new")
    folder = pair.store.home.attempt(AttemptKey(run="run", iteration=2, candidate=1, binding=1))
    tree = PROVIDERS["overlay"].open(pair.store, folder, pair.commit)

    def inside(script: str) -> None:
        subprocess.run(PROVIDERS["overlay"].entering(folder, ("sh", "-ec", script)), cwd=tree, check=True)

    inside("mv dir moved; echo 1 > moved/new")
    if redirected(folder / "upper"):
        inside(KILLED[when])
    with Trees(pair.store.git) as trees:
        found = upper_changes(pair.store, folder, pair.commit, trees)
        assert trees.spliced(found.tree, found.changes) == whole.tree
    PROVIDERS["overlay"].close(pair.store, folder)
