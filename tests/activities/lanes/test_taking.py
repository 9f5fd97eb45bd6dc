"""What intake makes of an entry: a commit that git itself would have made, or a cause; with real git and real files."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orch.activities.lanes import taking
from orch.activities.protection import matcher, matches
from orch.activities.snapshots import take_candidate
from orch.activities.workspaces.clone import CloneProvider
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.round.ticket import Cause, Submission

CONTRACT = Contract(goal="g", rungs=(Rung(name="a", run="true"),))


def taken(lane: Any) -> Submission:
    """The one submission that a look brings."""
    (found,) = lane.take()
    submission: Submission = found
    return submission


def cause(lane: Any, files: Any, **facts: Any) -> Cause | None:
    lane.put(files, **facts)
    found = taken(lane)
    assert (found.commit is None) == (found.refused is not None)
    return found.refused


def test_submission_is_a_commit_on_the_incumbent_with_its_files(lane: Any) -> None:
    ticket = lane.put(
        {
            "src/a.py": b"a = 2\n",
            "src/deep/b.py": None,
            "src/new/x.sh": ("100755", b"#!/bin/sh\n"),
            "src/link": ("120000", b"new/x.sh"),
            b"src/caf\xe9\n": b"odd\n",
            "src/empty": b"",
        }
    )

    found = taken(lane)

    assert (found.ticket, found.lane, found.refused, found.files) == (ticket, "l1", None, 6)
    assert found.bytes == len(b"a = 2\n") + len(b"#!/bin/sh\n") + len(b"new/x.sh") + len(b"odd\n")
    assert found.paths == ("src/a.py", "src/caf\\xe9\\n", "src/deep/b.py", "src/empty", "src/link", "src/new/x.sh")
    before, after = lane.files(lane.incumbent), lane.files(found.commit)
    assert {path: after.get(path) for path in before | after if before.get(path) != after.get(path)} == {
        "src/a.py": ("100644", b"a = 2\n"),
        "src/deep/b.py": None,
        "src/new/x.sh": ("100755", b"#!/bin/sh\n"),
        "src/link": ("120000", b"new/x.sh"),
        "src/caf\udce9\n": ("100644", b"odd\n"),
        "src/empty": ("100644", b""),
    }
    git = lane.store.git
    assert git.text("rev-parse", f"{found.commit}^") == lane.incumbent
    assert git.text("rev-parse", f"{found.commit}^{{tree}}") == found.tree
    assert git.text("rev-parse", f"refs/orch/round-c-r1/ticket-{found.digest[:16]}") == found.commit
    assert lane.waiting == []
    assert list(lane.store.path.glob("index-*")) == []


def test_what_the_wrapper_hands_over_is_what_a_snapshot_of_the_workspace_holds(lane: Any) -> None:
    (lane.tree / "src/a.py").unlink()
    (lane.tree / "src/a.py").mkdir()
    (lane.tree / "src/a.py/inner").write_text("x\n")
    (lane.tree / "src/run.sh").chmod(0o755)
    (lane.tree / "src/deep/b.py").unlink()
    (lane.tree / "src/deep").rmdir()
    (lane.tree / "src/deep").symlink_to("../other")
    lane.submit()

    found = taken(lane)

    assert found.refused is None, found.detail
    shutil.rmtree(lane.tree / ".orch")
    assert found.tree == snapshot(lane, lane.tree)


def test_one_content_at_many_paths_is_read_once(lane: Any) -> None:
    content = b"same\n"
    lane.put({
        "src/1": content, "src/2": ("100755", content), "src/3": ("120000", content), "src/0": ("120000", content),
        "src/4/5": content,
    })  # fmt: skip

    found = taken(lane)

    files = lane.files(found.commit)
    assert {path: files[path][0] for path in files if files[path][1] == content} == {
        "src/0": "120000", "src/1": "100644", "src/2": "100755", "src/3": "120000", "src/4/5": "100644",
    }  # fmt: skip
    assert found.bytes == 5 * len(content)


def snapshot(lane: Any, tree: Path) -> str:
    """The tree that the machinery of attempts makes of a workspace."""
    return take_candidate(
        lane.store,
        tree,
        attempt=AttemptKey(run="other", iteration=1, candidate=1, binding=time.time_ns()),
        commit=lane.incumbent,
        index=tree.parent / "index",
        contract=CONTRACT,
        carried=(),
    ).tree


RULED = {
    ".gitattributes": "*.crlf text eol=crlf\n*.txt text=auto\n*.id ident\n",
    "src/.gitattributes": "*.up filter=up\n*.keep -text\n",
    ".gitignore": "*.log\n",
    "src/.gitignore": "ignored/*\n!ignored/kept\n",
    "src/deep/.gitignore": "*.o\n",
    "src/win.txt": "a\r\nb\r\n",
    "src/unix.txt": "a\nb\n",
    "src/a.crlf": "a\nb\n",
    "src/tracked.log": "tracked although ignored\n",
    "src/deep/b.py": "b\n",
}

EDITS: tuple[dict[str, Any], ...] = (
    {"src/a.crlf": b"a\r\nb\r\nc\r\n"},
    {"src/unix.txt": b"a\r\nb\r\nc\r\n"},
    {"src/win.txt": b"a\r\nb\r\nc\r\n", "src/new.txt": b"x\r\n"},
    {"src/x.id": b"$Id: 123 $\n", "src/x.up": b"lower\n", "src/deep/y.up": b"lower\n"},
    {"src/.gitattributes": None, "src/x.up": b"lower\n"},
    {"src/.gitattributes": b"*.py text eol=crlf\n", "src/n.py": b"a\r\n", "src/deep/b.py": b"b\r\n"},
    {"src/.gitattributes": b"*.up -filter\n", "src/x.up": b"lower\n"},
    {"src/tracked.log": b"changed\n", "src/ignored/kept": b"x"},
    {"src/.gitignore": b"", "src/ignored/other": b"x"},
    {"src/deep/.gitignore": None, "src/deep/x.o": b"x"},
    {"src/deep/b.py": None},
    {"src/deep/b.py": None, "src/deep/.gitignore": None, "src/deep": b"file\n"},
    {"src/unix.txt": None, "src/unix.txt/inner": b"x\r\n"},
    {"src/a.crlf": ("120000", b"unix.txt"), "src/l": ("120000", b"a\r\nb")},
    {"src/unix.txt": ("100755", b"a\nb\n")},
)


@pytest.mark.parametrize("edit", EDITS, ids="+".join)
def test_the_tree_is_the_one_that_plain_git_records(
    make_lane: Callable[..., Any], kit: Any, tmp_path: Path, edit: dict[str, Any]
) -> None:
    kit.make_repo(tmp_path / "repo", {})
    kit.git(tmp_path / "repo", "config", "filter.up.clean", "tr a-z A-Z")
    lane = make_lane(RULED)
    plain = CloneProvider().open(lane.store, tmp_path / "plain", lane.incumbent)
    for path, value in sorted(edit.items(), key=lambda item: item[1] is not None):
        mode, content = value if isinstance(value, tuple) else ("100644", value)
        if value is None:
            (plain / path).unlink()
            if not any((plain / path).parent.iterdir()):
                (plain / path).parent.rmdir()
            continue
        (plain / path).parent.mkdir(exist_ok=True)
        if mode == "120000":
            (plain / path).unlink(missing_ok=True)
            (plain / path).symlink_to(content.decode())
        else:
            (plain / path).write_bytes(content)
            (plain / path).chmod(int(mode, 8) & 0o777)
    lane.put(edit)

    found = taken(lane)

    assert found.refused is None, found.detail
    assert found.tree == snapshot(lane, plain)


def test_what_git_ignores_is_refused(make_lane: Callable[..., Any]) -> None:
    lane = make_lane(RULED)
    assert cause(lane, {"src/ignored/x": b"x", "src/a.crlf": b"z\r\n"}) is Cause.OUT_OF_SCOPE
    assert cause(lane, {"src/x.log": b"x"}) is Cause.OUT_OF_SCOPE
    assert cause(lane, {"src/deep/x.o": b"x"}) is Cause.OUT_OF_SCOPE


def test_attributes_that_reach_files_of_others_are_refused(make_lane: Callable[..., Any]) -> None:
    lane = make_lane(globs=("src/**", "!src/golden/**", "/.gitattributes"))
    assert cause(lane, {".gitattributes": b"*.py text eol=crlf\n"}) is Cause.GIT_PATH
    assert cause(lane, {".gitattributes": b"/src/*.py text eol=lf\n"}) is None


@pytest.mark.parametrize(
    "files",
    [
        {"src/a.py": b"a = 1\n"},
        {"src/a.py": b"a = 1\n", "src/run.sh": b"#!/bin/sh\n"},
        {},
    ],
)
def test_files_of_the_incumbent_are_no_change(lane: Any, files: Any) -> None:
    assert cause(lane, files) is Cause.NO_CHANGE


SHA = hashlib.sha256(b"other").hexdigest()


def test_contents_must_have_the_hashes_that_are_told(lane: Any) -> None:
    assert cause(lane, {"src/a.py": ("100644", b"a = 2\n", SHA)}) is Cause.HASH_MISMATCH
    ticket = lane.put({"src/a.py": b"a = 3\n"})
    (lane.outbox / ticket / "files" / hashlib.sha256(b"a = 3\n").hexdigest()).unlink()
    assert taken(lane).refused is Cause.HASH_MISMATCH
    lane.put({"src/a.py": b"a = 4\n"}, name="r1-l1-00000000")
    assert taken(lane).refused is Cause.HASH_MISMATCH


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "socket", "unreadable folder of files", "linked folder"])
def test_contents_that_are_no_files_are_refused(lane: Any, kind: str, tmp_path: Path) -> None:
    content = b"a = 2\n"
    sha256 = hashlib.sha256(content).hexdigest()
    (tmp_path / sha256).write_bytes(content)
    ticket = lane.put({"src/a.py": content})
    files = lane.outbox / ticket / "files"
    (files / sha256).unlink()
    if kind == "link":
        (files / sha256).symlink_to(tmp_path / sha256)
    elif kind == "fifo":
        os.mkfifo(files / sha256)
    elif kind == "folder":
        (files / sha256).mkdir()
    elif kind == "socket":
        bind = "import socket; socket.socket(socket.AF_UNIX).bind('s')"
        subprocess.run(["python3", "-c", bind], cwd=files, check=True)
        (files / "s").rename(files / sha256)
    else:
        files.rmdir()
        files.symlink_to(tmp_path) if kind == "linked folder" else files.write_bytes(b"")

    assert taken(lane).refused is Cause.HASH_MISMATCH
    assert lane.waiting == []


@pytest.mark.parametrize("kind", ["missing", "link", "fifo", "empty"])
def test_a_manifest_that_is_no_file_is_malformed(lane: Any, kind: str, tmp_path: Path) -> None:
    ticket = lane.put({"src/a.py": b"a = 2\n"})
    manifest = lane.outbox / ticket / "manifest.json"
    manifest.rename(tmp_path / "manifest.json")
    if kind == "link":
        manifest.symlink_to(tmp_path / "manifest.json")
    elif kind == "fifo":
        os.mkfifo(manifest)
    elif kind == "empty":
        manifest.touch()
    assert taken(lane).refused is Cause.MALFORMED


LEASE = """
import fcntl, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)  # the kernel asks whoever holds it to let go
file = open(sys.argv[1], "r+b")
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("leased", flush=True)
sys.stdin.read()
"""


def test_a_file_that_the_lane_keeps_a_lease_of_is_no_fault_of_this_host(lane: Any) -> None:
    ticket = lane.put({"src/a.py": b"a = 2\n"})
    argv = ["python3", "-c", LEASE, str(lane.outbox / ticket / "manifest.json")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"leased\n"
        found = taken(lane)
        holder.kill()

    assert (found.refused, found.detail) == (Cause.MALFORMED, "the manifest cannot be read")


def test_too_much_is_refused_without_reading_it(make_lane: Callable[..., Any]) -> None:
    lane = make_lane(max_bytes=1000, max_files=3)
    ticket = lane.put({"src/big": ("100644", b"", "b" * 64)})
    with (lane.outbox / ticket / "files" / ("b" * 64)).open("wb") as file:
        file.truncate(2 << 30)
    assert taken(lane).refused is Cause.OVERSIZE
    assert cause(lane, {"src/1": b"x" * 600, "src/2": b"y" * 600}) is Cause.OVERSIZE
    assert cause(lane, {"src/1": b"x" * 600, "src/2": b"x" * 600}) is Cause.OVERSIZE  # one content, two files
    assert cause(lane, {"src/1": b"x" * 600, "src/2": b"y" * 400}) is None
    assert cause(lane, {f"src/{number}": b"" for number in range(4)}) is Cause.OVERSIZE
    ticket = lane.put({}, name="r1-l1-00000001", manifest=b" " * 100_000)
    assert taken(lane).refused is Cause.OVERSIZE


def test_links_are_checked_with_what_they_meet(make_lane: Callable[..., Any]) -> None:
    lane = make_lane({"src/a.py": "a\n", "bench/x": "x\n"})
    assert cause(lane, {"src/l": ("120000", b"../bench/x")}) is None
    assert cause(lane, {"src/l": ("120000", b"/etc/passwd")}) is Cause.LINK_ESCAPES
    assert cause(lane, {"src/l": ("120000", b"m/../x"), "src/m": ("120000", b"..")}) is Cause.LINK_ESCAPES
    assert cause(lane, {"src/l": ("120000", b"x" * 5000)}) is Cause.LINK_ESCAPES
    assert cause(lane, {"src/l": ("120000", b"a\0b")}) is Cause.LINK_ESCAPES


def test_links_of_the_incumbent_are_met_too(make_lane: Callable[..., Any], kit: Any, tmp_path: Path) -> None:
    repo = kit.make_repo(tmp_path / "repo", {"src/a.py": "a\n"})
    (repo / "src/out").symlink_to("/usr")
    kit.commit_all(repo)
    lane = make_lane({"more": "x\n"})
    assert cause(lane, {"src/l": ("120000", b"out/bin")}) is Cause.LINK_ESCAPES
    assert cause(lane, {"src/l": ("120000", b"a.py")}) is None


def test_submodules_and_folded_names_are_seen_in_the_incumbent(
    make_lane: Callable[..., Any], kit: Any, tmp_path: Path
) -> None:
    inner = kit.make_repo(tmp_path / "inner")
    repo = kit.make_repo(tmp_path / "repo", {"src/a.py": "a\n"})
    kit.git(repo, "submodule", "add", "-q", str(inner), "src/sub")
    kit.commit_all(repo)
    lane = make_lane({"more": "x\n"})
    for files in ({"src/sub/x": b"x"}, {"src/sub": b"x"}, {"src/sub": None}, {"src/.gitmodules": b"x"}):
        assert cause(lane, files) is Cause.SUBMODULE
    assert cause(lane, {"src/A.PY": b"x"}) is Cause.CASE_COLLISION


def test_git_that_cannot_record_refuses_the_files_and_no_more(
    make_lane: Callable[..., Any], kit: Any, tmp_path: Path
) -> None:
    repo = kit.make_repo(tmp_path / "repo", {"src/.gitattributes": "*.x filter=broken\n", "src/a": "a\n"})
    kit.git(repo, "config", "filter.broken.clean", "false")
    kit.git(repo, "config", "filter.broken.required", "true")
    lane = make_lane({"more": "x\n"})
    assert cause(lane, {"src/new.x": b"x"}) is Cause.MALFORMED
    assert cause(lane, {"src/a": b"b\n"}) is None


GAINED: dict[str, dict[str, Any]] = {
    "a new rule": {"src/.gitattributes": b"*.bin filter=up\n", "src/x.bin": b"x"},
    "for a file that is there": {"src/deep/.gitattributes": b"b.py filter=up\n"},
    "a macro": {".gitattributes": b"[attr]big filter=up\n*.bin big\n", "src/x.bin": b"x"},
    "another one": {"src/.gitattributes": b"*.up filter=other\n*.not -filter\n", "src/x.up": b"x"},
    "no longer taken away": {"src/.gitattributes": b"*.up filter=up\n", "src/x.not": b"x"},
    "nor by a file": {"src/deep/.gitattributes": None, "src/deep/x.up": b"x"},
}


@pytest.mark.parametrize("files", GAINED.values(), ids=GAINED.keys())
def test_files_that_choose_a_filter_of_the_users_are_refused_and_it_never_runs(
    make_lane: Callable[..., Any], kit: Any, tmp_path: Path, files: dict[str, Any]
) -> None:
    repo = kit.make_repo(tmp_path / "repo", {})
    for driver in ("up", "other"):
        kit.git(repo, "config", f"filter.{driver}.clean", f"touch {tmp_path}/ran; cat")
        kit.git(repo, "config", f"filter.{driver}.smudge", f"touch {tmp_path}/ran; cat")
    rules = {
        ".gitattributes": "*.not filter=up\n",
        "src/.gitattributes": "*.up filter=up\n*.not -filter\n",
        "src/deep/.gitattributes": "*.up -filter\n",
        "src/deep/b.py": "b\n",
    }
    lane = make_lane(rules, globs=("src/**", ".gitattributes"))

    assert cause(lane, files) is Cause.GIT_PATH
    assert not (tmp_path / "ran").exists()
    assert cause(lane, {"src/.gitattributes": b"*.up filter=up\n*.not -filter\n*.x text\n", "src/x.up": b"x"}) is None


@pytest.mark.parametrize("rules", [".gitignore", ".gitattributes"])
def test_rules_that_keep_git_busy_for_ever_refuse_the_files(
    lane: Any, monkeypatch: pytest.MonkeyPatch, rules: str
) -> None:
    monkeypatch.setattr(taking, "GIT_S", 1)
    pattern = "/a" + "/**/a" * 22 + "/**/[b]"
    begun = time.monotonic()

    lane.put({f"src/{rules}": f"{pattern} text\n".encode(), "src/" + "a/" * 45 + "a": b"deep"})
    found = taken(lane)

    assert (found.refused, found.detail) == (Cause.MALFORMED, "git cannot record the files: git ended with status 124")
    assert time.monotonic() - begun < 30.0
    assert cause(lane, {"src/a.py": b"a = 2\n"}) is None


def test_late_entries_are_only_named(lane: Any) -> None:
    lane.put({"src/a.py": b"a = 2\n"})
    (found,) = lane.take(deadline=time.time() - 1)
    assert found.refused is Cause.LANE_DEADLINE
    assert (found.commit, found.paths) == (None, ("src/a.py",))


def test_files_recorded_before_are_not_recorded_again(lane: Any) -> None:
    files = {"src/a.py": b"a = 2\n"}
    lane.put(files)
    first = taken(lane)
    for path in (lane.folder / "taken").glob("*.json"):  # as if a worker had died before it could note it
        path.unlink()
    lane.put(files)
    assert taken(lane) == first


def test_other_files_whose_digest_begins_alike_are_refused(lane: Any) -> None:
    lane.put({"src/a.py": b"a = 2\n"})
    first = taken(lane)
    ticket = lane.put({"src/a.py": b"a = 3\n"})
    digest = hashlib.sha256((lane.outbox / ticket / "manifest.json").read_bytes()).hexdigest()
    lane.store.pin(f"refs/orch/round-c-r1/ticket-{digest[:16]}", first.commit)
    assert taken(lane).refused is Cause.MALFORMED


PARTS = st.sampled_from(
    ["src", "other", "bench", "golden", "a.py", "A.py", "deep", "b.py", "link", "..", ".", "", ".git", ".gitignore",
     "x", ".gitattributes", "up", "README.md", "caf\udce9", "\n", "tests"]
)  # fmt: skip
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
LINKS = st.lists(PARTS, max_size=5).map(lambda parts: "/".join(parts).encode("utf-8", "surrogateescape"))
VALUES = st.one_of(
    st.none(),
    st.sampled_from([b"a = 1\n", b"x\n", b"* text eol=crlf\n", b"*\n", b"/../\n"]),
    st.tuples(st.sampled_from(["100755", "120000", "160000", "100644"]), LINKS),
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.dictionaries(PATHS, VALUES, max_size=4), inside=st.booleans())
def test_nothing_outside_of_the_own_globs_is_ever_in_the_commit(lane: Any, files: Any, *, inside: bool) -> None:
    if inside:
        files = {f"src/{path}": value for path, value in files.items()}
    lane.round.heard.clear()
    for record in (lane.folder / "taken").glob("*.json"):
        record.unlink()
    lane.put(files)

    found = taken(lane)

    if found.commit is None:
        assert found.refused
        return
    before, after = lane.files(lane.incumbent), lane.files(found.commit)
    own, protected = matcher(["src/**"]), matcher(["bench/**", "src/golden/**"])
    changed = {os.fsencode(path) for path in before | after if before.get(path) != after.get(path)}
    assert changed
    assert changed <= {os.fsencode(path) for path in files}
    for path in changed:
        assert matches(own, path)
        assert not matches(protected, path)
    assert not any(mode in {"160000", "040000"} for mode, _ in after.values())
