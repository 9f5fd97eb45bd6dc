"""Stuck: each rule and excuse by table; the normalizer by table and properties."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orch.workflows.model.exit import Exit, ExitKind
from orch.workflows.model.progress import IterationFacts
from orch.workflows.model.verdict import Excerpt, RungResult, Verdict
from orch.workflows.rules.stuck import failure_text, normalize, stuck

CRASHED: dict[str, Any] = {"all_crashed": True, "all_cut_short": True, "all_unevaluable": True}
TIMED_OUT: dict[str, Any] = {"all_timed_out": True, "all_cut_short": True}


def tree(letter: str) -> str:
    return f"{ord(letter):x}" * 20


def history(trees: str, *facts: dict[str, Any]) -> list[IterationFacts]:
    """One iteration per letter; the head's tree was `-` before the first. Facts are for the last iterations."""
    padded: list[dict[str, Any]] = [{}] * (len(trees) - len(facts)) + list(facts)
    return [
        IterationFacts(
            **({"ordinal": n, "tree": tree(now), "previous_tree": tree(before), "changed": now != before} | given)
        )
        for n, (before, now, given) in enumerate(zip("-" + trees, trees, padded, strict=False), 1)
    ]


def failing(*texts: str) -> list[dict[str, Any]]:
    return [{"failure_text": text} for text in texts]


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (history(""), None),
        (history("a"), None),
        (history("abcd"), None),
        # crashes
        (history("-", CRASHED), None),
        (history("--", CRASHED, CRASHED), "stuck_crashed"),
        (history("ab", CRASHED, CRASHED), "stuck_crashed"),
        (history("-a-", CRASHED, {}, CRASHED), None),
        # nothing could be measured
        (history("a", {"all_unevaluable": True}), None),
        (history("ab", {"all_unevaluable": True}, {"all_unevaluable": True}), "stuck_unevaluable"),
        (history("abc", {"all_unevaluable": True}, {}, {"all_unevaluable": True}), None),
        # time limits without a change
        (history("-", TIMED_OUT), None),
        (history("--", TIMED_OUT, TIMED_OUT), "stuck_timeout"),
        (history("ab", TIMED_OUT, TIMED_OUT), None),
        (history("--", TIMED_OUT | {"changed": True}, TIMED_OUT | {"changed": True}), None),
        (history("---", TIMED_OUT, CRASHED, TIMED_OUT), None),
        # no difference
        (history("-"), "stuck_no_diff"),
        (history("aa"), "stuck_no_diff"),
        (history("-", {"changed": True}), None),
        (history("-", {"all_cut_short": True}), None),
        (history("-", {"vetoed": True}), None),
        (history("aa", {"vetoed": True}, {"vetoed": True}), "stuck_no_diff"),
        (history("aa", {"vetoed": True}, {}), "stuck_no_diff"),
        (history("aaa", {"vetoed": True}, {"changed": True}, {"vetoed": True}), None),
        # oscillation
        (history("aba"), None),
        (history("abab"), "stuck_oscillation"),
        (history("xabab"), "stuck_oscillation"),
        (history("ababx"), None),
        (history("abcabc"), "stuck_oscillation"),
        (history("abcdabcd"), "stuck_oscillation"),
        (history("abcdeabcde"), None),
        (history("aaaa", *[{"changed": True}] * 4), None),
        # the same failure again and again
        (history("abc", *failing("1 failed in 1.2s", "1 failed in 1.3s", "1 failed in 9s")), "stuck_repeat"),
        (history("abc", *failing("3 failed", "2 failed", "1 failed")), None),
        (history("abcd", *failing("x", "x", "y", "x")), None),
        (history("abcd", *failing("x", "x", "", "x")), None),
        (history("abc", *failing("", "", "")), None),
        (history("ab", *failing("x", "x")), None),
    ],
)
def test_a_run_that_gets_nowhere_is_named(facts: list[IterationFacts], code: str | None) -> None:
    reason = stuck(facts)
    assert (reason.code.value if reason else None) == code


@pytest.mark.parametrize(
    ("facts", "data"),
    [
        (history("--", CRASHED, CRASHED), {"times": 2}),
        (history("ab-", {}, {}, {"changed": False}), None),
        (history("abb"), {"iteration": 3}),
        (history("abcabc"), {"period": 3}),
        (history("abc", *failing(*["at 12:00:01 pid 7"] * 3)), {"times": 3, "failure": "at <time> pid <pid>"}),
    ],
)
def test_the_reason_carries_what_was_seen(facts: list[IterationFacts], data: dict[str, Any] | None) -> None:
    reason = stuck(facts)
    assert (reason.data if reason else None) == data


