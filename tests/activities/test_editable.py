"""Editable installs that point into the user's tree are found, others are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orch.activities.editable import editable_installs


@pytest.mark.parametrize(
    ("inside", "editable", "warned"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_only_an_editable_install_from_inside_the_tree_is_warned_of(
    tmp_path: Path, inside: bool, editable: bool, warned: bool
) -> None:
    top, venv = tmp_path / "my project", tmp_path / "venv"
    record = venv / "lib/python3.11/site-packages/slug-1.0.dist-info/direct_url.json"
    record.parent.mkdir(parents=True)
    (venv / "bin").mkdir()
    (venv / "bin/python3").write_text("#!/bin/sh\n")
    (venv / "bin/python3").chmod(0o755)
    source = (top if inside else tmp_path / "other") / "lib"
    record.write_text(json.dumps({"url": source.as_uri(), "dir_info": {"editable": editable}}))

    warnings = editable_installs(str(venv / "bin"), top)

    assert bool(warnings) is warned
    assert all("slug is installed editable" in warning for warning in warnings)


def test_broken_records_and_hosts_without_python_warn_of_nothing(tmp_path: Path) -> None:
    record = tmp_path / "lib/python3.11/site-packages/x-1.dist-info/direct_url.json"
    record.parent.mkdir(parents=True)
    record.write_text("[]")
    (tmp_path / "bin").mkdir()
    assert editable_installs(str(tmp_path / "bin"), tmp_path) == ()

    (tmp_path / "bin/python3").write_text("")
    (tmp_path / "bin/python3").chmod(0o755)
    assert editable_installs(str(tmp_path / "bin"), tmp_path) == ()
