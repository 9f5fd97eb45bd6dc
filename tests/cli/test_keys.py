"""`orch keys` and `orch codec-server`: made, listed, retired; refusals say what to do; no secret is printed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orch.activities.home import Home
from orch.cli.main import cli
from orch.cli.options import GoalOptions
from orch.cli.plan import resolve_goal
from orch.worker.keys import load_keys
from orch.worker.settings import load_settings


def orch(*args: str) -> Result:
    return CliRunner().invoke(cli, args, prog_name="orch")


def state() -> Home:
    return load_settings().home


def test_keys_are_made_listed_and_retired_without_showing_a_secret() -> None:
    none = orch("keys", "list")
    first, second = (json.loads(orch("keys", "new", "--json").stdout)["id"] for _ in range(2))
    listed = json.loads(orch("keys", "list", "--json").stdout)
    careful = orch("keys", "retire", first)
    done = orch("keys", "retire", first, "--yes")
    left = orch("keys", "list")

    assert "payloads are not encrypted" in none.output
    assert [(key["id"], key["encrypts"]) for key in listed] == [(first, False), (second, True)]
    assert (careful.exit_code, done.exit_code) == (2, 0)
    assert first not in left.output
    assert f"{second}  " in left.output
    ring = load_keys(state(), {})
    assert ring is not None
    text = (state().root / "keys").read_text().split()[1]
    assert text not in "".join(done.output for done in (none, careful, done, left)) + json.dumps(listed)


@pytest.mark.parametrize("command", [("list",), ("keys", "list"), ("schedule", "list"), ("codec-server",)])
def test_a_lost_key_file_is_refused_with_its_mend(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCH_KEYS", "/nowhere/keys")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")

    done = orch(*command)

    assert done.exit_code == 2, done.output
    assert "the key file /nowhere/keys is missing" in done.stderr
    assert "hint: put it back" in done.stderr


def test_with_a_key_a_run_has_no_words_in_its_id_and_a_label_for_its_tree(make_repo: Callable[..., Path]) -> None:
    repo = make_repo(state().root.parent / "quokka")
    options = GoalOptions(goal="tell quokkas apart", repo=repo, verify=("false",), agent=("cmd:true",))

    plain = resolve_goal(options, state=state().root).request
    orch("keys", "new")
    sealed = resolve_goal(options, state=state().root).request
    named = resolve_goal(options.model_copy(update={"id": "mine"}), state=state().root).request

    assert (plain.run[:12], plain.label) == ("goal-tell-qu", "")
    assert "quokka" not in sealed.run + sealed.label
    assert len(sealed.run) == len("goal-123456")
    assert len(sealed.label) == 16
    assert named.run == "mine"


def test_a_note_of_a_schedule_is_refused_where_all_else_is_encrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    orch("keys", "new")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")

    done = orch("schedule", "pause", "nightly", "--note", "secret plan")

    assert (done.exit_code, "would not be encrypted" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--host", "0.0.0.0", "--origin", "https://ui"), "without TLS and a token"),
        ((), "no Web UI is known here"),
        (("--origin", "https://ui", "--tls-key", "key.pem"), "--tls-key without --tls-cert"),
        (("--origin", "https://ui", "--tls-cert", "none.pem"), "none.pem cannot be used"),
    ],
)
def test_a_codec_server_that_cannot_be_is_refused(args: tuple[str, ...], said: str) -> None:
    none = orch("codec-server", *args)
    orch("keys", "new")
    done = orch("codec-server", *args)

    assert (none.exit_code, "nothing to decode: no keys" in none.stderr) == (2, True), none.output
    assert (done.exit_code, said in done.stderr) == (2, True), done.output


def test_the_codec_server_says_where_it_listens_and_stops_when_told() -> None:
    orch("keys", "new")
    argv = [sys.executable, "-m", "orch.cli.main", "codec-server", "--port", "0", "--origin", "https://ui"]
    with subprocess.Popen(argv, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        url = served.stdout.readline()
        served.send_signal(signal.SIGTERM)
        out, err = served.communicate(timeout=60)

    assert url.startswith("http://127.0.0.1:")
    assert (served.returncode, out, err) == (0, "", "decoding for https://ui\n")
