"""The environment of rungs."""

from __future__ import annotations

import pytest

from orch.activities.measuring.surroundings import FIXED, measuring_environment


@pytest.mark.parametrize("path", [".:/a:/b", "/a::/b", "bin:/a:./node_modules/.bin:/b:", "/a:/b"])
def test_path_of_rungs_holds_no_folder_of_the_measured_tree(path: str) -> None:
    assert measuring_environment({"PATH": path, "X": "1"}) == {"X": "1", **FIXED, "PATH": "/a:/b"}


def test_path_is_never_empty_as_that_means_the_current_folder() -> None:
    assert all(part.startswith("/") for part in measuring_environment({"PATH": "."})["PATH"].split(":"))
