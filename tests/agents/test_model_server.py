"""The model server by itself: what it answers in each dialect, what goes wrong on demand, and that nothing stays."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from .model.reply import Reply, Trouble, Write
from .model.scenarios import script
from .model.server import ModelServer
from .speakers import CHAT, CODE_MODE, MESSAGES, RESPONSES, Speaker

NONCE = '{"nonce": "0123abcd", "veto": true or false}'
every_dialect = pytest.mark.parametrize("speaker", [MESSAGES, RESPONSES, CHAT], ids=lambda speaker: speaker.route)
in_both_ways = pytest.mark.parametrize("stream", [True, False], ids=["stream", "document"])
USER = ("user", "Do it.")


@dataclass(frozen=True)
class Got:
    status: int
    headers: http.client.HTTPMessage
    text: str


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def post(url: str, speaker: Speaker, *turns: tuple[str, str], stream: bool = False, tools: bool = True) -> Got:
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=10)
    body = speaker.body(*(turns or (USER,)), stream=stream, tools=tools)
    connection.request("POST", f"/{path}/v1/{speaker.route}", body, {"Authorization": "Bearer key"})
    response = connection.getresponse()
    return Got(response.status, response.headers, response.read().decode())


@in_both_ways
@every_dialect
def test_an_edit_is_a_call_of_the_declared_tool_and_then_a_closing_text(
    server: ModelServer, speaker: Speaker, stream: bool
) -> None:
    url = server.url("edit", run="a")
    first = post(url, speaker, stream=stream)
    last = post(url, speaker, USER, ("model", "I will."), ("tool", "ok"), stream=stream)
    assert first.status == last.status == 200
    assert f'"{speaker.writes}"' in first.text
    assert "hello from the model" in first.text
    assert "Done: hello.txt is written." in last.text
    assert f'"{speaker.writes}"' not in last.text
    assert not stream or (speaker.closing in first.text and speaker.closing in last.text)


@pytest.mark.parametrize("speaker", [MESSAGES, CHAT])
def test_what_a_tool_requires_besides_is_filled_in(server: ModelServer, speaker: Speaker) -> None:
    assert "scripted" in post(server.url("edit", run="a"), speaker).text


def test_an_agent_without_those_tools_gets_code_that_does_it(server: ModelServer) -> None:
    (_, call) = json.loads(post(server.url("edit", run="a"), CODE_MODE).text)["output"]
    assert (call["namespace"], call["name"]) == ("functions", "exec")
    assert "printf %s 'hello from the model\\n' > hello.txt" in call["input"]


def test_an_agent_without_a_tool_for_it_is_told_so(server: ModelServer) -> None:
    look = {"type": "function", "function": {"name": "look"}}
    got = post(server.url("edit", run="a"), replace(CHAT, tool=look, shell=look))
    assert (got.status, "no tool for" in got.text) == (404, True)


@every_dialect
def test_a_command_is_a_call_of_the_declared_shell(server: ModelServer, speaker: Speaker) -> None:
    assert "echo 0 > seen.txt" in post(server.url("edit_again", run="a"), speaker).text


@every_dialect
def test_a_resumed_conversation_is_told_from_a_fresh_one(server: ModelServer, speaker: Speaker) -> None:
    before = (USER, ("model", "I will count."), ("tool", "ok"), ("model", "Done."))
    assert "echo 1 > seen.txt" in post(server.url("edit_again", run="a"), speaker, *before, USER).text


@every_dialect
def test_what_agents_put_into_the_users_messages_is_no_prompt(server: ModelServer, speaker: Speaker) -> None:
    put = ("user", "<system-reminder>Today is Monday.</system-reminder>")
    post(server.url("edit", run="a"), speaker, put, USER)
    (request,) = server.requests("a")
    assert request.asked.prompts == ("Do it.",)


@every_dialect
def test_a_request_without_tools_gets_a_title_and_costs_nothing(server: ModelServer, speaker: Speaker) -> None:
    got = post(server.url("loop", run="a"), speaker, tools=False)
    assert "A title" in got.text
    assert speaker.cost not in got.text
    assert [request.outcome for request in server.requests("a")] == ["title"]


@in_both_ways
@every_dialect
def test_every_answer_costs_the_same(server: ModelServer, speaker: Speaker, stream: bool) -> None:
    assert speaker.cost in post(server.url("edit", run="a"), speaker, stream=stream).text


@pytest.mark.parametrize(
    ("scenario", "speaker", "status", "words"),
    [
        ("rate_limited", MESSAGES, 429, "rate_limit_error"),
        ("rate_limited", RESPONSES, 429, "rate_limit_exceeded"),
        ("unauthorised", MESSAGES, 401, "invalid x-api-key"),
        ("unauthorised", CHAT, 401, "invalid_api_key"),
        ("quota", MESSAGES, 400, "credit balance is too low"),
        ("quota", CHAT, 429, "insufficient_quota"),
        ("context_full", MESSAGES, 400, "prompt is too long"),
        ("context_full", RESPONSES, 400, "context_length_exceeded"),
        ("overloaded", MESSAGES, 529, "overloaded_error"),
        ("overloaded", RESPONSES, 503, "server_is_overloaded"),
        ("server_error", MESSAGES, 500, "Internal server error"),
        ("server_error", CHAT, 500, "server_error"),
    ],
)
def test_trouble_has_the_status_and_the_words_of_the_provider(
    server: ModelServer, scenario: str, speaker: Speaker, status: int, words: str
) -> None:
    for _ in range(3):
        got = post(server.url(scenario, run="a"), speaker, stream=True)
        assert (got.status, words in got.text) == (status, True)


def test_a_fault_that_passes_is_counted_per_run(server: ModelServer) -> None:
    found = {
        run: [post(server.url("rate_limited_twice", run=run), CHAT) for _ in range(3)] for run in ("one", "another")
    }
    for answers in found.values():
        assert [got.status for got in answers] == [429, 429, 200]
        assert [got.headers["retry-after"] for got in answers] == ["1", "1", None]


@in_both_ways
@every_dialect
def test_a_cut_answer_lacks_its_end(server: ModelServer, speaker: Speaker, stream: bool) -> None:
    url = server.url("stream_cut_once", run="a")
    with pytest.raises(http.client.IncompleteRead):
        post(url, speaker, stream=stream)
    assert post(url, speaker, stream=stream).status == 200


@pytest.mark.parametrize(("scenario", "veto"), [("approve", False), ("veto", True)])
@every_dialect
def test_a_review_ends_with_the_nonce_of_its_prompt(
    server: ModelServer, speaker: Speaker, scenario: str, veto: bool
) -> None:
    text = post(server.url(scenario, run="a"), speaker, ("user", f"Print one line:\n\n{NONCE}")).text
    answer = {"nonce": "0123abcd", "veto": veto, "reason": "as scripted"}
    assert json.dumps(json.dumps(answer))[1:-1] in text


@pytest.mark.parametrize(
    ("speaker", "words"), [(MESSAGES, '"refusal"'), (RESPONSES, '"refusal"'), (CHAT, "content_filter")]
)
def test_a_refusal_is_a_reason_to_stop(server: ModelServer, speaker: Speaker, words: str) -> None:
    assert words in post(server.url("refusal", run="a"), speaker).text


def test_a_test_adds_its_own_scenario(server: ModelServer) -> None:
    server.add("own", script(Reply("Mine.", (Write("mine.txt", "my words\n"),))))
    assert "my words" in post(server.url("own", run="a"), CHAT).text


def test_an_unknown_scenario_is_refused(server: ModelServer) -> None:
    with pytest.raises(LookupError, match="no scenario 'edt' among edit"):
        server.url("edt", run="a")
    assert post(server.url("edit", run="a").replace("edit", "edt"), CHAT).status == 404


def test_what_claude_asks_besides_is_answered(server: ModelServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    for method, path in (("HEAD", ""), ("GET", "/v1/models"), ("POST", "/v1/messages/count_tokens?beta=true")):
        connection.request(method, f"/s/edit@a{path}", b"{}" if method == "POST" else None)
        response = connection.getresponse()
        response.read()
        assert response.status == 200
        connection.close()
    assert server.requests("a") == []


def test_runs_are_kept_apart_and_waited_for(server: ModelServer) -> None:
    asking = threading.Thread(target=post, args=(server.url("edit", run="a"), CHAT))
    asking.start()
    server.wait_for("a", requests=1)
    asking.join()
    assert [request.key for request in server.requests("a")] == ["key"]
    assert server.requests("b") == []
    with pytest.raises(TimeoutError, match="run 'b' asked 0 times"):
        server.wait_for("b", timeout=0.01)


def test_a_thinking_model_answers_the_second_time_at_once(server: ModelServer) -> None:
    url = server.url("thinking", run="a")
    host, _, path = url.removeprefix("http://").partition("/")
    gone = http.client.HTTPConnection(host)
    gone.request("POST", f"/{path}/v1/messages", MESSAGES.body(USER, stream=True))
    server.wait_for("a")
    gone.close()
    assert post(url, MESSAGES).status == 200
    assert [request.outcome for request in server.requests("a")] == [Trouble.HANG, "answered"]


def test_nothing_of_the_server_is_left_although_clients_still_wait() -> None:
    threads = threading.active_count()
    with ModelServer() as server:
        silent = socket.create_connection(("127.0.0.1", server.port))
        url = server.url("thinking", run="a").removeprefix("http://")
        waiting = http.client.HTTPConnection(url.partition("/")[0])
        waiting.request("POST", f"/{url.partition('/')[2]}/v1/messages", MESSAGES.body(USER, stream=True))
        server.wait_for("a")
        begun = time.monotonic()
    assert time.monotonic() - begun < 4
    assert threading.active_count() == threads
    assert silent.recv(1) == b""
    with pytest.raises(http.client.RemoteDisconnected):
        waiting.getresponse()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))
    silent.close()
