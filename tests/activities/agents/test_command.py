"""The command agent: how it is started, and what its usage report may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from orch.activities.agents.adapter import Launch
from orch.activities.agents.command import CommandAgent
from orch.activities.agents.reading import Reading
from orch.activities.agents.registry import resolve
from orch.activities.agents.spec import Spec
from orch.workflows.errors import RefusedError
from orch.workflows.model.usage import Usage


def _launch(folder: Path, line: str = "true") -> Launch:
    return Launch(Spec("cmd", line), home=folder, private=folder, tree=folder, prompt=folder / "prompt.md")


def _read(folder: Path, report: bytes | None) -> Reading:
    if report is not None:
        (folder / "usage.json").write_bytes(report)
    reading = Reading()
    reading.take(CommandAgent().leftovers(_launch(folder), ""))
    return reading


def test_full_report_is_read(tmp_path: Path) -> None:
    report = b'{"tokens_in": 5, "tokens_out": 2, "tokens_cached": 1, "usd": 0.25, "session": "s1", "message": "done"}'

    reading = _read(tmp_path, report)

    assert reading.usage == Usage(tokens_in=5, tokens_out=2, tokens_cached=1, usd=0.25)
    assert (reading.session, reading.answer) == ("s1", "done")


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"not json",
        b"[1]",
        b"\xff\xfe",
        b'{"tokens_in": -1}',
        b'{"usd": NaN}',
        b'{"usd": Infinity}',
        b'{"tokens_in": "many"}',
        b'{"tokens_in": ' + b" " * 100_000 + b"1}",
    ],
)
def test_report_that_cannot_be_believed_is_unknown_never_zero(tmp_path: Path, report: bytes) -> None:
    assert _read(tmp_path, report).usage == Usage()


def test_missing_report_is_unknown(tmp_path: Path) -> None:
    reading = _read(tmp_path, None)

    assert (reading.usage, reading.session, reading.answer) == (Usage(), "", "")


def test_shell_line_stays_one_argument(tmp_path: Path) -> None:
    line = """echo "$(date)" `id` 'x' -p"""

    assert CommandAgent().call(_launch(tmp_path, line)).argv == ("sh", "-c", line)


@pytest.mark.parametrize(
    ("spec", "said", "hint"),
    [
        ("cdm:true", "unknown agent 'cdm'", "cmd"),
        ("cluade:x", "unknown agent 'cluade'", "claude"),
        ("codex:m,max-trns=3", "unknown setting 'max-trns'", "max-turns"),
        ("codex:m,max-turns=0", "no positive number", "max-turns"),
        ("codex:m,max-turns", "no setting", "KEY=VALUE"),
        ("codex:m,idle=3,idle=4", "set twice", "once"),
        ("nothing-like-it", "unknown agent", "cmd:"),
        ("cmd:  ", "no command", "cmd:"),
    ],
)
def test_unusable_spec_is_refused_with_the_mend(spec: str, said: str, hint: str) -> None:
    with pytest.raises(RefusedError, match=said) as refused:
        resolve(spec)

    assert hint in refused.value.hint
