"""The key file: made private, rotated, retired, refused when it is not what it should be, and never shown."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from orch.activities.home import Home
from orch.worker.keys import KeyRing, add_key, key_file, load_keys, retire_key
from orch.worker.state import open_state
from orch.workflows.errors import RefusedError

LINE = f"k1 {base64.b64encode(b'x' * 32).decode()} 2024-01-01T00:00:00+00:00\n"


@pytest.fixture
def state(tmp_path: Path) -> Home:
    home = Home(tmp_path / "state")
    open_state(home)
    return home


def ring_of(home: Home, **environ: str) -> KeyRing:
    ring = load_keys(home, environ)
    assert ring is not None
    return ring


def test_without_keys_nothing_is_encrypted(state: Home) -> None:
    assert load_keys(state, {}) is None


def test_the_newest_key_encrypts_and_older_ones_stay(state: Home) -> None:
    first, second = add_key(state, {}), add_key(state, {})

    ring = ring_of(state)

    assert ring.keys == (first, second)
    assert ring.newest == second
    assert ring.find(first.id) == first
    assert ring.find("k-unknown") is None
    assert stat.S_IMODE(key_file(state, {}).stat().st_mode) == 0o600


def test_keys_are_where_orch_keys_points(state: Home, tmp_path: Path) -> None:
    elsewhere = {"ORCH_KEYS": str(tmp_path / "elsewhere")}
    key = add_key(state, elsewhere)

    assert ring_of(state, **elsewhere).keys == (key,)
    assert load_keys(state, {}) is None


def test_a_key_added_to_a_file_whose_last_line_has_no_end_is_a_line_of_its_own(state: Home) -> None:
    first = add_key(state, {})
    path = key_file(state, {})
    path.write_bytes(path.read_bytes().rstrip(b"\n"))

    second = add_key(state, {})

    assert ring_of(state).keys == (first, second)


def test_a_retired_key_is_forgotten_and_the_newest_cannot_be_retired(state: Home) -> None:
    first, second = add_key(state, {}), add_key(state, {})

    retire_key(state, first.id, {})

    assert ring_of(state).keys == (second,)
    assert stat.S_IMODE(key_file(state, {}).stat().st_mode) == 0o600
    with pytest.raises(RefusedError, match="the key that encrypts"):
        retire_key(state, second.id, {})
    with pytest.raises(RefusedError, match="no key k-unknown"):
        retire_key(state, "k-unknown", {})


def test_a_lost_key_file_is_refused_and_nothing_goes_on_in_plain_text(state: Home) -> None:
    add_key(state, {})
    key_file(state, {}).unlink()

    with pytest.raises(RefusedError, match="is missing") as refused:
        load_keys(state, {})

    assert "put it back" in refused.value.hint


def test_a_file_named_by_orch_keys_that_is_not_there_is_refused(state: Home, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="is missing"):
        load_keys(state, {"ORCH_KEYS": str(tmp_path / "none")})


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_key_file_that_others_may_use_is_refused(state: Home, mode: int) -> None:
    add_key(state, {})
    key_file(state, {}).chmod(mode)

    with pytest.raises(RefusedError, match="open to other users") as refused:
        load_keys(state, {})

    assert refused.value.hint.startswith("chmod 600 ")


def test_a_key_file_of_another_user_is_refused(state: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    add_key(state, {})
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    with pytest.raises(RefusedError, match="belongs to another user"):
        load_keys(state, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no key"),
        ("\n\n", "holds no key"),
        ("k1\n", "keys:1: not a key"),
        (LINE + "k2 c2hvcnQ= 2024\n", "keys:2: not a key"),
        (f"k1 {'!' * 44} 2024\n", "keys:1: not a key"),
        (LINE.replace("k1", "k/1"), "keys:1: not a key"),
        (LINE + LINE, "names a key twice"),
        ("kö1\n", "not ASCII"),
    ],
)
def test_a_file_that_holds_something_else_is_refused_without_showing_it(state: Home, text: str, message: str) -> None:
    path = key_file(state, {})
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)

    with pytest.raises(RefusedError, match=message) as refused:
        load_keys(state, {})

    assert LINE.split()[1] not in refused.value.message + refused.value.hint


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("/nowhere")])
def test_what_is_no_file_is_refused(state: Home, make: Callable[[Path], None]) -> None:
    make(key_file(state, {}))

    with pytest.raises(RefusedError, match="key file"):
        load_keys(state, {})


def test_no_secret_is_in_a_repr(state: Home) -> None:
    key = add_key(state, {})
    shown = f"{key!r} {ring_of(state)!r} {key} {ring_of(state).fingerprint}"

    assert repr(key.secret) not in shown
    assert base64.b64encode(key.secret).decode() not in shown
    assert key.secret.hex() not in shown


def test_a_label_says_nothing_without_the_key_and_a_fingerprint_tells_rings_apart(state: Home) -> None:
    add_key(state, {})
    one = ring_of(state)
    add_key(state, {})
    two = ring_of(state)

    assert one.label("/srv/project") == one.label("/srv/project")
    assert len({one.label("/srv/project"), one.label("/srv/other"), two.label("/srv/project")}) == 3
    assert one.fingerprint != two.fingerprint
