"""Pairs: what runs in which order and where, what each run finds, and what ends a measurement early."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orch.activities.slots import held
from orch.activities.trials import pairs
from orch.activities.trials.leases import take
from orch.activities.trials.schedule import Run, by_lot
from orch.activities.trials.sides import Side
from orch.workflows.model.exit import ExitKind
from orch.workflows.model.round.plan import DeviceSet
from orch.workflows.model.round.ticket import Cause

MINE = sorted(os.sched_getaffinity(0))

DEEP = """
import os
os.chdir(os.environ["ORCH_OUTPUT"])
for _ in range(20):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
"""


def printed(trial: Any) -> list[str]:
    """What each step of the trial printed, in order."""
    job = trial.folder / "trial-1"
    numbers = sorted(int(path.name.partition("-")[0]) for path in job.glob("*-stdout"))
    return [(job / f"{number}-stdout").read_text() for number in numbers]


def is_free(name: str) -> bool:
    descriptor = take(name)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


@pytest.fixture
def numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are called 000000000000, 000000000001, … in the order of the plan; the lot falls on the first."""
    counter: Iterator[int] = iter(range(1000))
    named = SimpleNamespace(token_hex=lambda _: f"{next(counter):012}", choice=lambda runs: runs[0])
    monkeypatch.setattr("orch.activities.trials.schedule.secrets", named)


def test_pairs_take_turns_and_every_raw_sample_is_kept(rig: Any) -> None:
    rig.with_plan(gates={"pairs": 4, "repetitions": 3})
    found = rig.measure(rig.candidate({"knob": "80.0"}))
    assert [pair.order for pair in found.pairs] == ["AB", "BA", "AB", "BA"]
    assert [[sample.value for sample in pair.a] for pair in found.pairs] == [[100.0] * 3] * 4
    assert [[sample.value for sample in pair.b] for pair in found.pairs] == [[80.0] * 3] * 4
    assert all(sample.exit.ok and sample.wall_s > 0 and not sample.flaw for pair in found.pairs for sample in pair.a)
    assert (found.failed, found.invalid, found.busy, found.detail, found.side) == (None, None, "", "", "")
    assert found.held_s > 0


def test_the_order_that_is_told_is_the_order_in_which_they_ran(make_rig: Callable[..., Any]) -> None:
    rig = make_rig().with_plan(validate_=None, gates={"repetitions": 2})
    built = rig.building(rig.candidate({"code.sh": "echo candidate\n"}))
    rig.measured(rig.measuring(built))
    sides = ["B" if text else "A" for text in printed(rig.trial(built))]
    assert "".join(sides) == "AABB" + "BBAA" + "AABB" + "BBAA"


def test_runs_keep_to_the_processors_of_their_set_and_to_no_others(make_rig: Callable[..., Any]) -> None:
    rig = make_rig()
    leave = f"import os; os.sched_setaffinity(0, {MINE}); print(*sorted(os.sched_getaffinity(0)))"
    code = {"code.sh": f"python3 -c '{leave}'\n"}
    for cpus in ((MINE[-1],), tuple(MINE), ()):
        rig.with_plan(devices=(DeviceSet(name="one", cpus=cpus),), validate_=None)
        built = rig.building(rig.candidate(code))
        assert rig.measured(rig.measuring(built)).pairs
        assert {text for text in printed(rig.trial(built)) if text} == {f"{' '.join(map(str, cpus or MINE))}\n"}


def test_no_run_finds_what_another_one_left_and_only_its_own_folders_are_writable(rig: Any) -> None:
    code = """
for place in . "$HOME" /tmp "$TMPDIR" "$ORCH_OUTPUT" "${ORCH_RESULT%/*}"; do
    [ ! -e "$place/left" ] || echo "found $place"
    (: > "$place/left") 2>/dev/null && echo wrote || echo refused
done
"""
    rig.with_plan(validate_=None)
    built = rig.building(rig.candidate({"code.sh": code}))
    rig.measured(rig.measuring(built))
    texts = [text.split() for text in printed(rig.trial(built)) if text]
    assert texts == [["refused"] * 2 + ["wrote"] * 4] * 4


