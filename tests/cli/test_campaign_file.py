"""A campaign's file: what it means, and every refusal with its line and the mend."""

from __future__ import annotations

import re
from typing import Any

import pytest

from orch.cli.campaign_file import check_campaign
from orch.workflows.model.round.plan import Direction, EntryStatus

HEAD = f"campaign: parser\nincumbent: {'a' * 40}\nmetric: {{name: latency, direction: lower, unit: ms}}\n"
ENTRIES = "entries: [{id: x, plane: io, hypothesis: h, headroom: 5%}]\n"
COMMANDS = "commands: {benchmark: make bench}\n"
GOOD = HEAD + COMMANDS + ENTRIES


def test_campaign_file_means_what_it_says(optimized: Any) -> None:
    campaign, document = check_campaign(optimized.campaign)

    assert document.refusals == []
    assert campaign is not None
    assert (campaign.id, campaign.incumbent, campaign.metric.direction) == (
        "parser",
        optimized.incumbent,
        Direction.LOWER,
    )
    assert (campaign.gates.pairs, campaign.gates.rollback, campaign.gates.noise) == (8, 0.01, 0.05)
    assert [(file.path, file.sha256) for file in campaign.validator] == [("bench/check.py", None)]
    assert campaign.commands.setup is not None
    assert campaign.commands.validate_ is not None
    assert (campaign.commands.setup.timeout_s, campaign.commands.validate_.run) == (60.0, "python3 bench/check.py")
    assert [(entry.id, entry.plane, entry.headroom) for entry in campaign.entries] == [
        ("tokens", "algorithm", 0.2),
        ("format", "memory", 0.15),
        ("spare", "io", 0.1),
    ]
    assert {entry.status for entry in campaign.entries} == {EntryStatus.PLANNED}


