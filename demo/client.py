"""The Python client in one page: a goal run on a scratch repository, followed event by event.

`.venv/bin/python demo/client.py` runs it as it stands.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from pathlib import Path

from orch import Client


def scratch_repository() -> Path:
    """A repository with a greeting that is not polite enough yet."""
    repo = Path(tempfile.mkdtemp(prefix="orch-client-"))
    (repo / "greeting.txt").write_text("hey\n")
    author = ("-c", "user.name=Example", "-c", "user.email=example@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*author, "commit", "-qm", "Greet")):
        subprocess.run(["git", *words], cwd=repo, check=True)  # noqa: S603, S607
    return repo


async def main() -> None:
    """Start a run with two agents, follow it, print who won and why."""
    repo = scratch_repository()
    async with Client.connect() as client:
        run = await client.start_goal(
            goal="Greet politely",
            repo=repo,
            verify=("grep -qi hello greeting.txt", "grep -q '!' greeting.txt"),
            agent=("cmd:echo hello > greeting.txt", "cmd:echo 'Hello!' > greeting.txt"),
        )
        async for event in client.events(run):
            print(f"{event.seq:3}  {event.type}")
        view = await client.result(run)
    for candidate in view.iterations[0].candidates:
        reason = candidate.reason.code.value if candidate.reason else ""
        print(f"candidate {candidate.index}: {candidate.rungs_passed}/{candidate.rungs_total} {reason}")
    print(f"{view.status.value}: {(repo / 'greeting.txt').read_text().strip()}")


if __name__ == "__main__":
    asyncio.run(main())
