"""The wrapper in a lane's tree: what it hands over, what it says, and what it never does."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orch.activities.lanes import desk, wrapper
from orch.activities.protection import matcher, matches


def manifest(lane: Any, ticket: str) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = json.loads((lane.outbox / ticket / "manifest.json").read_text())["files"]
    return files


def contents(lane: Any, ticket: str) -> dict[str, bytes]:
    """What was handed over, by path."""
    entry = lane.outbox / ticket
    return {
        each["path"]: b"" if each.get("deleted") else (entry / "files" / each["sha256"]).read_bytes()
        for each in manifest(lane, ticket)
    }


def test_changed_files_of_the_lane_are_handed_over_and_others_are_listed(lane: Any) -> None:
    (lane.tree / "src/a.py").write_text("a = 2\n")
    (lane.tree / "src/new.py").write_text("n = 1\n")
    (lane.tree / "src/deep/b.py").unlink()
    (lane.tree / "other/c.py").write_text("c = 2\n")
    (lane.tree / "bench/run.py").write_text("print(2)\n")
    (lane.tree / "NOTES").write_text("mine\n")

    said = lane.submit()

    ticket = said.pop("ticket")
    assert said == {
        "status": "submitted",
        "duplicate": False,
        "files": 3,
        "out_of_scope": [
            {"path": "NOTES", "why": "outside of your globs"},
            {"path": "bench/run.py", "why": "protected"},
            {"path": "other/c.py", "why": "another lane's"},
        ],
    }
    assert manifest(lane, ticket) == [
        {"mode": "100644", "path": "src/a.py", "sha256": hashlib.sha256(b"a = 2\n").hexdigest()},
        {"deleted": True, "path": "src/deep/b.py"},
        {"mode": "100644", "path": "src/new.py", "sha256": hashlib.sha256(b"n = 1\n").hexdigest()},
    ]
    data = (lane.outbox / ticket / "manifest.json").read_bytes()
    assert ticket == f"r1-l1-{hashlib.sha256(data).hexdigest()[:8]}"


def test_renames_modes_links_and_odd_names_are_told(lane: Any) -> None:
    (lane.tree / "src/a.py").rename(lane.tree / "src/moved.py")
    (lane.tree / "src/run.sh").chmod(0o755)
    (lane.tree / "src/link").symlink_to("deep/b.py")
    odd = os.fsencode(lane.tree) + b"/src/caf\xe9 \n\"'\\.py"
    Path(os.fsdecode(odd)).write_text("odd\n")

    ticket = lane.submit()["ticket"]

    found = {each["path"]: each for each in manifest(lane, ticket)}
    assert found["src/a.py"] == {"path": "src/a.py", "deleted": True}
    assert found["src/moved.py"]["mode"] == "100644"
    assert found["src/run.sh"]["mode"] == "100755"
    assert found["src/link"]["mode"] == "120000"
    assert contents(lane, ticket)["src/link"] == b"deep/b.py"
    assert contents(lane, ticket)["src/caf\udce9 \n\"'\\.py"] == b"odd\n"
    assert (lane.outbox / ticket / "manifest.json").read_bytes().isascii()


def test_ignored_files_and_those_only_touched_are_not_handed_over(lane: Any) -> None:
    (lane.tree / "src/run.log").write_text("log\n")
    (lane.tree / "src/build").mkdir()
    (lane.tree / "src/build/out").write_text("out\n")
    os.utime(lane.tree / "src/a.py", (1, 1))
    os.utime(lane.tree / "README.md", (1, 1))

    assert lane.call("submit") == (1, {"error": "no file of yours differs from the incumbent", "out_of_scope": []})
    assert lane.waiting == []


def test_same_files_have_the_same_ticket_and_other_ones_another(lane: Any) -> None:
    (lane.tree / "src/a.py").write_text("a = 2\n")
    first = lane.submit()
    again = lane.submit()
    (lane.tree / "src/a.py").write_text("a = 3\n")
    other = lane.submit()

    assert again == {**first, "duplicate": True}
    assert other["ticket"] != first["ticket"]
    assert not other["duplicate"]
    assert lane.waiting == sorted([first["ticket"], other["ticket"]])


def test_two_submissions_at_the_same_instant_are_one_ticket(lane: Any) -> None:
    (lane.tree / "src/a.py").write_text("a = 2\n")
    with ThreadPoolExecutor(8) as threads:
        said = [each.result() for each in [threads.submit(lane.call, "submit") for _ in range(8)]]

    assert {status for status, _ in said} == {0}
    assert len({document["ticket"] for _, document in said}) == 1
    assert sorted(document["duplicate"] for _, document in said) == [False] + [True] * 7
    assert len(lane.waiting) == 1


@pytest.mark.parametrize(
    "git",
    [
        "git commit -qam mine",
        "git add -A && git rm -q --cached src/a.py",
        "git commit -qam mine && git checkout -q --orphan new && git rm -rq --cached .",
        "git update-index --refresh; git stash -q && git stash apply -q && git checkout -qB side",
    ],
)
def test_what_the_agent_does_with_git_changes_nothing(lane: Any, git: str) -> None:
    (lane.tree / "src/a.py").write_text("a = 2\n")
    (lane.tree / "src/deep/b.py").unlink()
    expected = lane.submit()["ticket"]
    subprocess.run(f"{git} >/dev/null 2>&1 || :", shell=True, cwd=lane.tree, check=True)

    assert lane.submit()["ticket"] == expected


def test_a_folder_in_the_place_of_a_file_a_link_in_the_place_of_a_folder(lane: Any) -> None:
    (lane.tree / "src/a.py").unlink()
    (lane.tree / "src/a.py").mkdir()
    (lane.tree / "src/a.py/inner").write_text("x")
    (lane.tree / "src/deep/b.py").unlink()
    (lane.tree / "src/deep").rmdir()
    (lane.tree / "src/deep").symlink_to("../other")

    ticket = lane.submit()["ticket"]

    found = {each["path"]: each.get("mode", "gone") for each in manifest(lane, ticket)}
    assert found == {"src/a.py": "gone", "src/a.py/inner": "100644", "src/deep": "120000", "src/deep/b.py": "gone"}


def test_pipes_sockets_and_repositories_are_listed_back(lane: Any, kit: Any) -> None:
    (lane.tree / "src/a.py").write_text("a = 2\n")
    os.mkfifo(lane.tree / "src/run.sh.new")
    (lane.tree / "src/run.sh.new").rename(lane.tree / "src/run.sh")
    kit.make_repo(lane.tree / "src/nested")

    said = lane.submit()

    assert said["files"] == 1
    assert said["out_of_scope"] == [
        {"path": "src/nested/", "why": "a repository of its own"},
        {"path": "src/run.sh", "why": "not a file"},
    ]


def test_more_than_a_submission_may_hold_is_refused_and_leaves_nothing(make_lane: Callable[..., Any]) -> None:
    lane = make_lane(max_bytes=1000, max_files=3)
    with (lane.tree / "src/big").open("wb") as file:
        file.truncate(2 << 30)
    assert lane.call("submit")[1]["error"] == "more than one submission may hold"
    (lane.tree / "src/big").unlink()
    for number in range(4):
        (lane.tree / f"src/{number}").write_text("x")
    assert lane.call("submit") == (1, {"error": "more than the 3 files that one submission may hold"})
    assert lane.waiting == []


def test_a_lane_that_is_over_hands_nothing_over(lane: Any) -> None:
    lane.deadline = time.time() - 1
    (lane.tree / "src/a.py").write_text("a = 2\n")
    status, document = lane.call("submit")
    assert status == 1
    assert "deadline" in document["error"]


def test_it_works_where_git_is_read_only_and_there_is_no_network(lane: Any) -> None:
    (lane.tree / "src/a.py").write_text("a = 2\n")
    (lane.tree / "src/new.py").write_text("n = 1\n")
    git = lane.folder / "git"
    box = ("bwrap", "--dev-bind", "/", "/", "--ro-bind", str(git), str(git), "--unshare-net", "--")
    if subprocess.run([*box, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no bubblewrap here")
    before = {path: path.read_bytes() for path in git.rglob("*") if path.is_file()}

    status, document = lane.call("submit", prefix=box)

    assert (status, document["files"]) == (0, 2)
    assert {path: path.read_bytes() for path in git.rglob("*") if path.is_file()} == before


def test_git_is_not_written_to(lane: Any) -> None:
    os.utime(lane.tree / "src/a.py", (1, 1))
    (lane.tree / "src/new.py").write_text("n = 1\n")
    before = {
        path: (path.stat().st_mtime_ns, path.read_bytes()) for path in lane.folder.glob("git/**/*") if path.is_file()
    }

    lane.submit()

    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in before} == before
    assert len(before) == sum(path.is_file() for path in lane.folder.glob("git/**/*"))


def test_variables_of_an_outer_git_turn_it_nowhere(lane: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (lane.tree / "src/a.py").write_text("a = 2\n")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    assert lane.submit()["files"] == 1


def test_nothing_that_the_lane_would_have_python_load_comes_with_it(
    lane: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (lane.tree / "src/a.py").write_text("a = 2\n")
    for folder in (tmp_path, lane.tree / ".orch", lane.tree):
        for name in ("usercustomize", "sitecustomize", "json"):
            (folder / f"{name}.py").write_text("raise SystemExit('loaded')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONHOME", str(tmp_path))
    assert lane.submit()["files"] == 1


def test_its_way_and_its_words_may_hold_anything(make_lane: Callable[..., Any], tmp_path: Path) -> None:
    lane = make_lane()
    odd = tmp_path / 'it\'s "$HOME" `x`'
    shutil.copytree(lane.tree / ".orch", odd / ".orch")
    done = subprocess.run([str(odd / desk.PROGRAM), 'it\'s "$0"'], capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)) == (2, {"error": "say submit or status"})


def test_without_git_data_it_says_so(lane: Any) -> None:
    (lane.tree / ".git").unlink()
    status, document = lane.call("submit")
    assert (status, document["error"]) == (1, "git diff-index failed in this tree")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "say submit or status"),
        (("--help",), "say submit or status"),
        (("submitt",), "say submit or status"),
        (("submit", "now"), "submit does not take now"),
        (("status", "a", "b"), "status does not take b"),
        (("status", "--weit", "3"), "status does not take --weit"),
        (("status", "--wait=soon"), "--wait takes from 0 to 3600 seconds, not soon"),
        (("status", "--wait", "99999"), "--wait takes from 0 to 3600 seconds, not 99999"),
        (("status", "--wait", "-3"), "--wait takes from 0 to 3600 seconds, not -3"),
    ],
)
def test_wrong_usage_is_explained(lane: Any, words: tuple[str, ...], error: str) -> None:
    done = subprocess.run([str(lane.tree / desk.PROGRAM), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert json.loads(done.stdout) == {"error": error}
    assert done.stderr.startswith("usage: .orch/round submit")


def write_up(lane: Any, ticket: str, state: str, **facts: Any) -> None:
    path = lane.folder / "desk" / "status" / f"{ticket}.json"
    path.with_suffix(".new").write_text(json.dumps({"ticket": ticket, "state": state, **facts}))
    path.with_suffix(".new").rename(path)


def test_status_tells_of_one_or_all(lane: Any) -> None:
    (lane.tree / "src/a.py").write_text("a = 2\n")
    ticket = lane.submit()["ticket"]
    write_up(lane, "r1-l1-00000000", "measured", gain=0.1)

    assert lane.call("status", ticket) == (0, {"ticket": ticket, "status": "submitted"})
    assert lane.call("status", "r1-l1-00000000")[1] == {"ticket": "r1-l1-00000000", "status": "measured", "gain": 0.1}
    assert [each["status"] for each in lane.call("status")[1]["tickets"]] == ["measured", "submitted"]
    unknown = lane.call("status", "r1-l1-12345678")
    assert unknown == (1, {"error": "there is no ticket r1-l1-12345678", "tickets": ["r1-l1-00000000", ticket]})


def test_waiting_ends_with_a_change_or_with_its_time(lane: Any) -> None:
    assert lane.tree
    write_up(lane, "r1-l1-00000000", "queued")
    begun = time.monotonic()
    assert not lane.call("status", "r1-l1-00000000", "--wait", "0.3")[1]["changed"]
    assert time.monotonic() - begun >= 0.3
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lane.call, "status", "--wait")
        for state in cycle(["measuring", "queued"]):  # it may begin late
            write_up(lane, "r1-l1-00000000", state)
            if waiting.done():
                break
            time.sleep(0.2)
        status, document = waiting.result()
    assert (status, document["changed"]) == (0, True)
    write_up(lane, "r1-l1-00000000", "measured")
    assert lane.call("status", "--wait", "60")[1]["changed"] is False  # nothing more is to come: it does not wait


def test_a_ticket_that_was_taken_in_is_a_duplicate_with_its_state(lane: Any) -> None:
    (lane.tree / "src/a.py").write_text("a = 2\n")
    ticket = lane.submit()["ticket"]
    lane.take()
    assert lane.waiting == []

    said = lane.submit()

    assert (said["ticket"], said["status"], said["duplicate"]) == (ticket, "queued", True)
    assert lane.waiting == []


def test_facts_that_are_gone_and_a_desk_that_is_gone_are_told(lane: Any) -> None:
    (lane.tree / "src/a.py").write_text("a = 2\n")
    desk.clear_desk(lane.folder)
    status, document = lane.call("submit")
    assert status == 1
    assert document["error"].startswith("No such file or directory: ")
    assert not (lane.folder / "desk").exists()
    (lane.tree / desk.FACTS).write_text("[]")
    assert lane.call("submit") == (1, {"error": "nothing can be handed over: no object in lane.json"})


def test_what_is_copied_is_what_the_hash_says_while_the_file_changes(lane: Any) -> None:
    path = lane.tree / "src/a.py"
    writing = subprocess.Popen(["sh", "-c", f'i=0; while :; do i=$((i+1)); echo "a = $i" > "{path}"; done'])
    try:
        tickets = [lane.submit()["ticket"] for _ in range(5)]
    finally:
        writing.kill()
        writing.wait()
    for ticket in set(tickets):
        for each in manifest(lane, ticket):
            data = (lane.outbox / ticket / "files" / each["sha256"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == each["sha256"]


def test_it_is_python_3_8_of_the_standard_library() -> None:
    source = Path(wrapper.__file__)
    tree = ast.parse(source.read_text(), feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported == {"functools", "hashlib", "json", "os", "re", "stat", "sys", "time"}
    newer = {"removeprefix", "removesuffix", "waitstatus_to_exitcode", "pidfd_open", "cache", "pairwise", "strict"}
    assert not newer & {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert stat.S_IMODE(source.stat().st_mode) & 0o111


NAMES = st.text("ab.!*/[]?\\ -é\n", min_size=1, max_size=8)


@settings(max_examples=300)
@given(globs=st.lists(NAMES, min_size=1, max_size=4), path=NAMES)
@example(globs=["src/**", "!src/x/**"], path="src/x/y")
@example(globs=["*", "!/a/"], path="a/b")
def test_its_globs_mean_what_intake_takes_them_for(globs: list[str], path: str) -> None:
    try:
        spec = matcher(globs)
    except (ValueError, re.error):  # no glob
        return
    rules = [(yes, re.compile(text)) for yes, text in json.loads(json.dumps(desk._expressions(globs)))]
    path = os.path.normpath(path).lstrip("/")
    assert wrapper.matches(rules, path) == matches(spec, path.encode())
