from orch.activities import repository, store, snapshots
from orch.activities.workspaces.worktree import WorktreeProvider
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.contract import Contract, Rung


def test_smoke(kit, tmp_path, home):
    repo = kit.make_repo(tmp_path / "re po", {"a.txt": "1\n", "tests/t.py": "x\n", "b": "b"})
    kit.write(repo, {"a.txt": "2\n", "new": "n", ".gitignore": "ign\n", "ign": "i"})
    (repo / "b").unlink()
    before = kit.fingerprint(repo)
    r = repository.inspect(repo)
    s = store.Store.of(home, r)
    b = snapshots.take_baseline(s, r, "run1")
    print(b, s.key)
    assert kit.fingerprint(repo) == before
    folder = home.attempt(AttemptKey(run="run1", iteration=1, candidate=1, binding=1))
    tree = WorktreeProvider().open(s, folder, b.commit)
    kit.write(tree, {"tests/t.py": "evil", "tests/n.py": "evil", "x/y": "z"})
    print(kit.git(tree, "status", "--short"), kit.git(tree, "log", "--oneline"))
    c = Contract(goal="g", rungs=(Rung(name="a", run="true"),), protected=("tests/**",))
    snap = snapshots.take_candidate(
        s,
        tree,
        attempt=AttemptKey(run="run1", iteration=1, candidate=1, binding=1),
        commit=b.commit,
        index=folder / "index",
        contract=c,
        carried=(),
    )
    print(snap)
    print(kit.git(s.path, "--git-dir", str(s.git_dir), "fsck", "--full"))
    print(s.diff(b.commit, snap.commit).decode())
    assert kit.fingerprint(repo) == before
    WorktreeProvider().close(s, folder)
    print(list(folder.iterdir()), list(s.path.iterdir()))
