"""A manifest is read in its one form, and refused in every other."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orch.activities.lanes.manifest import Entry, Flaw, Manifest, canonical, read_manifest
from orch.workflows.model.round.ticket import Cause

SHA = "a" * 64


def written(files: Any, **more: Any) -> bytes:
    document = {"files": files, "lane": "l1", "round": "r1", **more}
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def entry(path: Any = "a", **facts: Any) -> dict[str, Any]:
    return {"path": path, "mode": "100644", "sha256": SHA, **facts}


def test_canonical_manifest_is_read() -> None:
    data = written([{"deleted": True, "path": "a"}, entry("b/\udce9"), entry("c", mode="120000")])

    found = read_manifest(data, max_files=3)

    assert found == Manifest(
        "r1",
        "l1",
        (Entry(b"a", "000000", ""), Entry(b"b/\xe9", "100644", SHA), Entry(b"c", "120000", SHA)),
        hashlib.sha256(data).hexdigest(),
    )
    assert isinstance(found, Manifest)
    assert canonical("r1", "l1", reversed(found.entries)) == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"[" * 100_000,
        b'{"files":' * 10_000,
        b"\xff",
        b'{"files":[],"lane":"l1"}',
        b'{"files":{},"lane":"l1","round":"r1"}',
        b'{"files":"abc","lane":"l1","round":"r1"}',
        b'{"files":7,"lane":"l1","round":"r1"}',
        b'{"files":[],"lane":"l1","round":"r1"} ',
        b'{"files":[],"files":[],"lane":"l1","round":"r1"}',
        b'{"files": [],"lane":"l1","round":"r1"}',
        b'{"lane":"l1","files":[],"round":"r1"}',
        b'{"files":[],"lane":"l1","round":' + b"9" * 5000 + b"}",
        written([], more=1),
        written([1]),
        written([None]),
        written([[]]),
        written([{}]),
        written([entry(1)]),
        written([entry(["a"])]),
        written([entry("\ud800")]),
        written([entry("\udcc3\udca9")]),
        written([entry(mode=100644)]),
        written([entry(mode="644")]),
        written([entry(mode="000000")]),
        written([entry(mode="0100644")]),
        written([entry(mode="\u066100644")]),
        written([entry(sha256="A" * 64)]),
        written([entry(sha256=SHA + "\n")]),
        written([entry(sha256="../" + SHA[3:])]),
        written([entry(deleted=True)]),
        written([{"path": "a", "deleted": False}]),
        written([{"path": "a", "deleted": 1}]),
        written([entry(size=3)]),
        written([entry("b"), entry("a")]),
        written([entry("a"), entry("a")]),
        written([entry("a"), entry("a", sha256="b" * 64)]),
        written([{"path": "a", "deleted": True}, entry("a")]),
        written([entry(mode="040000")]),
        written([entry(mode="100664")]),
        written([entry(mode="100600")]),
        written([entry("é")]).replace(b"\\u00e9", "é".encode()),
        written([entry("é")]).replace(b"\\u00e9", b"\\u00E9"),
    ],
)
def test_anything_else_is_malformed(data: bytes) -> None:
    found = read_manifest(data, max_files=100)
    assert isinstance(found, Flaw)
    assert found.cause is Cause.MALFORMED
    assert found.detail.isprintable()


def test_submodule_and_too_many_files_have_their_own_causes() -> None:
    submodule = read_manifest(written([entry(mode="160000")]), max_files=100)
    many = read_manifest(written([entry(str(number)) for number in range(101)]), max_files=100)
    assert isinstance(submodule, Flaw)
    assert submodule.cause is Cause.SUBMODULE
    assert isinstance(many, Flaw)
    assert many.cause is Cause.OVERSIZE


@given(st.dictionaries(st.binary(min_size=1).filter(lambda name: b"\0" not in name), st.booleans()))
def test_whatever_bytes_a_path_has_it_is_read_back(paths: dict[bytes, bool]) -> None:
    entries = [Entry(path, "000000", "") if gone else Entry(path, "100755", SHA) for path, gone in paths.items()]
    found = read_manifest(canonical("r1", "l1", entries), max_files=len(entries))
    assert isinstance(found, Manifest)
    assert list(found.entries) == sorted(entries)