def test_nothing_tells_a_run_its_pair_or_its_side(make_rig: Callable[..., Any]) -> None:
    rig = make_rig().with_plan(validate_=None)
    built = rig.building(
        rig.candidate({"code.sh": "env | sort\n"}), base=rig.candidate({"code.sh": "env | sort # A\n"})
    )
    rig.measured(rig.measuring(built))
    texts = printed(rig.trial(built))
    anonymous = {re.sub(r"/runs/[0-9a-f]{12}/", "/runs/X/", text) for text in texts}
    assert len(texts) == 8
    assert len({re.sub("/[AB]/", "/SIDE/", text) for text in anonymous}) == 1
    assert "ORCH_JOB" in next(iter(anonymous))


@pytest.mark.parametrize(
    ("code", "flaw"),
    [
        ("exit 7\n", "the benchmark ended with exit 7"),
        ("kill -SEGV $$\n", "the benchmark ended with exit 139"),
        ("sleep 60\n", "the benchmark ended with timed out (0.5 s)"),
        ("exit 0\n", "the result file is missing"),
        ('printf \'{"wall": {"value": NaN, "unit": "ms"}}\' > "$ORCH_RESULT"; exit 0\n', "holds NaN"),
        ('printf \'{"wall": {"value": 1, "unit": "s"}}\' > "$ORCH_RESULT"; exit 0\n', "the unit of 'wall' is 's'"),
        ('ln -s "$PWD/knob" "$ORCH_RESULT"; exit 0\n', "cannot be opened: Too many levels of symbolic links"),
        ('mkfifo "$ORCH_RESULT"; exit 0\n', "the result is no regular file"),
        ('mkdir "$ORCH_RESULT"; exit 0\n', "the result is no regular file"),
        ('truncate -s 2G "$ORCH_RESULT"; exit 0\n', "more than 65,536 bytes"),
    ],
    ids=["fails", "crashes", "hangs", "nothing", "NaN", "unit", "link", "fifo", "folder", "2 GB"],
)
def test_a_run_without_a_value_ends_the_measurement(make_rig: Callable[..., Any], code: str, flaw: str) -> None:
    rig = make_rig().with_plan(gates={"pairs": 64})
    if "sleep" in code:
        rig.with_plan(benchmark=rig.plan.commands.benchmark.model_copy(update={"timeout_s": 0.5}))
    built = rig.building(rig.candidate({"code.sh": code}))
    found = rig.measured(rig.measuring(built))
    (pair,) = found.pairs
    assert [sample.value for sample in pair.a] == [100.0]
    assert [sample.value for sample in pair.b] == [None]
    assert flaw in pair.b[0].flaw
    assert (found.side, found.invalid, found.failed) == ("candidate", None, None)
    assert found.detail.startswith("pair 0, candidate: ")
    assert len(printed(rig.trial(built))) < 64


def test_a_benchmark_that_fails_on_the_base_is_told_as_that(make_rig: Callable[..., Any]) -> None:
    rig = make_rig()
    base = rig.candidate({"code.sh": "echo no way >&2; exit 9\n"})
    found = rig.measured(rig.measuring(rig.building(rig.plan.incumbent, base=base)))
    assert (found.side, found.detail) == ("base", "pair 0, base: the benchmark ended with exit 9")
    assert found.output.head == "no way\n"
    assert found.pairs[0].b == ()


def test_a_wrong_answer_is_refused_by_the_validator(rig: Any) -> None:
    found = rig.measure(rig.candidate({"answer": "41\n", "knob": "1.0"}))
    assert found.invalid is not None
    assert (found.invalid.kind, found.invalid.number, found.side) == (ExitKind.FAILED, 3, "candidate")
    assert found.detail == "pair 0, candidate: the validator refuses what the candidate left: exit 3"
    assert found.output.head == "a wrong answer\n"
    assert len(found.pairs) == 1


def test_a_validator_that_refuses_the_base_is_broken(make_rig: Callable[..., Any], kit: Any) -> None:
    rig = make_rig()
    rig.with_plan(validate_=rig.plan.commands.validate_.model_copy(update={"run": "exit 1"}))
    found = rig.measure(rig.candidate({"knob": "80.0"}))
    assert (found.side, found.detail) == (
        "base",
        "pair 0, base: the validator refuses what the base itself left: exit 1",
    )


