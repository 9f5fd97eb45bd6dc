"""A third party's adapter: an agent whose prompt is a shell script, and whose events are what the script prints."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from orch.activities.agents.adapter import AgentCall, Launch, Traits
from orch.activities.agents.said import (
    Began,
    Complained,
    Ended,
    Failed,
    Recorded,
    Said,
    SessionTotal,
    Text,
    Turn,
    Unknown,
    Used,
)
from orch.activities.agents.spec import Spec
from orch.workflows.model.outcome import OutcomeKind
from orch.workflows.model.usage import Usage


class TalkerAgent:
    """Runs its prompt; its session is the file `memory` in its private home."""

    name = "talker"
    traits = Traits(
        program="sh",
        forks=True,
        secrets=("TALKER_KEY",),
        login=(".talker/login.json",),
        settings={"mood": "how it speaks"},
        signals=(("TERM", 0.5),),
    )

    def missing(self, spec: Spec, path: str | None) -> str:
        program = spec.program("sh")
        return "" if shutil.which(program, path=path) else program

    def call(self, launch: Launch) -> AgentCall:
        env = {"TAKEN_UP": launch.session, "FORK": "1" if launch.fork else "", **launch.secrets}
        return AgentCall((launch.spec.program("sh"),), env, {launch.home / "talker.conf": "quiet = true\n"})

    def translator(self) -> TalkerAgent:
        return self

    def read(self, event: Mapping[str, Any]) -> Iterator[Said]:
        words: dict[str, Said] = {
            "session": Began(session=str(event.get("session")), model=str(event.get("model", ""))),
            "turn": Turn(),
            "text": Text(str(event.get("text"))),
            "tokens": Used(Usage(tokens_in=event.get("tokens"))),
            "total": SessionTotal(Usage(tokens_in=event.get("total"))),
            "end": Ended(str(event.get("end"))),
        }
        if "fail" in event:
            yield Failed(OutcomeKind(event["fail"]), "as told", event.get("at"))
        yield from (said for word, said in words.items() if word in event)
        if not event.keys() & {*words, "fail"}:
            yield Unknown(str(event))

    def leftovers(self, launch: Launch, stderr: str) -> Iterator[Said]:
        if "overloaded" in stderr:
            yield Complained(OutcomeKind.OVERLOADED, stderr.strip())
        if (used := launch.home / "used").exists():
            yield Recorded(Usage(tokens_in=int(used.read_text())))

    def adopt(self, launch: Launch, old: Path) -> bool:
        memory = old / "memory"
        if not memory.exists() or memory.read_text().strip() != launch.session:
            return False
        shutil.copyfile(memory, launch.home / "memory")
        return True


class LonerAgent(TalkerAgent):
    """The same, but it cannot branch off from a session."""

    name = "loner"
    traits = replace(TalkerAgent.traits, forks=False)
