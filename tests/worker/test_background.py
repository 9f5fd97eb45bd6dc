from __future__ import annotations

from pathlib import Path

import pytest

from orch.worker import background


def test_a_log_that_grew_is_cut_while_its_writer_appends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LOG_BYTES", 10)
    log = tmp_path / "server.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"twelve bytes")
        background.rotate(log)
        writer.write(b"more")
        background.rotate(log)
    assert log.read_bytes() == b"more"
    assert (tmp_path / "server.log.1").read_bytes() == b"twelve bytes"


def test_the_tail_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert background.tail(log) == ""
    log.write_text("\n".join(str(line) for line in range(99999)))
    assert background.tail(log, lines=2) == "99997\n99998"