def test_an_answer_that_is_wrong_in_some_later_run_only_is_refused(
    make_rig: Callable[..., Any], numbered: None
) -> None:
    rig = make_rig()
    code = 'cp() { command cp "$@"; case $ORCH_OUTPUT in *000007*) echo 41 > "$ORCH_OUTPUT/answer"; esac; }\n'
    found = rig.measure(rig.candidate({"code.sh": code}))  # of the runs 0 to 7 the last one is a base's
    assert (found.invalid, len(found.pairs)) == (None, 4)
    code = code.replace("000007", "000013")  # 8 to 15: AB, BA, AB, BA
    found = rig.measure(rig.candidate({"code.sh": code}))
    assert found.invalid is not None
    assert found.detail == "pair 2, candidate: the validator refuses what the candidate left: exit 3"
    assert len(found.pairs) == 4


def test_any_repetition_may_be_the_one_that_is_looked_at() -> None:
    runs = [Run("benchmark", 1, "B", number, "k") for number in range(3)]
    assert {by_lot(runs).number for _ in range(100)} == {0, 1, 2}


def test_the_repetition_that_the_lot_falls_on_is_looked_at(make_rig: Callable[..., Any], numbered: None) -> None:
    rig = make_rig().with_plan(gates={"repetitions": 3})
    code = 'cp() { command cp "$@"; case $ORCH_OUTPUT in *000015*) echo 41 > "$ORCH_OUTPUT/answer"; esac; }\n'
    found = rig.measure(rig.candidate({"code.sh": code}))  # of 0 to 23: the first B of the third pair
    assert found.invalid is not None
    assert found.detail == "pair 2, candidate: the validator refuses what the candidate left: exit 3"
    found = rig.measure(rig.candidate({"code.sh": code.replace("000015", "000027")}))  # of 24 to 47: the first pair
    assert found.invalid is not None
    assert found.detail == "pair 0, candidate: the validator refuses what the candidate left: exit 3"


def test_the_validator_runs_where_no_code_of_the_candidate_is(make_rig: Callable[..., Any]) -> None:
    rig = make_rig()
    rig.with_plan(validate_=rig.plan.commands.validate_.model_copy(update={"run": ". ./code.sh; sh ./validate.sh"}))
    cheat = '[ -e "$ORCH_OUTPUT/answer" ] && exit 0\n'  # in the benchmark it does nothing
    found = rig.measure(rig.candidate({"code.sh": cheat, "answer": "41\n"}))
    assert found.side == "candidate"
    assert found.invalid is not None


@pytest.mark.parametrize(
    ("trick", "flaw"),
    [
        ('ln -s "{expected}" "$ORCH_OUTPUT/answer"', "a link that leads elsewhere: 'answer'"),
        ('ln -s . "$ORCH_OUTPUT/d"; ln -s d/../x "$ORCH_OUTPUT/answer"', "a link that leads elsewhere: 'answer'"),
        ('echo 42 > "$ORCH_OUTPUT/answer"; mkfifo "$ORCH_OUTPUT/f"', "something that is no file: 'f'"),
        ('echo 42 > "$ORCH_OUTPUT/answer"; seq 10001 | (cd "$ORCH_OUTPUT" && xargs touch)', "more than 10,000 files"),
        (f"python3 -c '{DEEP}'", "a folder that cannot be looked into: File name too long"),
    ],
    ids=["link", "upwards", "fifo", "many", "deep"],
)
def test_an_output_that_shows_the_validator_something_else_is_refused(
    make_rig: Callable[..., Any], trick: str, flaw: str
) -> None:
    rig = make_rig()
    built = rig.building("0" * 40)
    expected = rig.trial(built).place(Side.BASE).tree / "expected"  # the next measurement's, whose number is known
    expected = Path(str(expected).replace("i2-c1-b1", "i2-c2-b2"))
    code = f"cp() {{ {trick.format(expected=expected)}; }}\n"
    found = rig.measure(rig.candidate({"code.sh": code}))
    assert found.side == "candidate"
    assert found.invalid is not None
    assert flaw in found.invalid.detail


def test_a_commit_is_measured_against_itself_from_two_checkouts(rig: Any) -> None:
    found = rig.measure(rig.plan.incumbent)
    assert {sample.value for pair in found.pairs for sample in (*pair.a, *pair.b)} == {100.0}
    assert len(found.pairs) == 4


def test_a_busy_device_is_told_and_the_copies_stay_for_the_next_try(make_rig: Callable[..., Any]) -> None:
    rig = make_rig()
    built = rig.building(rig.candidate({"build.sh": "echo built\n"}))
    lease = take(f"cpu-{MINE[0]}")
    assert lease is not None
    found = rig.measured(rig.measuring(built))
    assert found.busy == f"cpu-{MINE[0]} is leased by another measurement"
    assert found.pairs == ()
    os.close(lease)
    built_at = (rig.trial(built).folder / "build" / "exit.json").stat().st_mtime_ns
    assert len(rig.measured(rig.measuring(built)).pairs) == 4
    assert (rig.trial(built).folder / "build" / "exit.json").stat().st_mtime_ns == built_at


