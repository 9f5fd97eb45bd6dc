"""A round plan's file and its campaign's: the frozen plan they make, and every refusal with its line and the mend."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orch.activities.campaigns import record_round
from orch.activities.home import Home
from orch.activities.repository import inspect
from orch.activities.store import Store
from orch.cli.campaign_file import CAMPAIGN_KEYS, COMMANDS_KEYS, ENTRY_KEYS, GATE_KEYS, METRIC_KEYS
from orch.cli.checked import CheckedRound
from orch.cli.round_file import DEVICE_KEYS, LANE_KEYS, ROUND_KEYS
from orch.cli.round_plan import check_round
from orch.workflows.model.round.campaign import RecordRound, Revision
from orch.workflows.model.round.plan import EntryStatus, RoundPlan
from orch.workflows.model.round.trial import Noise, Scale

CHECK = hashlib.sha256(b"check").hexdigest()


def look(optimized: Any, home: Home) -> CheckedRound:
    return check_round(optimized.round, inspect(optimized.repo), home)


def compiled(optimized: Any, home: Home) -> RoundPlan:
    checked = look(optimized, home)
    assert checked.plan is not None, checked.error().message
    return checked.plan


def refusals(checked: CheckedRound) -> list[str]:
    """`FILE:LINE: what (mend)` of both files."""
    here = str(Path(checked.document.name).parent)
    return [line.removeprefix(f"{here}/") for line in checked.error().message.splitlines()]


def test_both_files_compile_to_one_frozen_plan(optimized: Any, home: Home) -> None:
    plan = compiled(optimized, home)

    assert (plan.id, plan.campaign, plan.incumbent) == ("r01", "parser", optimized.incumbent)
    assert (plan.deadline_s, plan.aa_every, plan.composition, plan.max_bytes) == (7200.0, 6, "stepwise", 64 << 20)
    assert [(file.path, file.sha256) for file in plan.gates.validator] == [("bench/check.py", CHECK)]
    tok, fmt = plan.lanes
    assert (tok.entry.id, tok.entry.plane, tok.entry.headroom, tok.globs) == (
        "tokens",
        "algorithm",
        0.2,
        ("src/tok*.py",),
    )
    assert (tok.budget.attempts, tok.budget.wall_s, tok.budget.tokens, tok.budget.usd) == (2, 1800.0, 200_000, 3.0)
    assert (fmt.budget.attempts, fmt.submissions, fmt.condition, fmt.deadline_s) == (1, 6, "", None)
    assert not home.root.exists()


def test_digest_is_of_what_the_files_mean(optimized: Any, home: Home) -> None:
    first = compiled(optimized, home).digest
    optimized.edit(("deadline: 2h", "deadline: 120m  # the same"))
    same = compiled(optimized, home).digest
    optimized.edit(("deadline: 2h", "deadline: 3h"))
    other = compiled(optimized, home).digest
    optimized.edit(("headroom: 10%", "headroom: 11%"), campaign=True)
    campaign = compiled(optimized, home).digest

    assert first == same
    assert len({first, other, campaign}) == 3


def test_every_key_reaches_the_plan(optimized: Any, home: Home) -> None:
    optimized.edit(
        ("deadline: 2h", "composition: strict\naa_every: 3\nmax_size: 2m\nmax_files: 9\nprotected: ['NEWS']"),
        ("  - name: quiet", "  - {name: quiet, load: 0.5}"),
        (
            "    agent: cmd:true\n    budget",
            "    agent: cmd:true\n    submissions: 2\n    deadline: 1h\n    condition: x\n    budget",
        ),
        (
            "round: r01",
            "round: r01\nincumbent: INCUMBENT\ngates: {pairs: 12, repetitions: 4, sigmas: 3, rollback: 2%, noise: 4%}",
        ),
    )

    plan = compiled(optimized, home)

    assert (plan.composition, plan.aa_every, plan.max_bytes, plan.max_files) == ("strict", 3, 2 << 20, 9)
    assert "NEWS" in plan.protected
    assert plan.devices[0].load == 0.5
    assert (plan.lanes[0].submissions, plan.lanes[0].deadline_s, plan.lanes[0].condition) == (2, 3600.0, "x")
    gates = plan.gates
    assert (gates.pairs, gates.repetitions, gates.sigmas, gates.rollback, gates.noise) == (12, 4, 3.0, 0.02, 0.04)


def test_what_grades_is_protected_and_told(optimized: Any, home: Home) -> None:
    checked = look(optimized, home)

    assert checked.plan is not None
    assert {"docs/**", "/bench/run.sh", "/bench/input.json"} <= set(checked.plan.protected)
    assert checked.plan.protected[-1] == "/bench/check.py"
    assert "protected, because they decide what is right: /bench/check.py" in checked.facts
    assert (
        "protected, because the commands name them: /bench/run.sh, /bench/check.py, /bench/input.json" in checked.facts
    )


def test_what_the_commands_name_may_be_opened_but_not_the_validator(optimized: Any, home: Home) -> None:
    optimized.edit(('["docs/**"]', '["!/bench/input.json", "!/bench/check.py"]'), campaign=True)
    optimized.round.write_text(optimized.round.read_text().replace('"src/fmt.py"', '"src/fmt.py", "bench/input.json"'))
    assert compiled(optimized, home)

    optimized.round.write_text(optimized.round.read_text().replace('"bench/input.json"', '"bench/check.py"'))
    (line,) = refusals(look(optimized, home))
    assert line.startswith("r01.yaml:13: the globs of lane `fmt` reach 1 protected path: bench/check.py (narrow them")


REFUSED: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "unknown key": ([("deadline: 2h", "deadlin: 2h")], ["15: unknown key `deadlin` (did you mean `deadline`?)"]),
    "unknown key of a lane": (
        [("    agent: cmd:true\n    budget", "    agnet: cmd:true\n    budget")],
        ["9: lane 1: unknown key `agnet` (did you mean `agent`?)"],
    ),
    "unknown key of a budget": (
        [("attempts: 2", "atempts: 2")],
        ["10: lane 1: `budget`: unknown key `atempts` (did you mean `attempts`?)"],
    ),
    "no campaign": ([("campaign: campaign.yaml\n", "")], ["1: `campaign` is missing"]),
    "campaign that is not there": (
        [("campaign.yaml", "none.yaml")],
        ["2: the campaign's file cannot be read: "],
    ),
    "no lanes": ([("lanes:", "lines:")], ["5: unknown key `lines` (did you mean `lanes`?)"]),
    "no devices": (
        [("devices:\n  - name: quiet\n", "")],
        ["1: `devices` is missing"],
    ),
    "types": (
        [("attempts: 2, wall: 30m, tokens: 200000, usd: 3", "attempts: two, wall: soon, tokens: 1.5, usd: true")],
        [
            "10: lane 1: `budget.attempts` is no whole number",
            "10: lane 1: `budget.tokens` is no whole number",
            "10: lane 1: `budget.usd` is no number",
            "10: lane 1: `budget.wall` 'soon' is not a duration (write 90s, 10m, 1h30m or 2d)",
        ],
    ),
    "ranges": (
        [("attempts: 2", "attempts: 21"), ("deadline: 2h", "aa_every: 0\nmax_files: 0")],
        [
            "10: lane 1: `budget.attempts` should be less than or equal to 20",
            "15: `aa_every` should be greater than or equal to 1",
            "16: `max_files` should be greater than or equal to 1",
        ],
    ),
    "unknown composition": ([("deadline: 2h", "composition: greedy")], ["15: `composition` is 'greedy'"]),
    "size": ([("deadline: 2h", "max_size: big")], ["15: `max_size` 'big' is no amount of data"]),
    "lane without all": (
        [("  - id: fmt\n    entry: format\n", "  - id: fmt\n")],
        ["11: lane 2: `entry` is missing"],
    ),
    "lane as text": (
        [("deadline: 2h", "  - fast")],
        ["15: lane 3 is no mapping"],
    ),
    "no globs": ([('["src/fmt.py"]', "[]")], ["13: lane 2: `globs` is an empty list"]),
    "glob as text": ([('["src/fmt.py"]', "src/fmt.py")], ["13: lane 2: `globs` is no list"]),
    "glob that is a number": ([('["src/fmt.py"]', "[5]")], ["13: lane 2: item 1 of `globs` is no text"]),
    "unknown agent": (
        [("agent: cmd:true\n    budget", "agent: cladue:sonnet\n    budget")],
        ["9: lane 1: `agent` cannot be used: unknown agent 'cladue'"],
    ),
    "device without a name": ([("name: quiet", "load: 1")], ["4: device set 1: `name` is missing"]),
    "processors": (
        [("name: quiet", "{name: quiet, cpus: 3-1}")],
        ["4: device set 1: `cpus` is no set of numbers"],
    ),
    "processors twice": (
        [("name: quiet", "{name: quiet, cpus: [1, 1]}")],
        ["4: device set 1: `cpus` is no set of numbers"],
    ),
    "processor that is not there": ([("name: quiet", "{name: quiet, cpus: [99999]}")], ["4: device set `quiet`: "]),
    "GPU that is not there": ([("name: quiet", "{name: quiet, cuda: [99]}")], ["4: device set `quiet`: "]),
    "load": ([("name: quiet", "{name: quiet, load: 0}")], ["4: device set 1: `load` should be greater than 0"]),
    "looser gates": (
        [("deadline: 2h", "gates:\n  pairs: 6\n  rollback: 0.5%\n  noise: 6%")],
        [
            "16: `pairs` 6 is below the campaign's 8",
            "17: `rollback` 0.005 is below the campaign's 0.01",
            "18: `noise` 0.06 is above the campaign's 0.05",
        ],
    ),
    "gates out of range": (
        [("deadline: 2h", "gates: {pairs: 9}")],
        ["15: `gates`: pairs must be even, half of them in each order (write an even number)"],
    ),
    "another hash of the validator": (
        [("deadline: 2h", f"gates: {{validator: [{{path: bench/check.py, sha256: {'0a' * 32}}}]}}")],
        [f"15: `bench/check.py` of the incumbent INCUMBENT has the SHA-256 {CHECK}, not the one given"],
    ),
    "validator that is not there": (
        [("deadline: 2h", "gates: {validator: [bench]}")],
        ["15: `bench` is no file of the incumbent INCUMBENT"],
    ),
    "protected that is no glob": (
        [("deadline: 2h", "protected: ['a[', 'b']")],
        ["15: `a[` is no glob"],
    ),
    "incumbent that moved": (
        [("round: r01", f"round: r01\nincumbent: {'1' * 39}a")],
        [f"2: the incumbent moved: the campaign stands at INCUMBENT, the plan says {'1' * 39}a"],
    ),
    "everything of R1 at once": (
        [
            ('["src/tok*.py"]', '["src/**"]'),
            ('["src/fmt.py"]', '["src/fmt.py", "docs/**", "../x", "/etc/passwd", ".git/config"]'),
            ("id: fmt\n    entry: format", "id: tok\n    entry: tokens"),
            ("  - name: quiet", "  - name: quiet\n  - name: quiet"),
        ],
        [
            "5: device set `quiet` stands twice, first as number 1",
            "12: lane `tok` stands twice, first as number 1",
            "13: lanes `tok` and `tok` pursue one entry, `tokens`",
            "14: glob `../x` leaves the tree",
            "14: glob `.git/config` names .git, which no lane may write",
            "14: glob `/etc/passwd` is an absolute path",
            "14: lanes `tok` and `tok` both match 1 path: src/fmt.py",
            "14: the globs of lane `tok` reach 1 protected path: docs/a.md",
        ],
    ),
}


@pytest.mark.parametrize(("edits", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals_name_file_line_and_mend(
    edits: list[tuple[str, str]], expected: list[str], optimized: Any, home: Home
) -> None:
    optimized.edit(*edits)

    checked = look(optimized, home)

    found = [line.replace(optimized.incumbent, "INCUMBENT") for line in refusals(checked)]
    found = [line.replace(optimized.incumbent[:12], "INCUMBENT") for line in found]
    assert checked.plan is None
    assert [line.startswith(f"r01.yaml:{start}") for line, start in zip(found, expected, strict=True)] == [
        True for _ in expected
    ], found
    assert all(line.endswith(")") for line in found)


def test_more_lanes_than_a_round_has_are_refused_in_plain_words(optimized: Any, home: Home) -> None:
    data = yaml.safe_load(optimized.round.read_text())
    data["lanes"] += [{**data["lanes"][1], "id": f"fmt-{n}"} for n in range(15)]
    optimized.round.write_text(yaml.safe_dump(data, sort_keys=False))

    (line,) = [line for line in refusals(look(optimized, home)) if "`lanes`" in line]

    assert line.partition(" ")[2].startswith("`lanes` has 17 items, of 16 at most (write a list")


def test_second_fault_in_a_list_stands_at_its_own_line(optimized: Any, home: Home) -> None:
    optimized.edit(("deadline: 2h", "gates:\n  validator:\n    - ../out\n    - gone.py"))

    found = refusals(look(optimized, home))

    assert [line[: len(start)] for line, start in zip(found, LISTED, strict=True)] == LISTED


LISTED = ["r01.yaml:17: item 1 of `gates.validator` leaves", "r01.yaml:18: `gone.py` is no file"]


def test_protected_auto_in_a_round_is_what_holds_without_it(optimized: Any, home: Home) -> None:
    before = compiled(optimized, home).protected
    optimized.edit(("deadline: 2h", "protected: [auto, NEWS]"))

    assert set(compiled(optimized, home).protected) == {*before, "NEWS"}


CAMPAIGNS: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    "commit of nobody": (
        [("INCUMBENT", "0a" * 20)],
        [f"campaign.yaml:2: `{'0a' * 20}` names no commit of the repository (name a branch"],
    ),
    "branch of nobody": ([("INCUMBENT", "mian")], ["campaign.yaml:2: `mian` names no commit of the repository"]),
    "two planes": (
        [("plane: memory", "plane: memory, io")],
        ["campaign.yaml:13: entry `format` names 2 planes, not exactly one"],
    ),
    "no plane": ([("    plane: memory\n", "")], ["campaign.yaml:12: entry 2: `plane` is missing"]),
    "unknown entry": (
        [("id: tokens", "id: token")],
        ["r01.yaml:7: the campaign has no entry `tokens` (did you mean `token`?)"],
    ),
    "kept entry": (
        [("headroom: 20%}", "headroom: 20%, status: kept}")],
        ["r01.yaml:7: entry `tokens` is not planned: it is kept (planned are: format, spare)"],
    ),
    "rejected entry": (
        [("headroom: 20%}", "headroom: 20%, status: rejected}")],
        ["r01.yaml:7: entry `tokens` was rejected, and the lane states no changed condition"],
    ),
    "validator that is not there": (
        [("bench/check.py]", "bench/chekc.py]")],
        ["campaign.yaml:4: `bench/chekc.py` is no file of the incumbent"],
    ),
    "protected that is no glob": ([('"docs/**"', '"docs/**", "!"')], ["campaign.yaml:5: `!` is no glob"]),
}


@pytest.mark.parametrize(("edits", "expected"), CAMPAIGNS.values(), ids=CAMPAIGNS.keys())
def test_faults_of_the_campaign_are_told_in_its_file(
    edits: list[tuple[str, str]], expected: list[str], optimized: Any, home: Home
) -> None:
    optimized.edit(*edits, campaign=True)

    found = look(optimized, home).error().message.splitlines()

    assert [start in line for line, start in zip(found, expected, strict=True)] == [True for _ in expected], found


def test_warnings_stand_at_their_lines_and_do_not_refuse(optimized: Any, home: Home) -> None:
    optimized.edit(('["src/fmt.py"]', '["src/fmt.py", "src/*_new.py"]'))
    text = optimized.campaign.read_text()
    optimized.campaign.write_text(text.replace("stage: format", "stage: tokenize").replace("0.15", "0.02"))

    checked = look(optimized, home)

    assert checked.plan is not None
    told = [line.rpartition("/r01.yaml:")[2] for line in checked.warnings if "/r01.yaml:" in line]
    assert [line[: len(start)] for line, start in zip(told, WARNED, strict=True)] == WARNED


WARNED = [
    "3: no processor is left for agents, builds and validators",
    "12: entry `format`: its headroom of 2.0% is below 2 sigma of the largest allowed noise, 3.5% with 8 pairs",
    "12: lanes `tok` and `fmt` attack the same bottleneck, tokenize",
    "13: glob `src/*_new.py` matches nothing of the incumbent",
    "13: no clean split: lanes `tok` and `fmt` would both match a new file such as src/tok_new.py",
]


def recorded(optimized: Any, home: Home, status: str, new: str | None = None, **facts: Any) -> RoundPlan:
    """A round r00 that has run."""
    optimized.edit(("round: r01", "round: r00"))
    plan = compiled(optimized, home)
    row = Revision(
        campaign="parser",
        round="r00",
        run="round-parser-r00",
        entry="tokens",
        lane="tok",
        status=EntryStatus(status),
        why="no ticket passed",
        **facts,
    )
    store = Store.of(home, inspect(optimized.repo))
    noise = Noise(scale=Scale.LOG, sigma=0.3, pairs=8, base=1.0)
    record_round(
        home,
        RecordRound(run=row.run, store=store.key, plan=plan, revisions=(row,), incumbent=new, noise=noise),
        {},
    )
    optimized.write()
    return plan


def test_negative_record_refuses_a_repeat_without_a_changed_condition(optimized: Any, home: Home) -> None:
    recorded(optimized, home, "rejected", condition="a new cache")

    bare = refusals(look(optimized, home))
    optimized.edit(("entry: tokens", "entry: tokens\n    condition: A new  cache"))
    same = refusals(look(optimized, home))
    optimized.edit(("entry: tokens", "entry: tokens\n    condition: the lexer was rewritten"))

    assert bare[0].startswith(
        "r01.yaml:7: entry `tokens` was rejected since round r00 (no ticket passed), and the lane"
    )
    assert same[0].startswith("r01.yaml:8: entry `tokens` was rejected since round r00 (no ticket passed) under this")
    assert compiled(optimized, home).lanes[0].condition == "the lexer was rewritten"


def test_entry_that_is_planned_again_is_pursued_under_the_recorded_condition(optimized: Any, home: Home) -> None:
    recorded(optimized, home, "planned", condition="the incumbent is abc since round r00")

    assert compiled(optimized, home).lanes[0].condition == "the incumbent is abc since round r00"


def test_round_starts_from_where_the_campaign_stands(optimized: Any, home: Home, kit: ModuleType) -> None:
    (optimized.repo / "src/tok.py").write_text("faster\n")
    kit.git(optimized.repo, "commit", "-qm", "faster", "src/tok.py")
    new = kit.git(optimized.repo, "rev-parse", "HEAD")
    recorded(optimized, home, "planned", new)

    checked = look(optimized, home)
    optimized.edit(("round: r01", "round: r01\nincumbent: INCUMBENT"))
    stale = refusals(look(optimized, home))

    assert checked.plan is not None
    assert checked.plan.incumbent == new
    assert f"incumbent: {new[:12]}, by round-parser-r00" in checked.facts
    assert stale[0].startswith(f"r01.yaml:2: the incumbent moved: the campaign stands at {new}, the plan says")


@pytest.mark.parametrize("name", ["main", "HEAD", "v1", "SHORT"])
def test_campaign_may_name_its_first_incumbent(name: str, optimized: Any, home: Home, kit: ModuleType) -> None:
    kit.git(optimized.repo, "tag", "-a", "-m", "x", "v1")
    optimized.edit(("INCUMBENT", name.replace("SHORT", optimized.incumbent[:10])), campaign=True)

    checked = look(optimized, home)

    assert checked.plan is not None
    assert checked.plan.incumbent == optimized.incumbent
    assert any(fact.startswith(f"incumbent: {optimized.incumbent[:12]}, by ") for fact in checked.facts)


def test_commit_where_the_campaign_stands_must_be_there(optimized: Any, home: Home) -> None:
    recorded(optimized, home, "planned", optimized.incumbent)
    state = home.campaign("parser") / "state.json"
    state.write_text(state.read_text().replace(optimized.incumbent, "0a" * 20))

    (line,) = refusals(look(optimized, home))

    assert line.startswith(f"campaign.yaml:2: {'0a' * 20}, where the campaign stands, is no commit of")


def test_last_known_noise_judges_the_headroom(optimized: Any, home: Home) -> None:
    recorded(optimized, home, "planned")

    assert any(
        "below 2 sigma of the measured noise, 19.1% with 8 pairs" in line for line in look(optimized, home).warnings
    )


def test_round_that_is_on_record_is_refused_with_its_digest(optimized: Any, home: Home) -> None:
    before = recorded(optimized, home, "planned")
    optimized.edit(("round: r01", "round: r00"))

    (line,) = refusals(look(optimized, home))

    assert line.startswith(f"r01.yaml:1: round `r00` of campaign `parser` has run, with the digest {before.digest}")


def test_files_of_the_incumbent_count_not_those_of_the_working_tree(optimized: Any, home: Home) -> None:
    (optimized.repo / "bench/check.py").write_text("edited")
    (optimized.repo / "docs/a.md").unlink()
    (optimized.repo / "src/fmt.py").unlink()

    assert compiled(optimized, home).gates.validator[0].sha256 == CHECK


def test_check_tells_the_kinds_of_files_apart(orch: Any, optimized: Any, state: Path) -> None:
    told = [json.loads(orch("check", name, "--json").stdout) for name in ("r01.yaml", "campaign.yaml")]

    assert [one["kind"] for one in told] == ["round", "campaign"]
    assert told[0]["digest"] == compiled(optimized, Home(state)).digest
    assert told[0]["refusals"] == []
    assert [one["message"].partition(":")[0] for one in told[0]["warnings"]] == [
        "no processor is left for agents, builds and validators"
    ]
    assert told[0]["protected"][-1] == told[1]["protected"][-1] == "/bench/check.py"
    assert "entry tokens: planned" in told[1]["facts"]
    assert not state.exists()


def test_check_prints_the_digest_and_warnings(orch: Any, optimized: Any, state: Path) -> None:
    optimized.edit(('["src/fmt.py"]', '["src/fmt.py", "src/new.py"]'))

    done = orch("check", "r01.yaml")

    assert done.exit_code == 0
    digest = compiled(optimized, Home(state)).digest
    assert done.stdout == f"r01.yaml: round r01 of campaign parser, 2 lanes, digest {digest}\n"
    assert "warning: r01.yaml:13: glob `src/new.py` matches nothing" in done.stderr


def test_check_prints_every_refusal_of_both_files(orch: Any, optimized: Any, state: Path) -> None:
    optimized.edit(("headroom: 10%", "headroom: 110%"), campaign=True)
    optimized.round.write_text(optimized.round.read_text().replace("deadline: 2h", "deadline: soon"))

    plain, data = orch("check", "r01.yaml"), orch("check", "r01.yaml", "--json")

    assert plain.exit_code == data.exit_code == 2
    assert "r01.yaml:15: `deadline` 'soon' is not a duration" in plain.stderr
    assert "campaign.yaml:17: entry 3: `headroom` should be less than 1" in plain.stderr
    told = json.loads(data.stdout)
    assert told["digest"] is None
    assert [(Path(one["file"]).name, one["line"]) for one in told["refusals"]] == [
        ("r01.yaml", 15),
        ("campaign.yaml", 17),
    ]


def test_campaign_alone_is_checked_against_the_repository(orch: Any, optimized: Any, state: Path) -> None:
    optimized.edit(("INCUMBENT", "0a" * 20), campaign=True)

    done = orch("check", "campaign.yaml")

    assert done.exit_code == 2
    assert f"campaign.yaml:2: `{'0a' * 20}` names no commit of the repository" in done.stderr


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "contract"),
        ("- a\n", "contract"),
        ("goal: x\n", "contract"),
        ("rungz: []\nprotected: []\n", "contract"),
        ("entrys: []\nprotected: []\n", "campaign"),
        ("lane: []\ngates: {}\n", "round"),
        ("campaign: c.yaml\nround: r1\n", "round"),
    ],
)
def test_kind_of_a_file_is_told_by_most_of_its_keys(
    text: str, kind: str, orch: Any, optimized: Any, state: Path
) -> None:
    (optimized.repo / "x.yaml").write_text(text)

    done = orch("check", "x.yaml", "--json")

    assert (done.exit_code, json.loads(done.stdout)["kind"]) == (2, kind)


@pytest.mark.parametrize("text", ["goal: x\n", "entries: []\ngates: {}\n", "campaign: c.yaml\nround: r1\n"])
def test_every_kind_of_file_is_told_of_in_the_same_words(text: str, orch: Any, optimized: Any, state: Path) -> None:
    (optimized.repo / "x.yaml").write_text(text)

    told = json.loads(orch("check", "x.yaml", "--json").stdout)

    assert list(told) == ["file", "kind", "digest", "protected", "facts", "warnings", "refusals"]
    assert set(told["refusals"][0]) == {"file", "line", "message", "mend"}


def test_user_repository_stays_as_it_is(
    optimized: Any, home: Home, fingerprint: Callable[[Path], dict[str, str]]
) -> None:
    before = fingerprint(optimized.repo)

    compiled(optimized, home)

    assert fingerprint(optimized.repo) == before


KEY = st.sampled_from(["id", "run", "path", "sha256", "name", "cpus", "attempts", "wall", "pairs", "entry", "x"])

PLACES: tuple[tuple[str, tuple[str | int, ...]], ...] = (
    *(("r01.yaml", (key,)) for key in ROUND_KEYS),
    *(("campaign.yaml", (key,)) for key in CAMPAIGN_KEYS),
    *(("r01.yaml", ("lanes", 0, key)) for key in LANE_KEYS),
    *(("r01.yaml", ("devices", 0, key)) for key in DEVICE_KEYS),
    *(("campaign.yaml", ("entries", 1, key)) for key in ENTRY_KEYS),
    *(("campaign.yaml", ("commands", key)) for key in COMMANDS_KEYS),
    *(("campaign.yaml", ("gates", key)) for key in (*GATE_KEYS, "validator")),
    *(("campaign.yaml", ("metric", key)) for key in METRIC_KEYS),
)

SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 300),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["tokens", "src/**", "10m", "5%", "cmd:true", "../x", "!", "a[", "\ud800", "bench/check.py"]),
)
ANYTHING = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=4))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(place=st.sampled_from(PLACES), value=ANYTHING)
def test_whatever_stands_anywhere_is_taken_or_refused_at_a_line(
    place: tuple[str, tuple[str | int, ...]], value: Any, optimized: Any, home: Home
) -> None:
    name, (*way, last) = place
    optimized.write()
    data = yaml.safe_load((optimized.repo / name).read_text())
    inner = data
    for part in way:
        inner = inner[part]
    inner[last] = value
    (optimized.repo / name).write_text(yaml.safe_dump(data))

    checked = look(optimized, home)

    told = [refusal for document in checked.documents for refusal in document.refusals]
    assert bool(told) != bool(checked.plan)
    assert all(refusal.line >= 1 and refusal.message for refusal in told)
