"""An artifact store that is read-only, gone or no store at all is refused before anything is paid for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orch.activities.exchange.depot import Depot, check_url
from orch.workflows.errors import HostFaultError, RefusedError


def test_probe_leaves_nothing(tmp_path: Path) -> None:
    Depot(tmp_path.as_uri()).probe()

    assert list(tmp_path.iterdir()) == []


def test_folder_that_is_not_mounted_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="cannot be written"):
        Depot((tmp_path / "gone").as_uri()).probe()

    assert not (tmp_path / "gone").exists()


def test_store_that_takes_no_writes_is_refused() -> None:
    with pytest.raises(RefusedError, match="cannot be written"):
        Depot("file:///proc/sys").probe()  # not even root writes there


def test_store_that_goes_away_later_is_a_fault_of_the_host(tmp_path: Path) -> None:
    depot = Depot((tmp_path / "shared").as_uri())
    (tmp_path / "shared").mkdir()
    depot.write("a/b", b"text")
    assert depot.read("a/b") == b"text"
    assert depot.read("a/c") is None

    (tmp_path / "shared").rename(tmp_path / "elsewhere")

    with pytest.raises(HostFaultError, match="cannot be read"):
        depot.read("a/b")
    with pytest.raises(HostFaultError, match="cannot be written"):
        depot.write("a/d", b"text")


def test_interrupted_upload_is_not_seen(tmp_path: Path) -> None:
    depot = Depot(tmp_path.as_uri())

    with pytest.raises(HostFaultError):
        depot.put("a/b", tmp_path / "missing")

    assert depot.read("a/b") is None
    assert not list((tmp_path / "a").iterdir())


@pytest.mark.parametrize("url", ["shared/folder", "/shared", "file://host/shared", "file:relative", ""])
def test_what_is_no_url_of_a_store_is_refused(url: str) -> None:
    with pytest.raises(RefusedError, match="no artifact store"):
        check_url(url)


@pytest.mark.parametrize("url", ["s3://key:secret@bucket/x", "s3://bucket/x?secret=secret"])
def test_url_with_a_secret_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(RefusedError) as refused:
        check_url(url)

    assert "secret" not in re.sub(r"credentials", "", f"{refused.value} {refused.value.hint}")


def test_unknown_kind_of_store_is_refused() -> None:
    with pytest.raises(RefusedError, match="cannot be used"):
        Depot("floppy://a/b").probe()
