"""Overlay workspaces: opened in no time, seen only by what runs in them, and nothing of them stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orch.activities.artifacts import keep_request
from orch.activities.carried_layer import carried_layer
from orch.activities.places import Grants, Place
from orch.activities.protection import disturbed
from orch.activities.sandbox import AGENT
from orch.activities.sandbox.registry import wrap
from orch.activities.sandbox.view import Needs, box
from orch.activities.workspaces import Layers, enter
from orch.activities.workspaces.bases import bases_of, make_layer
from orch.activities.workspaces.overlay import OverlayProvider, not_entered
from orch.activities.workspaces.registry import open_workspace, provider_of
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.goal import PrepareRun, SandboxMode

OVERLAY = OverlayProvider()


@pytest.fixture
def here(bench: Callable[[Path], Any], make_repo: Callable[..., Path], tmp_path: Path) -> Any:
    """A bench over a repository with a few files."""
    made = bench(make_repo(tmp_path / "repo", {"a.txt": "a\n", "b.txt": "b\n", "sub/run.sh": "echo\n", "sub/c": "c\n"}))
    made.provider = OVERLAY
    return made


def inside(folder: Path, script: str, *, view: bool = False) -> str:
    """What a script prints that runs in the workspace of a folder."""
    argv = OVERLAY.entering(folder, ("sh", "-ec", script), view=view)
    done = subprocess.run(argv, cwd=folder / "tree", capture_output=True, check=False, text=True)
    assert not done.returncode, done.stderr
    return done.stdout.strip()


def mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


def test_git_works_inside_and_reaches_nothing_outside(here: Any) -> None:
    first, second = here.open(1), here.open(2)
    refs = here.store.git.run("for-each-ref")
    said = inside(
        here.folder(1),
        "git status --porcelain; echo x > a.txt; git stash -q; git checkout -q -b mine; git config core.hooksPath /no;"
        "git mv sub moved; git commit -qm moved; git gc -q --prune=now; git status --porcelain;"
        "git log --oneline | wc -l",
    )
    assert said == "2"
    assert inside(here.folder(2), "git status --porcelain; git for-each-ref; cat a.txt; ls sub") == "a\nc\nrun.sh"
    assert here.store.git.run("for-each-ref") == refs
    assert here.sound()
    assert not [*first.iterdir(), *second.iterdir()]
    assert str(first) not in mounts()


def test_opening_reads_nothing_again_and_takes_hardly_any_room(here: Any) -> None:
    here.open(1)
    known = inside(here.folder(1), "git ls-files --debug a.txt | grep -o 'ino: [0-9]*'; stat -c 'ino: %i' a.txt")
    assert len(set(known.split("\n"))) == 1
    newest = inside(here.folder(1), "stat -c %Y a.txt sub/c | sort | tail -1; stat -c %Y .git/index").split()
    assert int(newest[0]) < int(newest[1])
    size = subprocess.run(["du", "-sk", here.folder(1)], capture_output=True, check=True).stdout
    assert int(size.split()[0]) < 100


def test_same_size_edit_right_after_opening_is_seen_by_git(here: Any) -> None:
    here.open(1)
    assert inside(here.folder(1), "printf 'z\\n' > a.txt; git status --porcelain") == "M a.txt"


def test_closing_leaves_nothing_and_may_be_repeated(here: Any) -> None:
    here.open()
    inside(here.folder(), "echo 1 > a.txt; mkdir d; chmod 0 d")
    OVERLAY.close(here.store, here.folder())
    OVERLAY.close(here.store, here.folder())
    assert list(here.folder().iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_stays_mounted_whatever_is_killed(here: Any, number: int) -> None:
    tree = here.open()
    argv = OVERLAY.entering(here.folder(), ("sh", "-c", "sleep 60 & echo up; wait"))
    with subprocess.Popen(argv, cwd=tree, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert inside(here.folder(), "cat a.txt", view=True) == "a"
        os.killpg(process.pid, number)
    assert inside(here.folder(), "cat a.txt") == "a"
    assert str(tree) not in mounts()


def test_a_workspace_in_use_is_not_mounted_twice(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = here.open()
    impatient = Path(enter.__file__).read_text().replace("PATIENCE_S = 5.0", "PATIENCE_S = 0.1")
    (here.folder() / "enter.py").write_text(impatient)
    monkeypatch.setattr(enter, "__file__", str(here.folder() / "enter.py"))
    argv = OVERLAY.entering(here.folder(), ("sh", "-c", "echo up; sleep 60"))
    with subprocess.Popen(argv, cwd=tree, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        again = subprocess.run(
            OVERLAY.entering(here.folder(), ("true",)), cwd=tree, capture_output=True, check=False, text=True
        )
        os.killpg(process.pid, signal.SIGKILL)
    assert again.returncode == enter.CANNOT_ENTER
    assert "busy" in not_entered(again.stderr)


def test_a_program_that_is_not_there_is_told(here: Any) -> None:
    tree = here.open()
    done = subprocess.run(
        OVERLAY.entering(here.folder(), ("/no/program",)), cwd=tree, capture_output=True, check=False, text=True
    )
    assert (done.returncode, not_entered(done.stderr)) == (127, "/no/program: No such file or directory\n".strip())


def test_the_sandbox_stands_in_the_workspace(here: Any, tmp_path: Path) -> None:
    tree = here.open()
    script = "echo in > new; cat a.txt; touch ../upper/x 2>/dev/null || echo denied; git status --porcelain"
    borrowed = (here.store.git_dir / "objects", here.store.path / "linked")
    needs = Needs((), os.defpath, here.home.root, tmp=tmp_path / "tmp", tree=tree, readable=borrowed)
    argv = OVERLAY.entering(here.folder(), wrap(("sh", "-c", script), box(needs, network=False)))
    done = subprocess.run(argv, cwd=tree, capture_output=True, check=False, text=True)
    assert done.stdout.split("\n")[:3] == ["a", "denied", "?? new"], done.stderr
    assert (here.folder() / "upper/new").read_text() == "in\n"


def test_places_enter_the_workspace_of_their_folder(here: Any) -> None:
    tree = open_workspace(here.store, here.folder(), here.baseline().commit)
    argv = Place(here.home, here.key(), here.folder()).fenced(("cat", "a.txt"), AGENT, Grants(), sandbox=False)
    assert subprocess.run(argv, cwd=tree, capture_output=True, check=True).stdout == b"a\n"
    assert provider_of(here.folder()) is not None


def test_a_commit_with_submodules_gets_a_clone(kit: Any, here: Any) -> None:
    kit.write(here.repo, {".gitmodules": ""})
    open_workspace(here.store, here.folder(), here.baseline().commit)
    assert provider_of(here.folder()).name == "clone"


def test_a_measuring_copy_is_the_candidate_made_from_the_start(kit: Any, here: Any) -> None:
    here.open(1)
    inside(here.folder(1), "rm b.txt; echo new > n; mkdir d; echo > d/x; rm -r sub; echo file > sub; chmod +x a.txt")
    snapshot = here.snapshot(1)
    folder = here.folder(1) / "measure"
    OVERLAY.copy(here.store, folder, snapshot.commit)
    assert (folder / "base").read_text() == (here.folder(1) / "base").read_text()
    assert inside(folder, "git status --porcelain; git rev-parse HEAD; ls; cat sub; test -x a.txt") == (
        f"{snapshot.commit}\na.txt\nd\nn\nsub\nfile"
    )


def test_attributes_that_changed_are_measured_on_a_checkout_of_their_own(here: Any) -> None:
    here.open(1)
    inside(here.folder(1), "echo '*.txt eol=crlf' > .gitattributes")
    folder = here.folder(1) / "measure"
    OVERLAY.copy(here.store, folder, here.snapshot(1).commit)
    assert inside(folder, "od -An -c b.txt | tr -d ' '") == "b\\r\\n"


@pytest.mark.parametrize(
    ("script", "changed", "touched"),
    [
        ("echo > cache; cat a.txt", [], []),
        ("echo z > a.txt", ["a.txt"], ["a.txt"]),
        ("touch a.txt", [], ["a.txt"]),
        ("echo z > n.txt; echo new > n.txt", [], ["n.txt"]),
        ("cp a.txt t; mv t a.txt", [], ["a.txt"]),
        ("rm sub/c", ["sub/c"], ["sub/c"]),
        ("rm -r sub; mkdir sub; echo c > sub/c", ["sub/run.sh"], ["sub/c", "sub/run.sh"]),
        ("rm a.txt; mkdir a.txt", ["a.txt"], ["a.txt"]),
        ("rm a.txt; ln -s b.txt a.txt", ["a.txt"], ["a.txt"]),
    ],
)
def test_what_a_ladder_does_to_protected_files_is_seen(
    here: Any, script: str, changed: list[str], touched: list[str]
) -> None:
    here.open(1)
    inside(here.folder(1), "echo new > n.txt; rm b.txt")
    snapshot, folder = here.snapshot(1), here.folder(1) / "measure"
    OVERLAY.copy(here.store, folder, snapshot.commit)
    inside(folder, script)
    found = disturbed(here.store, folder, snapshot.commit, ("*.txt", "sub/**", "cache"))
    assert ([os.fsdecode(n) for n in found[0]], [os.fsdecode(n) for n in found[1]]) == (changed, touched)


def test_layers_show_below_and_above_the_checkout(here: Any) -> None:
    def fill(tree: Path) -> None:
        (tree / "deps").mkdir()
        (tree / "deps/lib").write_text("carried\n")
        (tree / "a.txt").write_text("never seen\n")

    below = make_layer(here.store, "carried", fill)
    OVERLAY.open(here.store, here.folder(), here.baseline().commit, Layers(below=(below,)))
    assert (
        inside(here.folder(), "cat deps/lib a.txt; echo mine > deps/lib; git status --porcelain")
        == "carried\na\n?? deps/"
    )
    assert (bases_of(here.store) / below / "tree/deps/lib").read_text() == "carried\n"
    assert here.snapshot(carried=["deps"]).changed == 0


def test_what_is_carried_is_copied_once_and_its_links_lead_into_each_workspace(kit: Any, here: Any) -> None:
    kit.write(here.repo, {".gitignore": "deps/\n", "deps/lib": "carried\n"})
    (here.repo / "deps/own").symlink_to(here.repo / "deps/lib")
    (here.repo / "deps/tracked").symlink_to(here.repo / "a.txt")
    contract = Contract(goal="g", rungs=(Rung(name="a", run="true"),), carry=("deps",))
    given = {"run": "run", "repo": str(here.repo), "agents": ("cmd:true",), "contract": contract}
    keep_request(here.home, PrepareRun.model_validate({**given, "sandbox": SandboxMode.OFF, "promote": {}}))
    first = carried_layer(here.store, "run", contract.carry)
    assert carried_layer(here.store, "run", contract.carry) == first
    OVERLAY.open(here.store, here.folder(), here.baseline().commit, Layers(below=first))
    assert inside(here.folder(), "echo x > a.txt; cat deps/own deps/tracked; rm -r deps") == "carried\nx"
    assert here.snapshot(carried=["deps"]).paths == ("a.txt",)


def test_an_ordinary_user_has_the_same(kit: Any, user_home: Path, ordinary: Callable[[str], tuple[str, ...]]) -> None:
    """Opened, worked in behind the sandbox, recorded, closed; and the workspace is not mounted twice."""
    kit.make_repo(user_home / "repo", {"a.txt": "a\n", "b.txt": "b\n", "sub/c.txt": "c\n"})
    for path in user_home.rglob("*") if not os.geteuid() else ():
        os.chown(path, 65534, 65534, follow_symlinks=False)

    argv = (*ordinary("plain"), sys.executable, str(Path(__file__).with_name("as_nobody.py")), str(user_home))
    done = subprocess.run(argv, capture_output=True, check=False, text=True, env={**os.environ, "HOME": str(user_home)})

    assert done.stdout.strip() == "a.txt new sub/c.txt sub2/c.txt", done.stderr


def test_commands_inside_ignore_no_signal_that_python_ignores(here: Any) -> None:
    here.open()
    ignored = int(inside(here.folder(), "grep SigIgn /proc/self/status").split()[1], 16)
    assert not [number for number in (signal.SIGPIPE, signal.SIGXFSZ) if ignored >> (number - 1) & 1]