def test_the_reviewers_new_wording_excuses_only_once() -> None:
    said = [{"vetoed": True, "failure_text": f"wording {word}"} for word in ("one", "two")]
    assert stuck(history("-", said[0])) is None
    assert stuck(history("--", *said)) is not None


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("at 2026-08-13T10:11:12.345Z and 2026-08-13 10:11:12,345", "at <time> and <time>"),
        ("2026-08-13T10:11:12+02:00 start", "<time> start"),
        ("[09:08:07] x 1:02:03.5", "[<time>] x <time>"),
        ("<Foo object at 0x7f3a2b>", "<Foo object at <address>>"),
        ("in /tmp/pytest-of-me/pytest-12/t0/a.py:7: E", "in <temporary>:7: E"),
        ("'/var/folders/x1/T/tmpabc' /private/tmp/q (/dev/shm/a)", "'<temporary>' <temporary> (<temporary>)"),
        ("C:\\Users\\me\\Temp\\x.txt is gone", "<temporary> is gone"),
        ("src/tmp/x stays, ./tmp/y stays", "src/tmp/x stays, ./tmp/y stays"),
        ("commit 1a2b3c4 of deadbeef, tree " + "0a" * 20, "commit <hex> of <hex>, tree <hex>"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id <hex>"),
        ("1a2b3c is short, 12345678 items is a count", "1a2b3c is short, 12345678 items is a count"),
        ("runs/r/i1-c12-b3/copy", "runs/r/<attempt>/copy"),
        ("pid 123, PID=45, ppid: 6 ==789== leak", "pid <pid>, PID <pid>, ppid <pid> ==<pid>== leak"),
        ("http://localhost:8123/x 127.0.0.1:80 [::1]:9", "http://localhost:<port>/x 127.0.0.1:<port> [::1]:<port>"),
        ("on port 5432, port=1", "on port <port>, port <port>"),
        ("a.py:12:34 line 5", "a.py:12:34 line 5"),
        ("3 failed, 2 passed in 1.23s", "3 failed, 2 passed in <duration>"),
        ("0.05s call (45ms) Time: 1.234 s", "<duration> call (<duration>) Time: <duration>"),
        ("took 1m 3s, 2 minutes, 4.5 seconds", "took <duration>, <duration>, <duration>"),
        ("random seed: 987 --seed=4 randomly_seed=12", "random seed <seed> --seed <seed> randomly_seed <seed>"),
        ("\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b(B", "red link"),
        ("  a\r\n\tb \n", "a b"),
        ("3 failed", "3 failed"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_varies_is_replaced_and_counts_are_kept(text: str, normal: str) -> None:
    assert normalize(text) == normal


def test_given_roots_are_replaced_longest_first_and_whole() -> None:
    text = "/srv/a/b.py /srv/ab.py /srv/a /srvshop"
    assert normalize(text, ["/srv/a/", "/srv", "", "/", "srv"]) == "<root>/b.py <root>/ab.py <root> /srvshop"


PIECES = st.sampled_from(
    [
        *("2026-01-02", "T", "10:11:12", ":", "0x1f", "/tmp/", "/work", "abc1234", "-", "pid ", "12", "port ", "seed="),
        *("localhost", "s", " ms", ".5", "m ", "==", "i1-c1-b1", "\x1b[0m", "\x1b", "[", "]", "<", ">", "_", "é", "\n"),
        *("c:\\", "\\temp\\", "123e4567-e89b-12d3-a456-426614174000"),
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=3), max_size=25).map("".join)


@given(TEXTS)
@example("2026-01-02/tmp/T")
@settings(deadline=None)
def test_normalizing_twice_is_normalizing_once(text: str) -> None:
    once = normalize(text, ["/work"])
    assert normalize(once, ["/work"]) == once


@given(st.integers(0, 10**9), st.integers(0, 10**9))
@settings(deadline=None)
def test_different_counts_stay_different(a: int, b: int) -> None:
    assert (normalize(f"{a} failed") == normalize(f"{b} failed")) == (a == b)


@given(st.floats(0, 9999), st.integers(1, 65535), st.integers(0, 2**48))
@settings(deadline=None)
def test_the_same_failure_looks_the_same_in_every_run(seconds: float, port: int, address: int) -> None:
    text = f"1 failed in {seconds:.2f}s at {address:#x} on 127.0.0.1:{port}"
    assert normalize(text) == "1 failed in <duration> at <address> on 127.0.0.1:<port>"


def rung(name: str, number: int, stdout: Excerpt) -> RungResult:
    exit_ = Exit(kind=ExitKind.FAILED, number=number) if number else Exit(kind=ExitKind.OK)
    return RungResult(name=name, exit=exit_, stdout=stdout)


def test_the_failure_of_a_tree_is_what_its_failing_rungs_said_without_cut_lines() -> None:
    cut = Excerpt(head="first\nsecond li", tail=" line\nlast", size=9999)
    rungs = (rung("lint", 0, Excerpt(head="fine")), rung("unit", 1, cut), rung("e2e", 2, Excerpt(head="boom")))
    verdict = Verdict(tree=tree("a"), contract_digest="0" * 64, host="h", rungs=rungs, rungs_total=3)
    assert normalize(failure_text(verdict)) == "unit: exit 1 first last e2e: exit 2 boom"
    assert failure_text(None) == ""
