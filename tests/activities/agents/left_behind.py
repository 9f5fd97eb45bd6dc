"""Recorded runs of agents that leave files: put those where the agent would have, and read it all as a run would."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from orch.activities.agents.adapter import Adapter, Launch
from orch.activities.agents.reading import Reading
from orch.activities.agents.spec import Spec
from orch.activities.agents.stream import EventStream
from orch.workflows.model.exit import Exit
from orch.workflows.model.outcome import Outcome
from orch.workflows.rules.outcome import judge

from .recorded import OK, STREAMS

NOT_LEFT = frozenset({"jsonl", "stderr"})


def launch_in(
    folder: Path,
    adapter: Adapter,
    model: str = "",
    *,
    settings: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    session: str = "",
) -> Launch:
    """A launch whose folders stand below this one."""
    spec = Spec(adapter.name, model, settings or {})
    home, private, tree = (folder / name for name in ("home", "private", "tree"))
    return Launch(spec, home, private, tree, folder / "prompt.md", secrets or {}, session)


def read_left(
    adapter: Adapter, name: str, launch: Launch, *, ended: Exit = OK, chunk: int | None = None
) -> tuple[Outcome, Reading]:
    """Read `NAME.jsonl`, then `NAME.stderr` and the files left as `NAME.FILE`; judge it together with the exit."""
    launch.private.mkdir(parents=True, exist_ok=True)
    recorded = {path.name.removeprefix(f"{name}."): path for path in STREAMS.glob(f"{name}.*")}
    if not recorded:
        raise FileNotFoundError(name)
    for file in recorded.keys() - NOT_LEFT:
        shutil.copyfile(recorded[file], launch.private / file)
    reading, stream, translator = Reading(), EventStream(), adapter.translator()
    if translator is not None:
        data = recorded["jsonl"].read_bytes() if "jsonl" in recorded else b""
        for start in range(0, len(data), chunk or len(data) or 1):
            for event in stream.feed(data[start : start + (chunk or len(data))]):
                reading.take(translator.read(event))
        for event in stream.close():
            reading.take(translator.read(event))
    stderr = recorded["stderr"].read_text() if "stderr" in recorded else ""
    reading.take(adapter.leftovers(launch, stderr))
    told = translator is not None or reading.final or reading.error is not None
    return judge(ended, reading.account() if told else None), reading
