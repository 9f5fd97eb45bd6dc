"""Processors: which of them there are, whether they may be had, and whether they are as the plan wants them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from orch.activities.supervisor import pinning
from orch.activities.trials import devices, processors
from orch.activities.trials.processors import Processors, spare
from orch.workflows.model.round.plan import DeviceSet

MINE = sorted(os.sched_getaffinity(0))

Host = Callable[..., Processors]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A host whose sysfs and procfs say what the test wants."""

    def make(
        online: str = "0-1", governors: dict[int, str] | None = None, running: int = 1, siblings: str = ""
    ) -> Processors:
        cpu = tmp_path / "sys/devices/system/cpu"
        cpu.mkdir(parents=True, exist_ok=True)
        (cpu / "online").write_text(f"{online}\n")
        for number, governor in (governors or {}).items():
            (cpu / f"cpu{number}/cpufreq").mkdir(parents=True, exist_ok=True)
            (cpu / f"cpu{number}/cpufreq/scaling_governor").write_text(f"{governor}\n")
        (cpu / f"cpu{MINE[0]}/topology").mkdir(parents=True, exist_ok=True)
        (cpu / f"cpu{MINE[0]}/topology/thread_siblings_list").write_text(f"{siblings}\n")
        (tmp_path / "loadavg").write_text(f"0.00 0.00 0.00 {running}/211 4711\n")
        return Processors(tmp_path / "sys", tmp_path)

    return make


def test_a_set_names_its_processors_and_an_unpinned_one_has_all_of_them(host: Host) -> None:
    twelve = host("0-3,8,10-11")
    assert twelve.identities(DeviceSet(name="a", cpus=(11, 2))) == ("cpu-11", "cpu-2")
    assert twelve.identities(DeviceSet(name="a")) == tuple(f"cpu-{n}" for n in (0, 1, 2, 3, 8, 10, 11))
    assert devices.identities(DeviceSet(name="a", cpus=(MINE[-1], MINE[0]))) == tuple(
        sorted({f"cpu-{MINE[0]}", f"cpu-{MINE[-1]}"})
    )


def test_processors_that_are_not_there_are_a_flaw(host: Host) -> None:
    flaw = host("0-3,8").flaw(DeviceSet(name="a", cpus=(2, 4, 9)))
    assert flaw == "no cpu-4, cpu-9 on this host: it has cpu-0 to cpu-3, cpu-8"
    assert "no cpu-9999 on this host" in devices.flaws(DeviceSet(name="a", cpus=(9999,)))
    assert devices.flaws(DeviceSet(name="a", cpus=tuple(MINE))) == ""


def test_processors_that_nothing_can_be_pinned_to_are_a_flaw(host: Host) -> None:
    before = os.sched_getaffinity(0)
    flaw = host("0-1023").flaw(DeviceSet(name="a", cpus=(1023,)))  # it says so, the kernel does not
    assert flaw == "nothing can be pinned to cpu-1023 here: Invalid argument"
    assert os.sched_getaffinity(0) == before


def test_another_governor_makes_it_wait_and_none_at_all_is_a_flaw(host: Host) -> None:
    number = MINE[0]
    wanted = DeviceSet(name="a", cpus=(number,), governor="performance")
    assert host().flaw(wanted) == f"cpu-{number} of this host tells no frequency governor"
    slow = host(governors={number: "powersave"})
    assert slow.flaw(wanted) == ""
    assert slow.busy(wanted) == f"the governor of cpu-{number} is powersave, not performance"
    assert host(governors={number: "performance"}).busy(wanted) == ""


def test_a_high_load_counts_as_far_as_something_else_than_trials_runs_now(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (3.2, 1.0, 1.0))
    monkeypatch.setattr(processors, "trial_pids", list)  # other tests run some
    quiet = DeviceSet(name="a", load=0.5)
    assert host(running=1).busy(quiet) == ""  # what ran has ended: it was the trial before
    assert host(running=4).busy(quiet) == (
        "the load of this host is 3.20, and 3.0 of it are no measurement: at most 0.5 may be"
    )
    assert host(running=4).busy(DeviceSet(name="a", load=4.0)) == ""
    assert host(running=4).busy(DeviceSet(name="a")) == ""


