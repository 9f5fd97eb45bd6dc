"""The artifact store in a bucket: what a folder does, on a real S3 server in this process (moto)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import fsspec
import pytest
from moto.server import ThreadedMotoServer

from orch.activities import artifacts
from orch.activities.collecting import exchanges
from orch.activities.collecting.plan import Policy, collect
from orch.activities.exchange.bundles import bring, publish, publish_baseline
from orch.activities.exchange.claiming import unfit
from orch.activities.exchange.depot import Depot
from orch.activities.exchange.outputs import fetch_outputs, publish_outputs
from orch.activities.home import Home
from orch.workflows.errors import HostFaultError, RefusedError
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.claim import ClaimHost
from orch.workflows.model.contract import Contract, Rung
from orch.workflows.model.goal import RunPrepared
from orch.workflows.model.placement import Exchange

KEY = AttemptKey(run="r1", iteration=1, candidate=1, binding=1)


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    """The server, as fsspec sees it."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "any")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "any")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        files = fsspec.filesystem("s3")
        yield files
        files.clear_instance_cache()
    server.stop()


@pytest.fixture
def bucket(s3: Any) -> Iterator[str]:
    s3.mkdir("trees")
    yield "s3://trees/of/orch"
    s3.rm("trees", recursive=True)


@pytest.fixture
def in_bucket(scene: Any, bucket: str) -> Any:
    """The two hosts, with the bucket between them."""
    return replace(scene, exchange=Exchange(url=bucket, key=scene.exchange.key))


def names(s3: Any) -> list[str]:
    s3.invalidate_cache()
    found: list[str] = s3.find("trees")
    return found


def test_probe_leaves_nothing(s3: Any, bucket: str) -> None:
    Depot(bucket).probe()

    assert names(s3) == []


def test_commits_reach_the_other_host_thin_and_come_back(in_bucket: Any, s3: Any) -> None:
    here, there, exchange = in_bucket.here, in_bucket.there, in_bucket.exchange
    start = in_bucket.baseline("r1")
    publish_baseline(here, exchange, start)

    bring(there, exchange, start, pin="refs/orch/r1/from-here")
    blob = there.git.text("hash-object", "-w", "--stdin", stdin=b"made there\n")
    tree = there.git.text("mktree", stdin=f"100644 blob {blob}\ta.txt\n".encode())
    made = there.git.text("commit-tree", tree, "-p", start, stdin=b"made\n")
    parcel = publish(there, exchange, made, base=start)
    bring(here, exchange, made, pin="refs/orch/r1/head")

    assert here.tree_of(made) == tree
    assert (parcel.base, parcel.size < 1_000) == (start, True)
    assert set(Depot(exchange.url).files(exchange.key)) == {name.removeprefix("trees/of/orch/") for name in names(s3)}
    assert len(names(s3)) == 4


def test_outputs_are_read_elsewhere(in_bucket: Any, home: Home) -> None:
    folder = in_bucket.here.home.attempt(KEY)
    folder.mkdir(parents=True)
    (folder / "prompt.md").write_text("raise it\n")
    publish_outputs(in_bucket.here.home, in_bucket.exchange, KEY)

    assert fetch_outputs(home, in_bucket.exchange, KEY)
    assert (home.attempt(KEY) / "prompt.md").read_text() == "raise it\n"


def test_bucket_that_is_not_there_is_refused_and_no_empty_store(s3: Any) -> None:
    lost = Exchange(url="s3://lost/of/orch", key="k.h")

    with pytest.raises(RefusedError, match=r"s3://lost/of/orch cannot be written: .*bucket"):
        Depot(lost.url).probe()
    with pytest.raises(HostFaultError, match=r"s3://lost/of/orch cannot be read: lost: no such bucket"):
        Depot(lost.url).read("k/commits/x.json")
    assert "no such bucket" in unfit(ClaimHost(attempt=KEY, agent="cmd:true", exchange=lost, sandbox=False))


def test_bucket_that_takes_no_writes_is_refused_and_still_read(s3: Any, bucket: str) -> None:
    Depot(bucket).write("a/b", b"text")
    deny = {"Effect": "Deny", "Principal": "*", "Action": ["s3:PutObject"], "Resource": "arn:aws:s3:::trees/*"}
    s3.call_s3("put_bucket_policy", Bucket="trees", Policy=json.dumps({"Version": "2012-10-17", "Statement": [deny]}))

    with pytest.raises(RefusedError, match="cannot be written"):
        Depot(bucket).probe()

    assert Depot(bucket).read("a/b") == b"text"
    assert Depot(bucket).read("a/c") is None


def test_forgotten_runs_leave_the_bucket(in_bucket: Any, s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "GRACE_S", -5.0)  # what was written just now is old enough
    here, exchange = in_bucket.here, in_bucket.exchange
    first = in_bucket.baseline("r1")
    publish_baseline(here, exchange, first)
    here.home.attempt(KEY).mkdir(parents=True)
    publish_outputs(here.home, exchange, KEY)
    prepared = RunPrepared(store=here.key, contract=Contract(goal="g", rungs=(Rung(name="a", run="true"),)))
    artifacts.write_whole(here.home.run("r1") / artifacts.PREPARED, prepared.model_dump_json())
    artifacts.mark_closed(here.home, "r1")

    collect(here.home, frozenset())
    kept = names(s3)
    found = collect(here.home, frozenset(), Policy(older_s=-5.0))

    assert len(kept) == 3
    assert names(s3) == []
    assert [item.flaw for item in found if item.kind == "exchange"] == ["", ""]
    assert not here.path.exists()
