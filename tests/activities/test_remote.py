"""A repository that is given as a URL: its store, its commit, what is refused of it; with real bare repositories."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from orch.activities import remote as remotes
from orch.activities.artifacts import kept_checkout
from orch.activities.exchange.bundles import bring, publish_baseline
from orch.activities.home import Home
from orch.activities.promotion import promote
from orch.activities.remote import Remote, fetch_remote, is_remote, remote, remote_baseline, tree_size
from orch.activities.runs import Runs
from orch.activities.store import Store
from orch.activities.workspaces.clone import CloneProvider
from orch.workflows.errors import RefusedError
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.goal import PrepareRun, RunPrepared, SandboxMode
from orch.workflows.model.placement import Exchange
from orch.workflows.model.promotion import Promote, PromoteTarget
from orch.workflows.model.reason import PromotionReason, RunReason


@pytest.fixture
def work(make_repo: Callable[..., Path], tmp_path: Path) -> Path:
    """Whence somebody pushes to `bare.git`, beside it."""
    repo = make_repo(tmp_path / "work", {"a.txt": "one\n", "dir/b.txt": "two\n"})
    (repo / "noise").write_bytes(random.Random(1).randbytes(200_000))
    return repo


@pytest.fixture
def bare(work: Path, kit: ModuleType, tmp_path: Path) -> Path:
    kit.commit_all(work)
    kit.git(work, "tag", "-a", "-m", "a tag", "v1")
    kit.git(tmp_path, "clone", "-q", "--bare", str(work), "bare.git")
    return tmp_path / "bare.git"


def push(kit: ModuleType, work: Path, bare: Path, text: str, to: str = "main") -> str:
    (work / "a.txt").write_text(text)
    commit: str = kit.commit_all(work)
    kit.git(work, "push", "-q", str(bare), f"HEAD:refs/heads/{to}")
    return commit


def size(store: Store) -> int:
    return sum(path.stat().st_size for path in (store.git_dir / "objects").rglob("*") if path.is_file())


def test_store_is_a_bare_clone_of_its_own(home: Home, bare: Path, kit: ModuleType, fingerprint: Any) -> None:
    before = fingerprint(bare)

    store, commit = fetch_remote(home, remote(bare.as_uri()))

    assert commit == kit.git(bare, "rev-parse", "main")
    assert store.key.startswith("bare-")
    assert store.git.text("remote") == ""
    assert store.git.text("for-each-ref", "--format=%(refname)") == f"refs/user/{commit}"
    assert store.git.ok("fsck", "--full", "--strict")
    assert store.git.text("rev-list", "--count", commit) == "2"
    assert tree_size(store, commit) == len("one\ntwo\n") + 200_000
    assert fingerprint(bare) == before


def test_only_what_is_new_is_fetched_later(home: Home, work: Path, bare: Path, kit: ModuleType) -> None:
    source = remote(bare.as_uri())
    store, _ = fetch_remote(home, source)
    before = size(store)
    pushed = push(kit, work, bare, "two\n")

    _, commit = fetch_remote(home, source)

    assert commit == pushed
    assert before > 200_000
    assert size(store) - before < 3_000


def test_what_a_run_made_and_the_remote_has_by_now_is_in_every_workspace(
    home: Home, work: Path, bare: Path, kit: ModuleType
) -> None:
    source = remote(bare.as_uri())
    store, first = fetch_remote(home, source)
    (work / "b.txt").write_text("found by a run\n")
    made = kit.commit_all(work)
    store.git.run("fetch", "-q", "--no-write-fetch-head", str(work), f"{made}:refs/orch/run/head")

    later = push(kit, work, bare, "and more\n")
    assert fetch_remote(home, source)[1] == later

    store.apart.rename(store.apart.with_name("hidden"))
    store.apart.mkdir()
    assert store.sharing.text("rev-list", "--count", "--objects", later)
    assert store.sharing.text("show", f"{later}:b.txt") == "found by a run"
    assert store.sharing.text("rev-list", later).split()[:3] == [later, made, first]


def test_branch_tag_and_full_id_name_their_commit(home: Home, work: Path, bare: Path, kit: ModuleType) -> None:
    first = kit.git(work, "rev-parse", "HEAD")
    side = push(kit, work, bare, "side\n", "side")
    kit.git(bare, "update-ref", "refs/heads/a/side", first)  # ends like the name, and is another

    found = {ref: fetch_remote(home, remote(bare.as_uri(), ref))[1] for ref in ("refs/tags/v1", "v1", "side", side)}

    assert found == {"refs/tags/v1": first, "v1": first, "side": side, side: side}


def test_commit_that_was_fetched_needs_no_remote(home: Home, bare: Path, kit: ModuleType) -> None:
    _, commit = fetch_remote(home, remote(bare.as_uri()))
    bare.rename(bare.with_name("gone"))

    assert fetch_remote(home, remote(bare.as_uri(), commit))[1] == commit


def test_repository_of_the_other_object_format_is_taken(home: Home, kit: ModuleType, tmp_path: Path) -> None:
    repo = kit.make_repo(tmp_path / "modern", None, "--object-format=sha256")

    store, commit = fetch_remote(home, remote(repo.as_uri()))

    assert commit == kit.git(repo, "rev-parse", "HEAD")
    assert store.git.text("rev-parse", "--show-object-format") == "sha256"


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("nope", "has no branch or tag nope"),
        ("1" * 40, "does not give commit 1111"),
        ("refs/tags/of-a-tree", "is no commit"),
    ],
)
def test_name_that_is_not_there_is_refused_by_the_url(
    home: Home, bare: Path, kit: ModuleType, ref: str, said: str
) -> None:
    kit.git(bare, "tag", "of-a-tree", "main^{tree}")

    with pytest.raises(RefusedError, match=said) as refused:
        fetch_remote(home, remote(bare.as_uri(), ref))

    assert bare.as_uri() in refused.value.message
    assert refused.value.hint


def test_missing_and_empty_repositories_are_refused(home: Home, tmp_path: Path, kit: ModuleType) -> None:
    kit.git(tmp_path, "init", "-q", "--bare", "empty.git")

    with pytest.raises(RefusedError, match=r"gone\.git cannot be read: .* does not appear to be a git repository"):
        fetch_remote(home, remote((tmp_path / "gone.git").as_uri()))
    with pytest.raises(RefusedError, match=r"empty\.git has no commit at its HEAD"):
        fetch_remote(home, remote((tmp_path / "empty.git").as_uri()))
    assert list(home.root.iterdir()) == []


def test_host_that_never_answers_is_given_up(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remotes, "ANSWER_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"git://127.0.0.1:{silent.getsockname()[1]}/x.git"
        began = time.monotonic()

        with pytest.raises(RefusedError, match=f"{url} cannot be read: no answer within 1 s"):
            fetch_remote(home, remote(url))

    assert time.monotonic() - began < 10


def test_ssh_never_asks_at_a_terminal(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(f'#!/bin/sh\necho "$SSH_ASKPASS_REQUIRE $*" >> {tmp_path}/asked\nexit 255\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:/usr/bin:/bin")

    with pytest.raises(RefusedError, match=r"git@host:x/y\.git cannot be read"):
        fetch_remote(home, remote("git@host:x/y.git"))

    assert (tmp_path / "asked").read_text().startswith("never -o BatchMode=yes -o ConnectTimeout=20")


def test_secret_in_a_url_that_git_rewrites_is_not_repeated(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = '[url "http://user:word@127.0.0.1:1/"]\n\tinsteadOf = https://forge.example/\n'
    (tmp_path / ".gitconfig").write_text(config)
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(RefusedError, match=r"https://forge\.example/x\.git cannot be read") as refused:
        fetch_remote(home, remote("https://forge.example/x.git"))

    assert "127.0.0.1" in refused.value.message
    assert "word" not in refused.value.message


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://user:word@host/x.git", "holds a user or a password"),
        ("https://word@host/x.git", "holds a user or a password"),
        ("ssh://git:word@host/x.git", "holds a user or a password"),
        ("https://host/x.git?token=word", "holds more than its place"),
        ("ext://sh -c word", "ext:// is no way to a repository"),
        ("https://[word/x.git", "is no URL"),
        ("https://host/a b", "holds a space"),
    ],
)
def test_url_that_cannot_be_kept_is_refused_without_asking_anybody(url: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said) as refused:
        remote(url)

    assert refused.value.hint
    assert "word" not in refused.value.message.replace("password", "") or "host" not in url


@pytest.mark.parametrize("url", ["ssh://git@host/x.git", "git@host:x/y.git", "host:x/y.git", "file:///x", "git://h/x"])
def test_url_is_told_from_a_folder(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert remote(url) == Remote(url)
    assert is_remote(url)
    assert not any(map(is_remote, (".", "..", "/a/b:c", "./host:x", "a/b", "")))
    if "//" not in url:
        (tmp_path / url).mkdir(parents=True)
        assert not is_remote(url)


@pytest.mark.parametrize("ref", ["--upload-pack=x", "a b", "a..b", "*", "x^{tree}"])
def test_what_is_no_name_is_refused(ref: str) -> None:
    with pytest.raises(RefusedError, match="is no name of a branch"):
        remote("https://host/x.git", ref)


def prepare(url: str, run: str = "r1", ref: str = "", target: str = "none") -> PrepareRun:
    return PrepareRun(
        run=run,
        repo=url,
        contract=Contract(goal="g", rungs=(Rung(name="a", run="true"),)),
        agents=("cmd:true",),
        sandbox=SandboxMode.OFF,
        promote=PromoteTarget.parse(target),
        ref=ref,
    )


def prepared(home: Home, request: PrepareRun) -> RunPrepared:
    return Runs(home)._prepare(request)


def test_run_is_prepared_on_the_commit_and_stays_there(home: Home, work: Path, bare: Path, kit: ModuleType) -> None:
    first = kit.git(bare, "rev-parse", "main")

    found = prepared(home, prepare(bare.as_uri()))
    push(kit, work, bare, "two\n")
    again, _ = remote_baseline(home, remote(bare.as_uri()), "r1")
    later = prepared(home, prepare(bare.as_uri(), "r2"))

    assert found.baseline is not None
    assert later.baseline is not None
    assert (found.refused, found.baseline.commit, found.baseline.dirty) == (None, first, False)
    assert again.resolve("refs/orch/r1/baseline") == first
    assert later.baseline.commit != first
    assert later.store == found.store
    assert kept_checkout(home, "r1") is None


@pytest.mark.parametrize("target", ["worktree", "branch:result"])
def test_nothing_is_promoted_where_no_tree_is(home: Home, bare: Path, target: str) -> None:
    refused = prepared(home, prepare(bare.as_uri(), target=target)).refused
    store, commit = fetch_remote(home, remote(bare.as_uri()))
    moved = promote(
        home,
        Promote(
            run="r", repo=bare.as_uri(), store=store.key, old=commit, new=commit, target=PromoteTarget.parse(target)
        ),
    )

    assert refused is not None
    assert refused.code is RunReason.PREFLIGHT_FAILED
    assert "has no working tree here" in str(refused.data["detail"])
    assert moved.refused is not None
    assert moved.refused.code is PromotionReason.UNSUPPORTED


def test_remote_that_went_away_ends_the_run_before_anything_is_paid_for(home: Home, tmp_path: Path) -> None:
    refused = prepared(home, prepare((tmp_path / "gone.git").as_uri())).refused

    assert refused is not None
    assert refused.code is RunReason.PREFLIGHT_FAILED
    assert "gone.git cannot be read" in str(refused.data["detail"])


def test_checkout_has_the_bytes_that_the_users_own_settings_say(
    home: Home, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[core]\n\tautocrlf = true\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    shared = tmp_path / "shared"
    shared.mkdir()
    store, commit = fetch_remote(home, remote(bare.as_uri()))

    here = CloneProvider().open(store, tmp_path / "here", commit)
    exchange = Exchange(url=shared.as_uri(), key=f"{store.key}.here")
    publish_baseline(store, exchange, commit)
    there = Store(Home(tmp_path / "there"), exchange.key)
    bring(there, exchange, commit, pin="refs/orch/r1/from")

    assert (here / "a.txt").read_bytes() == b"one\r\n"
    assert "autocrlf" in (store.git_dir / "content.config").read_text()
    assert there.tree_of(commit) == store.tree_of(commit)
