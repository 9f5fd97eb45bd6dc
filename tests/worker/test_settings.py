from __future__ import annotations

from pathlib import Path

import pytest

from orch.worker.settings import default_slots, load_settings, refuse_unknown_makers
from orch.workflows.errors import RefusedError


def test_the_state_directory_is_the_users_unless_named(tmp_path: Path) -> None:
    assert load_settings({"ORCH_STATE": str(tmp_path)}).home.root == tmp_path
    assert load_settings({}).home.root.name == "orch"


def test_a_relative_state_directory_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings({"ORCH_STATE": "here"}).home.root == tmp_path / "here"


@pytest.mark.parametrize(
    ("cores", "memory_gib", "slots"),
    [(1, 64, 2), (4, 64, 8), (8, 6, 4), (64, 512, 32), (2, 1, 1), (8, 5.9, 3)],
)
def test_slots_are_bounded_by_cores_and_memory(cores: int, memory_gib: float, slots: int) -> None:
    assert default_slots(cores=cores, memory_gib=memory_gib) == slots


def test_slots_can_be_given() -> None:
    assert load_settings({"ORCH_SLOTS": "40"}).slots == 40


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_slots_that_are_no_number_are_refused(text: str) -> None:
    with pytest.raises(RefusedError, match="ORCH_SLOTS"):
        load_settings({"ORCH_SLOTS": text})


def test_limit_that_cannot_be_read_is_refused_before_anything_is_served() -> None:
    with pytest.raises(RefusedError, match="ORCH_LIMIT_MEMORY: 'much' is no size"):
        load_settings({"ORCH_LIMIT_MEMORY": "much"})


def test_labels_of_the_host_can_be_given() -> None:
    assert load_settings({"ORCH_LABELS": " gpu,big, "}).labels == {"gpu", "big"}
    assert load_settings({}).labels == frozenset()


@pytest.mark.parametrize(("text", "said"), [("GPU", "no label"), ("a b", "no label"), ("a,b,c,d,e", "at most 4")])
def test_labels_that_cannot_be_served_are_refused(text: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        load_settings({"ORCH_LABELS": text})


@pytest.mark.parametrize("variable", ["ORCH_SANDBOX", "ORCH_WORKSPACES"])
def test_maker_that_is_none_is_refused_with_those_there_are(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "nonsense")

    with pytest.raises(RefusedError, match=f"{variable} is 'nonsense'") as refused:
        refuse_unknown_makers()

    assert refused.value.hint.startswith("use one of auto, ")
    monkeypatch.setenv(variable, "")
    refuse_unknown_makers()
