"""Run by a test as an ordinary user: work in an overlay workspace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from orch.activities.home import Home
from orch.activities.repository import inspect
from orch.activities.sandbox.registry import wrap
from orch.activities.sandbox.view import Needs, box
from orch.activities.snapshots import take_baseline, take_candidate
from orch.activities.store import Store
from orch.activities.workspaces import enter
from orch.activities.workspaces.registry import choose, flaws
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.contract import Contract, Rung

SCRIPT = """
test -z "$(git status --porcelain)" && grep -q 'CapEff:.0*$' /proc/self/status && test "$(id -u)" = USER
rm a.txt && echo new > new && mv sub sub2 && git add -A && git commit -qm mine && ! touch ../out 2>/dev/null
"""


def main(root: Path) -> None:
    """Open, enter behind the sandbox, record and close; print the paths that changed."""
    assert os.geteuid()
    os.environ.update(HOME=str(root), XDG_CONFIG_HOME=str(root), GIT_CONFIG_GLOBAL=os.devnull)
    home, repository = Home(root / "state"), inspect(root / "repo")
    store = Store.of(home, repository)
    provider, commit = choose(home), take_baseline(store, repository, "run").commit
    assert (provider.name, flaws(home)) == ("overlay", {})
    key = AttemptKey(run="run", iteration=1, candidate=1, binding=1)
    folder = home.attempt(key)
    tree = provider.open(store, folder, commit)
    needs = Needs(
        (),
        os.defpath,
        home.root,
        tmp=root / "tmp",
        tree=tree,
        readable=(store.git_dir / "objects", store.path / "linked"),
    )
    argv = wrap(("sh", "-ec", SCRIPT.replace("USER", str(os.geteuid()))), box(needs, network=False))
    subprocess.run(provider.entering(folder, argv), cwd=tree, check=True)
    _not_twice(folder, tree)
    contract = Contract(goal="g", rungs=(Rung(name="a", run="true"),))
    snapshot = take_candidate(
        store, tree, attempt=key, commit=commit, index=folder / "index", contract=contract, carried=()
    )
    provider.close(store, folder)
    assert not list(folder.iterdir())
    print(*snapshot.paths)


def _not_twice(folder: Path, tree: Path) -> None:
    program = folder / "enter.py"
    program.write_text(Path(enter.__file__).read_text().replace("PATIENCE_S = 5.0", "PATIENCE_S = 0.1"))
    argv = [sys.executable, "-I", "-S", str(program), str(folder), "work"]
    with subprocess.Popen([*argv, "sh", "-c", "echo up; read x"], cwd=tree, stdin=-1, stdout=-1) as first:
        assert first.stdout is not None
        first.stdout.readline()
        second = subprocess.run([*argv, "true"], cwd=tree, capture_output=True, check=False)
    assert (second.returncode, b"busy" in second.stderr) == (enter.CANNOT_ENTER, True)
    program.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
