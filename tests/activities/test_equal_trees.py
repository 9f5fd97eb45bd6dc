"""Whatever an agent does to its files, every provider's workspace gives the tree that plain git gives."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from orch.activities.home import Home
from orch.activities.store import Store
from orch.activities.workspaces import BARE, Layers
from orch.activities.workspaces.clone import CloneProvider
from orch.activities.workspaces.probing import overlay_flaw
from orch.activities.workspaces.registry import PROVIDERS

from .edits.editor import Script
from .edits.rig import Rig
from .edits.scripts import make_git_script, make_script

CHUNKS, BUNDLES, PARTS = 8, 25, 10
"""2,000 scripts that only edit, each on a part of a tree of its own, ten parts to a workspace."""

GIT_CHUNKS, GIT_SCRIPTS = 2, 25
"""50 scripts that also use git, which works on a whole tree."""

OTHERS_TAKE = 4
"""Every fourth bundle goes through the providers that check everything out, too: they all record in one way."""

KNOWN: dict[str, Script] = {
    "an edit of another file in the second of the checkout converts nothing": (("write", b"README.md", b"new\n"),),
    "a mark of overlays set by an agent hides nothing": (("mark", b"src", "opaque", b"y"),),
    "a mark of overlays set by an agent shows nothing else": (("mark", b"src/pkg1", "redirect", b"/docs"),),
    "a FIFO over a tracked file converts nothing": (("special", b"run.sh", "fifo"),),
    "a FIFO where git reads what to ignore": (("special", b".gitignore", "fifo"), ("write", b"x.log", b"new\n")),
    "a FIFO where git reads attributes": (
        ("special", b"src/pkg1/.gitattributes", "fifo"),
        ("touch", b"src/pkg1/mod3.py"),
    ),
    "a FIFO of rules in a new folder": (("write", b"new/file", b"\n"), ("special", b"new/.gitignore", "fifo")),
    "a FIFO where git reads of submodules": (("special", b".gitmodules", "fifo"), ("touch", b"run.sh")),
    "attributes that are removed hold for what git came to before": (
        ("delete", b".gitattributes"),
        ("write", b"docs/win.crlf", b"a\r\nb\r\n"),
        ("chmod", b"-dash", 0o444),
    ),
    "a folder renamed to and fro": (
        ("move", b"src", b"new"),
        ("move", b"new", b"src"),
        ("write", b"src/added.py", b""),
    ),
    "files that come back with their folder are untouched": (("move", b"docs", b"new"), ("move", b"new", b"docs")),
    "a rename that fails touches nothing": (("write", b"new/file", b"\n"), ("move", b"docs", b"new")),
    "a folder renamed over another one's place": (("delete", b"docs"), ("move", b"src/pkg0", b"docs")),
    "new attributes touch nothing": (("write", b".gitattributes", b"* text=auto\n"),),
    "new attributes and a touched file": (("write", b".gitattributes", b"* text eol=lf\n"), ("touch", b"win.txt")),
    "a repository in a tracked folder": (("nested", b"src", True), ("write", b"src/added.py", b"new\n")),
    "a file below a link": (("symlink", b"docs", b"src/pkg0"), ("write", b"docs/mod0.py", b"new\n")),
}
"""What went wrong once, or could; applied together, each to its part."""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where overlays work there: most of the time goes into making files."""
    memory = Path("/dev/shm")
    if not (memory.is_dir() and os.access(memory, os.W_OK)):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield tmp_path if overlay_flaw(Home(Path(name))) else Path(name)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_edits_give_the_tree_of_plain_git_by_every_provider(folder: Path, chunk: int) -> None:
    rig = Rig.make(folder, [f"part{n}" for n in range(PARTS)])
    first = chunk * BUNDLES * PARTS
    bundles = [[make_script(first + n * PARTS + part) for part in range(PARTS)] for n in range(BUNDLES)]
    wanted = rig.by_git(bundles)
    for provider in PROVIDERS.values():
        step = 1 if provider.name == "overlay" else OTHERS_TAKE
        wrong = rig.differing(provider, bundles[::step], wanted[::step])
        assert not wrong, rig.least(provider, wrong[0])
    assert len(set(wanted)) == BUNDLES


@pytest.mark.parametrize("chunk", range(GIT_CHUNKS))
def test_what_an_agents_git_did_to_files_counts_and_nothing_else(tmp_path: Path, chunk: int) -> None:
    rig = Rig.make(tmp_path, [""], normalized=True)
    bundles = [[make_git_script(chunk * GIT_SCRIPTS + n)] for n in range(GIT_SCRIPTS)]
    wanted = rig.by_git(bundles)
    for name in ("overlay", "clone"):  # worktrees share stash and branches: what git does there depends on the others
        wrong = rig.differing(PROVIDERS[name], bundles, wanted)
        assert not wrong, rig.least(PROVIDERS[name], wrong[0])


@pytest.mark.parametrize("name", PROVIDERS)
def test_known_edits_give_the_tree_of_plain_git(tmp_path: Path, name: str) -> None:
    rig = Rig.make(tmp_path, [f"part{n}" for n in range(len(KNOWN))])
    bundle = list(KNOWN.values())
    wrong = rig.differing(PROVIDERS[name], [bundle], rig.by_git([bundle]))
    assert not wrong, rig.least(PROVIDERS[name], bundle)


def test_a_difference_is_noticed_and_reduced_to_the_edit_that_makes_it(tmp_path: Path) -> None:
    class Forgetful(CloneProvider):
        """One whose workspaces are not what was committed."""

        def open(self, store: Store, folder: Path, commit: str, layers: Layers = BARE) -> Path:
            tree = super().open(store, folder, commit, layers)
            (tree / "docs" / "index.md").chmod(0o755)
            return tree

    rig = Rig.make(tmp_path, [""])
    edits: Script = (("write", b"README.md", b"new\n"), ("delete", b"docs"), ("touch", b"run.sh"))
    bundles = [[edits], [edits[:1]]]
    wrong = rig.differing(Forgetful(), bundles, rig.by_git(bundles))
    assert wrong == [[edits[:1]]]
    assert "docs/index.md" in rig.least(Forgetful(), wrong[0])