def test_of_a_set_that_names_processors_only_what_runs_there_is_load(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (3.2, 1.0, 1.0))
    me = threading.get_native_id()
    for thread, state, cpu in ((11, "R", 0), (12, "R", 0), (13, "S", 1), (14, "R", 2), (me, "R", 1)):
        task = tmp_path / f"{11 if thread == 12 else thread}/task/{thread}"
        task.mkdir(parents=True)
        (task / "stat").write_text(f"{thread} (a) R (b) {state} {'0 ' * 35}{cpu} 0\n")
    one, other = (DeviceSet(name="a", cpus=cpus, load=0.5) for cpus in ((0, 3), (1, 3)))
    assert host().busy(other) == ""
    assert host().busy(one) == ("the load of this host is 3.20, and 2.0 of it are on cpu-0, cpu-3: at most 0.5 may be")


def test_what_runs_on_a_processor_is_counted_there() -> None:
    spin = f"import os\nos.sched_setaffinity(0, [{MINE[-1]}])\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen((sys.executable, "-c", spin), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert processors._processor(Path(f"/proc/{process.pid}/task/{process.pid}")) == MINE[-1]
        assert Processors()._running_on((MINE[-1],)) >= 1
        process.kill()


def test_what_a_trial_runs_is_no_load_of_others(tmp_path: Path) -> None:
    spin = (sys.executable, "-c", "print(flush=True)\nwhile True: pass")

    for job, is_trial in (("trial-1", True), ("agent-1", False)):
        environment = {**os.environ, "ORCH_JOB": str(tmp_path / job)}
        with subprocess.Popen(spin, env=environment, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert (process.pid in processors.trial_pids()) is is_trial
            assert max(processors.running([process.pid]) for _ in range(20)) == 1
            process.kill()


def test_what_runs_beside_measurements_keeps_off_their_processors(host: Host) -> None:
    assert spare([DeviceSet(name="a", cpus=(MINE[0],))], host()) == tuple(MINE[1:])
    assert spare([DeviceSet(name="a", cpus=tuple(MINE))], host()) == ()
    assert spare([DeviceSet(name="a", cpus=(MINE[0],)), DeviceSet(name="b")], host()) == ()


def test_sets_that_leave_no_processor_for_others_are_told() -> None:
    for crowded in (DeviceSet(name="a"), DeviceSet(name="a", cpus=tuple(MINE))):
        ((why, mend),) = devices.disturbances([crowded])
        assert why.startswith("no processor is left for agents, builds and validators")
        assert mend == "name `cpus:` and leave a core free"


def test_the_other_thread_of_a_measured_core_is_not_spare(host: Host) -> None:
    two = host(siblings=f"{MINE[0]},{MINE[-1]}")
    others = tuple(number for number in MINE if number not in {MINE[0], MINE[-1]})
    assert spare([DeviceSet(name="a", cpus=(MINE[0],))], two) == others


def test_sets_that_share_a_core_are_told_and_those_that_share_a_processor_are_never_measured_on_at_once(
    host: Host,
) -> None:
    two = host(siblings=f"{MINE[0]}-{MINE[0] + 1}")
    one, other = (DeviceSet(name=f"n{n}", cpus=(MINE[0] + n,)) for n in range(2))
    assert (
        processors.entangled([one, other], two)
        == f"cpu-{MINE[0] + 1} of device set 'n1' share cores with device set 'n0'"
    )
    assert processors.entangled([one, other, one], host(siblings=str(MINE[0]))) == ""
    both = DeviceSet(name="both", cpus=(MINE[0], MINE[0] + 1))
    assert processors.entangled([one, one, both, DeviceSet(name="all")], two) == ""


def test_a_host_that_keeps_nothing_to_its_processors_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pinning, "flaw", lambda: "no filter of system calls is known for sparc")
    monkeypatch.setattr(devices, "spare", lambda _: (1,))
    told = [why for why, _ in devices.disturbances([DeviceSet(name="a", cpus=(MINE[0],))])]
    assert told == ["what is measured could leave its processors: no filter of system calls is known for sparc"]
    assert list(devices.disturbances([DeviceSet(name="a")])) == []


def test_a_set_is_qualified_by_being_there_first() -> None:
    assert "no cpu-9999" in devices.qualify(DeviceSet(name="a", cpus=(9999,), load=0.001))
    assert devices.qualify(DeviceSet(name="a", cpus=tuple(MINE))) == ""


def test_containers_pin_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCH_SANDBOX", "docker")
    pinned = DeviceSet(name="a", cpus=(MINE[0],))
    assert devices.flaws(pinned).startswith("what runs in docker is not pinned to processors")
    assert devices.flaws(pinned, sandbox=False) == devices.flaws(DeviceSet(name="a")) == ""