@pytest.mark.parametrize(
    ("device", "why"),
    [
        ({"cpus": (9999,)}, "no cpu-9999 on this host"),
        ({"cuda": (0,)}, "NVIDIA devices cannot be asked"),
        ({"load": 1e-9}, "are no measurement: at most 1e-09 may be"),
    ],
    ids=["processor", "cuda", "load"],
)
def test_a_device_that_is_not_as_the_plan_says_is_not_measured_on(
    make_rig: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, device: dict[str, Any], why: str
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (9.0, 9.0, 9.0))
    monkeypatch.setattr("orch.activities.trials.processors.Processors._others", lambda *_: 3.0)
    rig = make_rig().with_plan(devices=(DeviceSet(name="one", **device),))
    found = rig.measure(rig.candidate({"knob": "80.0"}))
    assert why in found.busy
    assert is_free(f"cpu-{MINE[0]}")


def test_no_pair_begins_after_the_deadline(make_rig: Callable[..., Any]) -> None:
    rig = make_rig()
    found = rig.measure(rig.candidate({"knob": "80.0"}), deadline=time.time() - 1)
    assert found.pairs == ()
    assert found.detail == "it ended after 0 of 4 pairs: its deadline passed"


def test_what_is_complete_at_the_deadline_is_reported(make_rig: Callable[..., Any]) -> None:
    rig = make_rig().with_plan(gates={"pairs": 40}, validate_=None)
    built = rig.building(rig.candidate({"code.sh": "sleep 0.2\n"}))
    assert not rig.built(built).failed
    found = rig.measured(rig.measuring(built, deadline=time.time() + 3.0))
    assert 0 < len(found.pairs) < 40
    assert all(sample.value == 100.0 for pair in found.pairs for sample in (*pair.a, *pair.b))
    assert all(len(pair.a) == len(pair.b) == 1 for pair in found.pairs)
    assert found.detail == f"it ended after {len(found.pairs)} of 40 pairs: its deadline passed"


def test_a_job_that_ended_at_the_deadline_is_not_begun_again_whatever_the_wall_clock_says_by_then(
    make_rig: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig().with_plan(gates={"pairs": 40}, validate_=None)
    built = rig.building(rig.candidate({"code.sh": "sleep 0.2\n"}))
    assert not rig.built(built).failed
    request = rig.measuring(built, deadline=time.time() + 2.0)
    monkeypatch.setattr(pairs, "time", SimpleNamespace(monotonic=time.monotonic, time=lambda: 0.0))
    found = rig.measured(request)
    assert found.detail == f"it ended after {len(found.pairs)} of 40 pairs: its deadline passed"
    assert not (rig.trial(built).folder / "trial-2").exists()


def test_afterwards_facts_and_logs_are_left_and_nothing_else(rig: Any) -> None:
    built = rig.building(rig.candidate({"knob": "80.0"}))
    first = rig.measured(rig.measuring(built))
    folder = rig.trial(built).folder
    assert not [path for name in ("A", "B", "runs", ".trash-*") for path in folder.glob(name)]
    assert held(rig.home.ports) == {}
    assert is_free(f"cpu-{MINE[0]}")
    assert rig.measured(rig.measuring(built)) == first


def test_a_trial_that_was_not_built_is_told_why(make_rig: Callable[..., Any]) -> None:
    rig = make_rig()
    found = rig.measure(rig.candidate({"build.sh": "echo broken >&2; exit 2\n"}))
    assert (found.failed, found.side, found.detail) == (Cause.BUILD_FAILED, "candidate", "build: exit 2")
    assert found.output.head == "broken\n"


def test_without_the_sandbox_a_run_that_changes_what_grades_it_is_found_out(
    make_rig: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCH_WORKSPACES", "clone")  # an overlay is read-only by itself
    rig = make_rig(sandbox=False)
    found = rig.measure(rig.candidate({"code.sh": "chmod u+w expected; echo 41 > expected\n", "answer": "41\n"}))
    assert (found.failed, found.side) == (Cause.TAMPERED, "candidate")
    assert rig.measure(rig.candidate({"knob": "80.0"})).failed is None
