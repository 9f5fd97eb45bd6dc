"""What is recorded of an overlay is what `git add -A` finds in a full copy after the same edits, bit for bit."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities.home import Home
from orch.activities.repository import inspect
from orch.activities.snapshots import take_baseline, take_candidate
from orch.activities.store import Store
from orch.activities.workspaces.registry import PROVIDERS
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

EDITS = {
    "nothing": "true",
    "touched": "touch a.txt dir/c.txt; cp a.txt z && cat z > a.txt; rm z",
    "contents": "echo 1 >> a.txt; echo > b.txt; echo new > new.txt; echo x > dir/deep/n",
    "deletions": "rm a.txt dir/deep/d.txt; rm -r lib",
    "everything": "rm -r * .gitignore .gitattributes",
    "modes": "chmod +x a.txt; chmod -x run.sh; chmod 600 b.txt; printf '' > e; chmod +x e",
    "links": "ln -s a.txt l; rm b.txt; ln -s /nowhere b.txt; ln a.txt hard; rm -r lib; ln -s dir lib; ln -sf x crlf/w.txt",
    "folder for file": "rm a.txt; mkdir a.txt; echo 1 > a.txt/in; echo 2 > a.txt/.gitignore",
    "file for folder": "rm -r dir; echo 1 > dir",
    "folder anew": "rm -r dir; mkdir -p dir/deep; echo five > dir/deep/e.txt; echo y > dir/y",
    "folder anew, empty": "rm -r dir; mkdir dir; rm -r lib/*; rm -r tests/deep; mkdir tests/deep",
    "swap": "mv dir t; mv lib dir; mv t lib; mv a.txt t; mv b.txt a.txt; mv t b.txt",
    "renamed folders": "mv dir moved; mv moved/deep lib/deep; echo 1 >> lib/deep/d.txt; mv crlf built/crlf",
    "git mv": "git mv dir moved; git mv a.txt moved/c2.txt; git commit -qm moved",
    "renamed twice": "git mv dir one && git mv one two && mkdir dir && echo 1 > dir/x && git mv lib two/lib && rm two/deep/d.txt",
    "renamed where it is ignored": "git mv lib built/lib; git mv dir/deep x.log",
    "renamed into other rules": "git mv dir/c.txt crlf/c.txt; printf 'a\\r\\nb\\r\\n' > crlf/d.txt; git mv dir crlf/dir",
    "ignored": "echo > x.log; mkdir d.log; echo > d.log/in; echo > lib/y.tmp; echo > built/new.o; echo 2 >> built/kept.o",
    "ignored no more": "echo > x.log; echo > built/new.o; echo > .gitignore; echo > lib/y.tmp; echo '!y.tmp' >> lib/.gitignore",
    "rules removed": "rm .gitignore lib/.gitignore; echo > lib/y.tmp; echo > x.log; echo > dir/z.log",
    "rules added": "echo '*.txt' > dir/.gitignore; echo 1 > dir/n.txt; echo 2 >> dir/c.txt; echo '/new' > .gitignore; mkdir -p sub/new; echo > sub/new/a; echo > new",
    "attributes": "echo '*.txt -text' > crlf/.gitattributes; printf 'w\\r\\nw\\r\\nx\\r\\n' > crlf/w.txt; echo n >> crlf/n.txt",
    "attributes removed": "rm crlf/.gitattributes .gitattributes; printf 'q\\r\\n' > crlf/w.txt; echo abc > name.up",
    "crlf": "printf 'q\\r\\nr\\r\\n' > crlf/w.txt; printf 'q\\nr\\r\\n' > crlf/new.txt; printf 'q\\r\\n' > crlf/other.md",
    "filters": "echo changed >> name.up; echo more > dir/other.up; echo '$Id: 12 $' >> file.id",
    "odd names": "echo 1 > ':(top)x'; echo 2 > '*'; echo 3 > ' '; echo 4 > '\\'; echo 5 > -- -n; echo >> odd*; mkdir 'a\nb'; echo > 'a\nb/c\td'",
    "wide": "for i in $(seq 60); do mkdir -p w/$i; echo $i > w/$i/f; done; rm -r w/7; mv w/8 w/7",
    "repository inside": "git init -q n && echo > n/a && git -C n add . && git -C n -c user.name=a -c user.email=a commit -qm 1; mkdir -p n/b && git init -q n/b && echo > n/b/c",
    "repository over files": "git init -q dir && echo > dir/new; git init -q lib/in.tmp; git init -q tests/deep && echo > tests/deep/u",
    "ignored repository": "git init -q r.log && echo > r.log/x; mkdir -p dir/q; git init -q dir/q/r; echo > dir/q/r/z.log; echo > dir/q/r/z",
    "pipes": "mkfifo p; rm a.txt; mkfifo a.txt; rm -r dir; mkfifo dir",
    "own commits": "echo 1 > a.txt; git add -A; git -c user.name=a -c user.email=a commit -qm 1; git checkout -q -b x HEAD~; echo 3 > b.txt; git stash -q; echo 4 > dir/c.txt; git update-index --assume-unchanged dir/c.txt",
    "branches": "git rm -qr dir; git commit -qm gone; git checkout -q -b y HEAD~; echo 1 > dir/c.txt; git gc -q --prune=now",
    "no git": "rm -r .git; echo 1 > a.txt; git init -q .; echo > b.txt",
    "protected": "echo weak > tests/test_a.py; rm tests/deep/test_b.py; echo n > tests/new.py; echo fix > a.txt",
    "protected replaced": "rm -r tests; echo > tests; echo fix > a.txt",
    "protected by a folder": "rm tests/test_a.py; mkdir tests/test_a.py; echo > tests/test_a.py/x; rm b.txt",
}


class Pair:
    """One commit, and two workspaces of it after the same edits."""

    def __init__(self, root: Path, make: Callable[..., Path], kit: Any, *options: str) -> None:
        self.repo = make(root / "repo", FILES, *options)
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
        argv = PROVIDERS[provider].entering(folder, ("sh", "-c", edit))
        done = subprocess.run(argv, cwd=tree, capture_output=True, check=False, text=True)
        assert not done.stderr.strip() or "warning" in done.stderr or "hint" in done.stderr, done.stderr
        contract = Contract(goal="g", rungs=(Rung(name="a", run="true"),), protected=("tests/**",))
        snapshot = take_candidate(
            self.store, tree, attempt=key, commit=self.commit, index=folder / "index", contract=contract, carried=()
        )
        PROVIDERS[provider].close(self.store, folder)
        return snapshot


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    kit = _kit()
    return Pair(tmp_path_factory.mktemp("pair"), kit.make_repo, kit)


def _kit() -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location("kit", Path(__file__).parents[1] / "kit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", EDITS)
def test_the_same_edits_give_the_same_tree(pair: Pair, name: str) -> None:
    full, overlay = pair.recorded("clone", EDITS[name]), pair.recorded("overlay", EDITS[name])

    assert (overlay.tree, overlay.paths, overlay.changed) == (full.tree, full.paths, full.changed)
    assert (overlay.restored, overlay.warnings) == (full.restored, full.warnings)
