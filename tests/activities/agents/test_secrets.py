"""The secrets of a run: a file for their owner alone, and nowhere else."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orch.activities.agents import secrets
from orch.activities.artifacts import keep_request, kept_request
from orch.activities.home import Home
from orch.activities.jobs import run_job
from orch.activities.measuring.ladder import ladder_job
from orch.activities.measuring.setup import set_up
from orch.activities.places import Place
from orch.activities.runs import close_run_folder
from orch.workflows.errors import RefusedError
from orch.workflows.model.attempt import AttemptKey
from orch.workflows.model.contract import Contract, Rung, Secret, SecretUse
from orch.workflows.model.goal import CloseRun, PrepareRun, SandboxMode
from orch.workflows.model.promotion import PromoteTarget

RUN, KEY = "goal-x", "sk-do-not-tell"
ENVIRON = {"A_KEY": KEY, "B_KEY": "", "PATH": "/bin", "OTHER_KEY": "other"}
NAMES = ("A_KEY", "B_KEY", "C_KEY")


@pytest.fixture
def file(home: Home) -> Path:
    return home.run(RUN) / secrets.FILE


def close(home: Home) -> None:
    close_run_folder(home, CloseRun(run=RUN, store="none", repo="/nonexistent"))


def test_named_variables_that_are_set_are_kept_and_no_other(home: Home, file: Path) -> None:
    secrets.keep(home, RUN, NAMES, ENVIRON)

    assert secrets.find(home, RUN, (*NAMES, "OTHER_KEY", "PATH")) == {"A_KEY": KEY}
    assert "other" not in file.read_text()


def test_only_their_owner_can_read_them(home: Home, file: Path) -> None:
    secrets.keep(home, RUN, NAMES, ENVIRON)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_run_from_a_shell_never_gets_what_only_the_worker_has(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "of the worker")
    secrets.keep(home, RUN, NAMES, {})

    assert secrets.find(home, RUN, NAMES) == {}


def test_run_that_nobody_started_from_a_shell_gets_the_workers_own(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "of the worker")
    monkeypatch.setenv("B_KEY", "")
    monkeypatch.delenv("C_KEY", raising=False)

    assert secrets.find(home, RUN, NAMES) == {"A_KEY": "of the worker"}


def test_agent_gets_those_of_its_own_and_not_those_of_another(home: Home) -> None:
    secrets.keep(home, RUN, ("A_KEY", "OTHER_KEY"), ENVIRON)

    assert secrets.find(home, RUN, ("OTHER_KEY",)) == {"OTHER_KEY": "other"}


def test_they_are_forgotten_when_the_run_is_closed(home: Home, file: Path) -> None:
    secrets.keep(home, RUN, NAMES, ENVIRON)
    close(home)

    assert not file.exists()
    close(home)


def declare(home: Home, *secrets_: tuple[str, str] | tuple[str, str, tuple[str, ...]]) -> tuple[Secret, ...]:
    """Prepare a run whose contract refers to secrets."""
    keys = ("name", "source", "to")
    wanted = tuple(Secret.model_validate(dict(zip(keys, values, strict=False))) for values in secrets_)
    contract = Contract(goal="x", rungs=(Rung(name="a", run="true"),), secrets=wanted)
    keep_request(
        home,
        PrepareRun(
            run=RUN,
            repo="/nonexistent",
            contract=contract,
            agents=("cmd:true",),
            sandbox=SandboxMode.OFF,
            promote=PromoteTarget(),
        ),
    )
    return wanted


def test_references_are_looked_up_where_the_run_is_started(tmp_path: Path, home: Home) -> None:
    wanted = declare(home, ("A", "env:OF_THE_SHELL"), ("B", "cmd:pwd; echo '  '"), ("C", "cmd:echo $OF_THE_SHELL"))

    found = secrets.resolve(wanted, {"OF_THE_SHELL": KEY, "PATH": os.environ["PATH"]}, tmp_path)

    assert found == {"A": KEY, "B": str(tmp_path), "C": KEY}


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("env:UNSET", "UNSET is not set"),
        ("cmd:true", "its command prints nothing"),
        ("cmd:echo sk-printed; echo sk-said >&2; exit 3", "its command ended with exit 3"),
        ("cmd:head -c 70000 /dev/zero | tr '\\0' x", "it does not fit into a variable of at most 64 KiB"),
        ("cmd:sleep 9", "its command ended with timed out (0.2 s)"),
    ],
)
def test_reference_that_fails_is_refused_by_name_and_shows_nothing(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, why: str
) -> None:
    monkeypatch.setattr(secrets, "PATIENCE_S", 0.2 if "sleep" in source else 10.0)

    with pytest.raises(RefusedError) as refused:
        secrets.resolve(declare(home, ("TOKEN", source)), os.environ, tmp_path)

    assert refused.value.message == f"secret TOKEN: {why}"


def test_each_gets_its_own_and_rungs_get_none(home: Home) -> None:
    wanted = declare(home, ("A", "env:A"), ("B", "env:B", ("setup",)), ("C", "env:C", ("agent", "setup")))
    values = {"A": "a-value", "B": "b-value", "C": "c-value"}
    secrets.keep(home, RUN, (), {}, secrets.resolve(wanted, values, home.root))

    assert secrets.given(home, RUN, SecretUse.AGENT) == {"A": "a-value", "C": "c-value"}
    assert secrets.given(home, RUN, SecretUse.SETUP) == {"B": "b-value", "C": "c-value"}
    assert secrets.hidden(home, RUN) == values
    job = ladder_job(place(home), kept_request(home, RUN).contract, gate=True, sandbox=False)
    assert not set(values.values()) & set(job.steps[0].env.values())
    assert job.hidden == values


def test_contracts_secret_is_the_agents_key_where_it_has_that_name(home: Home) -> None:
    declare(home, ("A_KEY", "env:A_KEY"))
    secrets.keep(home, RUN, ("A_KEY",), ENVIRON, {"A_KEY": "of the contract"})

    assert secrets.find(home, RUN, ("A_KEY",)) == {"A_KEY": "of the contract"}


def test_run_that_nobody_started_looks_references_up_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(home, ("A", "env:A_REFERENCE"))
    monkeypatch.setenv("A_REFERENCE", KEY)
    assert secrets.given(home, RUN, SecretUse.AGENT) == {"A": KEY}
    monkeypatch.setenv("A_REFERENCE", "another")

    assert secrets.given(home, RUN, SecretUse.AGENT) == {"A": KEY}
    assert stat.S_IMODE((home.run(RUN) / secrets.DECLARED).stat().st_mode) == 0o600
    close(home)
    assert not (home.run(RUN) / secrets.DECLARED).exists()


def test_many_steps_that_begin_at_once_look_references_up_once(home: Home, tmp_path: Path) -> None:
    declare(home, ("A", f"cmd:echo x >> {tmp_path}/asked; sleep 0.1; echo {KEY}"))

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: secrets.given(home, RUN, SecretUse.AGENT), range(8)))

    assert found == [{"A": KEY}] * 8
    assert (tmp_path / "asked").read_text() == "x\n"


def test_closed_run_gets_what_its_set_up_needs_and_keeps_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(home, ("A", "env:UNSET_NOW"), ("B", "env:B_REFERENCE", ("setup",)))
    close(home)
    monkeypatch.setenv("B_REFERENCE", KEY)

    assert secrets.given(home, RUN, SecretUse.SETUP) == secrets.hidden(home, RUN) == {"B": KEY}
    assert [path for path in home.run(RUN).rglob("*") if path.is_file() and KEY in path.read_text()] == []


def test_half_a_file_that_a_killed_writer_left_goes_with_the_run(home: Home, file: Path) -> None:
    secrets.keep(home, RUN, NAMES, ENVIRON)
    file.rename(f"{file}.new")
    close(home)

    assert list(home.run(RUN).glob("secrets*")) == []


def test_taken_id_leaves_the_other_runs_secrets_as_they_were(home: Home) -> None:
    declare(home, ("A", "env:A"))
    secrets.keep(home, RUN, NAMES, ENVIRON, {"A": "first"})
    before = secrets.keep(home, RUN, (), {}, {"A": "second"})
    secrets.put_back(home, RUN, before)

    assert secrets.given(home, RUN, SecretUse.AGENT) == {"A": "first"}
    assert secrets.find(home, RUN, NAMES) == {"A_KEY": KEY}


def test_digest_and_engine_never_see_a_value(home: Home) -> None:
    wanted = declare(home, ("A", "cmd:printf %s-%s sk value"))
    secrets.keep(home, RUN, (), {}, secrets.resolve(wanted, os.environ, home.root))
    contract = kept_request(home, RUN).contract

    assert contract.digest == contract.model_copy(update={"secrets": ()}).digest
    assert contract.secrets == wanted
    assert "sk-value" not in contract.model_dump_json()


async def test_rung_and_set_up_that_print_a_secret_show_its_name_in_excerpts_and_logs(home: Home) -> None:
    declare(home, ("TOKEN", "env:TOKEN", ("setup",)))
    secrets.keep(home, RUN, (), {}, {"TOKEN": KEY})
    where = place(home)
    printed = "printf sk-do-; sleep 0.1; printf not-tell; a=sk-do-; echo ${a}not-tell >&2; exit 1"
    rung = Rung(name="a", run=printed)
    contract = Contract(goal="x", rungs=(rung,), setup="echo $TOKEN; echo err $TOKEN >&2; exit 1")
    (where.folder / "tree").mkdir(parents=True)

    ended, said = await set_up(where, where.folder / "tree", contract, (), sandbox=False)
    job = ladder_job(where, contract, gate=True, sandbox=False)
    (step,) = await run_job(where.folder / "rungs", job)

    assert (str(ended), said.head) == ("exit 1", "err [TOKEN]\n")
    assert (step.stdout.read_text(), step.stderr.read_text()) == ("[TOKEN]", "[TOKEN]\n")
    assert not [path for path in where.folder.rglob("*") if path.is_file() and KEY in path.read_text()]


def place(home: Home) -> Place:
    key = AttemptKey(run=RUN, iteration=1, candidate=1, binding=1)
    return Place(home, key, home.attempt(key))