REFUSED: dict[str, tuple[str, list[tuple[int, str, str]]]] = {
    "no mapping": ("- a\n", [(1, "a campaign is a mapping", "write `campaign:`")]),
    "nothing": (
        "campaign: parser\n",
        [
            (1, "`commands` is missing", "{benchmark: LINE}"),
            (1, "`entries` is missing", "a list of"),
            (1, "`incumbent` is missing", "a branch, a tag"),
            (1, "`metric` is missing", "direction: lower"),
        ],
    ),
    "unknown key": (GOOD + "comands: {}\n", [(6, "unknown key `comands`", "did you mean `commands`?")]),
    "key twice": (GOOD + COMMANDS, [(6, "`commands` stands twice, first on line 4", "keep one of them")]),
    "empty key": (GOOD + "gates:\n", [(6, "`gates` is empty", "or leave the key out")]),
    "option for a commit": (GOOD.replace("a" * 40, "--all"), [(2, "`incumbent` names no commit: '--all'", "a branch")]),
    "range for a commit": (GOOD.replace("a" * 40, "a b"), [(2, "`incumbent` names no commit: 'a b'", "a branch")]),
    "number for a commit": (GOOD.replace("a" * 40, "1" * 40), [(2, "`incumbent` is no text", "in quotes")]),
    "name with capitals": (GOOD.replace("parser", "Parser"), [(1, "`campaign` is no name: 'Parser'", "lower-case")]),
    "metric as text": (
        GOOD.replace("{name: latency, direction: lower, unit: ms}", "latency"),
        [(3, "`metric` is no mapping", "write `name:`, `direction:`, `unit:`")],
    ),
    "unknown direction": (
        GOOD.replace("direction: lower", "direction: loer"),
        [(3, "`metric.direction` is 'loer'", "did you mean `lower`?")],
    ),
    "metric without a unit": (GOOD.replace(", unit: ms", ""), [(3, "`metric.unit` is missing", "beside each value")]),
    "metric of two words": (
        GOOD.replace("name: latency", "name: my latency"),
        [(3, "`metric.name` is no name of a metric: 'my latency'", "letters, digits")],
    ),
    "commands without a benchmark": (
        HEAD + "commands:\n  setup: x\n" + ENTRIES,
        [(4, "`commands.benchmark` is missing", "a shell line")],
    ),
    "unknown command": (
        HEAD + "commands:\n  benchmark: x\n  benchmrak: y\n" + ENTRIES,
        [(6, "`commands`: unknown key `benchmrak`", "did you mean `benchmark`?")],
    ),
    "number for a line": (
        HEAD + "commands: {benchmark: 5}\n" + ENTRIES,
        [(4, "`commands.benchmark` is no mapping", "write `run:`, `timeout:`")],
    ),
    "time limit that is none": (
        HEAD + "commands:\n  benchmark:\n    run: x\n    timeout: soon\n" + ENTRIES,
        [(7, "`commands.benchmark.timeout` 'soon' is not a duration", "write 90s")],
    ),
    "time limit that is too long": (
        HEAD + "commands: {benchmark: {run: x, timeout: 2d}}\n" + ENTRIES,
        [(4, "`commands.benchmark.timeout` should be less than or equal to 86400", "a duration")],
    ),
    "gate out of range": (
        GOOD + "gates:\n  pairs: 2\n  sigmas: 1\n  noise: 150%\n",
        [
            (7, "`gates.pairs` should be greater than or equal to 4", "an even number"),
            (8, "`gates.sigmas` should be greater than or equal to 2", "from 2 to 10"),
            (9, "`gates.noise` should be less than 1", "a share such as 5%"),
        ],
    ),
    "odd pairs": (GOOD + "gates: {pairs: 9}\n", [(6, "`gates`: pairs must be even", "")]),
    "too many runs": (
        GOOD + "gates: {pairs: 256, repetitions: 4}\n",
        [(6, "`gates`: pairs times repetitions must be at most 512", "")],
    ),
    "gates of a wrong type": (
        GOOD + "gates:\n  pairs: '8'\n  repetitions: true\n  sigmas: .nan\n  rollback: little\n",
        [
            (7, "`gates.pairs` is no whole number", "without quotes"),
            (8, "`gates.repetitions` is no whole number", "without quotes"),
            (9, "`gates.sigmas` is no number", "finite"),
            (10, "`gates.rollback` is no share", "5% or 0.05"),
        ],
    ),
    "unknown gate": (GOOD + "gates: {piars: 8}\n", [(6, "`gates`: unknown key `piars`", "did you mean `pairs`?")]),
    "validator as text": (GOOD + "gates: {validator: x}\n", [(6, "`gates.validator` is no list", "an item a line")]),
    "validator with a bad hash": (
        GOOD
        + "gates:\n  validator:\n    - {path: x, sha256: abc}\n    - {sha256: x}\n    - ../y\n"
        + "    - {path: x, sha: y}\n",
        [
            (8, "item 1 of `gates.validator.sha256` is no SHA-256: 'abc'", "sha256sum"),
            (9, "item 2 of `gates.validator.path` is missing", "a tracked file"),
            (9, "item 2 of `gates.validator.sha256` is no SHA-256", "sha256sum"),
            (10, "item 3 of `gates.validator` leaves the repository", "from its top"),
            (11, "item 4 of `gates.validator`: unknown key `sha`", "did you mean `sha256`?"),
        ],
    ),
    "protected as text": (GOOD + "protected: tests\n", [(6, "`protected` is no list", "an item a line")]),
    "number in protected": (GOOD + "protected: [a, 5]\n", [(6, "item 2 of `protected` is no text", "in quotes")]),
    "no entries": (HEAD + COMMANDS + "entries: []\n", [(5, "`entries` is an empty list", "write an item")]),
    "entry as text": (HEAD + COMMANDS + "entries: [x]\n", [(5, "entry 1 is no mapping", "write `id:`, `plane:`")]),
    "faults of entries": (
        HEAD
        + COMMANDS
        + "entries:\n"
        + "  - {id: X, plane: io, hypothesis: h, headroom: 5%}\n"
        + "  - {id: x, hypothesis: h, headroom: 5%}\n"
        + "  - {id: y, plane: 'algorithm, memory', hypothesis: h, headroom: 5%}\n"
        + "  - {id: z, plane: [a, b, c], hypothesis: h, headroom: 5%}\n"
        + "  - {id: v, plane: io, hypothesis: ' ', headroom: 20}\n"
        + "  - {id: w, plane: io, hypothesis: h, headroom: 5%, status: keep}\n"
        + "  - {id: w, plane: Disk I/O, hypothesis: h, headroom: 0}\n",
        [
            (6, "entry 1: `id` is no name: 'X'", "lower-case"),
            (7, "entry 2: `plane` is missing", "the one plane"),
            (8, "entry `y` names 2 planes, not exactly one", "split it"),
            (9, "entry `z` names 3 planes, not exactly one", "split it"),
            (10, "entry 5: `headroom` should be less than 1", "12%"),
            (10, "entry 5: `hypothesis` is empty", "write something"),
            (11, "entry 6: `status` is 'keep'", "did you mean `kept`?"),
            (12, "entry 7: `headroom` should be greater than 0", "12%"),
            (12, "entry `w` names 2 planes, not exactly one", "split it"),
            (12, "entry `w` stands twice, first as number 6", "name of its own"),
        ],
    ),
}


@pytest.mark.parametrize(("text", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals_name_their_line_and_the_mend(text: str, expected: list[tuple[int, str, str]], tmp_path: Any) -> None:
    (tmp_path / "c.yaml").write_text(text)

    campaign, document = check_campaign(tmp_path / "c.yaml")

    assert campaign is None
    found = sorted(set(document.refusals))
    assert [refusal.line for refusal in found] == [line for line, _, _ in expected], document.said(document.refusals)
    for refusal, (_, words, mend) in zip(found, expected, strict=True):
        assert words in refusal.message
        assert mend in refusal.mend


@pytest.mark.parametrize("share", ["12%", "12.0 %", "0.12"])
def test_share_is_a_fraction_or_percent(share: str, tmp_path: Any) -> None:
    (tmp_path / "c.yaml").write_text(re.sub("headroom: 5%", f"headroom: {share}", GOOD))

    campaign, _ = check_campaign(tmp_path / "c.yaml")

    assert campaign is not None
    assert campaign.entries[0].headroom == 0.12
