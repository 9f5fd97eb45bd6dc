"""The registry: agents that packages bring stand beside the built-in ones, and no spec names what nobody knows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orch.activities.agents import registry
from orch.activities.agents.registry import BUILT_IN, adapter_of, names, resolve, secret_names
from orch.activities.agents.spec import COMMON
from orch.workflows.errors import RefusedError

pytestmark = pytest.mark.usefixtures("stage")


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Install another package with these entry points."""

    def install(points: str) -> None:
        folder = tmp_path / "more" / "more-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: more\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{points}\n")
        monkeypatch.syspath_prepend(folder.parent)
        registry._foreign.cache_clear()

    return install


def test_packages_agents_come_after_the_built_in_ones() -> None:
    assert names() == (*BUILT_IN, "loner", "talker")


def test_packages_agent_is_resolved_with_its_own_and_the_common_settings() -> None:
    agent = resolve("talker:m-1,mood=calm,max-turns=3")

    assert (agent.adapter.name, agent.spec.argument) == ("talker", "m-1")
    assert agent.spec.settings == {"mood": "calm", "max-turns": "3"}
    assert resolve("talker").adapter is agent.adapter


def test_package_cannot_take_the_place_of_a_built_in_agent(bring: Callable[[str], None]) -> None:
    bring("cmd = talker:TalkerAgent")

    assert names().count("cmd") == 1
    assert adapter_of("cmd").traits.program == "sh"
    assert type(adapter_of("cmd")).__module__.endswith("agents.command")


@pytest.mark.parametrize("point", ["broken = no_such_module:Agent", "broken = talker:NoSuchAgent"])
def test_package_that_cannot_be_loaded_is_refused_by_name_and_bars_no_other(
    bring: Callable[[str], None], point: str
) -> None:
    bring(point)

    with pytest.raises(RefusedError, match=r"agent 'broken' cannot be loaded: .*[Nn]o") as refused:
        resolve("broken")
    assert "package" in refused.value.hint
    assert resolve("talker").adapter.name == "talker"


@pytest.mark.parametrize(
    ("spec", "said", "hint"),
    [
        ("talkr:m", "unknown agent 'talkr'; known: claude, ", "did you mean 'talker'?"),
        ("talker,mod=calm", "unknown setting 'mod'", "did you mean mood?"),
        ("talker,zzz=1", "unknown setting 'zzz'", f"known: {', '.join(sorted([*COMMON, 'mood']))}"),
        ("Talker", "unknown agent 'Talker'", "did you mean 'talker'?"),
        ("", "unknown agent ''", "cmd:COMMAND"),
        (",", "unknown agent ''", "cmd:COMMAND"),
    ],
)
def test_unknown_name_or_setting_is_refused_with_the_nearest_one(spec: str, said: str, hint: str) -> None:
    with pytest.raises(RefusedError) as refused:
        resolve(spec)

    assert said in refused.value.message
    assert hint in refused.value.hint


def test_secrets_are_those_that_the_runs_agents_name() -> None:
    assert secret_names(("talker", "", "cmd:true", "talker:m")) == ("TALKER_KEY",)
    assert secret_names(("cmd:true",)) == ()


def test_adapter_is_imported_when_it_is_first_asked_for() -> None:
    sys.modules.pop("talker", None)
    assert "talker" in names()
    assert "talker" not in sys.modules
    resolve("talker")
    assert "talker" in sys.modules


@pytest.mark.parametrize("name", [*BUILT_IN, "loner", "talker"])
def test_every_agent_keeps_the_protocol(name: str) -> None:
    adapter = adapter_of(name)

    assert adapter.name == name
    assert adapter.traits.program
    assert not set(adapter.traits.settings) & set(COMMON)
    assert all(not Path(login).is_absolute() for login in adapter.traits.login)
    assert (adapter.translator() is not None) is adapter.traits.streams
