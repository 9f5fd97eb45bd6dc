"""The `review_head` activity: a reviewer that can only veto; anything but a clear answer is a veto."""

from __future__ import annotations

import json
import secrets
from hashlib import sha256
from pathlib import Path

from ..workflows.model.attempt import CloseAttempt
from ..workflows.model.review import Review, ReviewHead
from .agents.running import PROMPT, AgentRun, run_supervised
from .artifacts import write_whole
from .attempts import close_attempt_folder
from .effect import effect, in_thread
from .home import Home
from .places import Place
from .prompts import review_prompt
from .store import Store
from .workspaces.registry import workspaces

DIFF_LIMIT = 200_000
"""Characters of the diff that a reviewer is shown; the whole change lies in its folder."""

ANSWER_LIMIT = 256 << 10
COMMENT_LIMIT = 2000


class Reviewing:
    """Runs the reviewer agent on a copy of the head's tree."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @effect
    async def review_head(self, request: ReviewHead) -> Review:
        """Ask the reviewer about the head's tree; anything but a clear answer is a veto."""
        place = Place(self._home, request.attempt, self._home.attempt(request.attempt) / "review")
        nonce = await in_thread(_prepare, Store(self._home, request.store), place, request)
        role = {"ORCH_ROLE": "reviewer"}
        run = AgentRun(place, request.agent, (), role, deadline=request.deadline, sandbox=request.sandbox)
        said, stdout = await run_supervised(run)
        close = CloseAttempt(attempt=request.attempt, store=request.store)
        await in_thread(close_attempt_folder, self._home, close)
        if not said.exit.ok:
            return Review(approved=False, answered=False, comment=f"reviewer: {said.exit}", usage=said.usage)
        return read_answer(_tail(stdout), nonce).model_copy(update={"usage": said.usage})


def read_answer(text: str, nonce: str) -> Review:
    """Read the last non-empty line as the answer; without nonce and boolean `veto` it is none, hence a veto."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        answer = json.loads(lines[-1]) if lines else None
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or answer.get("nonce") != nonce or not isinstance(answer.get("veto"), bool):
        return Review(
            approved=False, answered=False, comment="the reviewer's last line is not the JSON it was asked for"
        )
    return Review(approved=not answer["veto"], comment=str(answer.get("reason") or "")[:COMMENT_LIMIT])


def _prepare(store: Store, place: Place, request: ReviewHead) -> str:
    """Open a copy of the head and write the prompt, once; return the nonce of this review."""
    nonce = sha256(f"{place.owner}\0{request.new}\0{_secret(place.folder)}".encode()).hexdigest()[:24]
    opened = place.folder / "opened"
    if not opened.exists():
        workspaces().open(store, place.folder, request.new)
        diff = store.diff(request.old, request.new).decode("utf-8", "replace")
        cut = diff if len(diff) <= DIFF_LIMIT else diff[:DIFF_LIMIT] + "\n[cut: the rest is in your folder]\n"
        write_whole(place.folder / PROMPT, review_prompt(request, cut, nonce))
        opened.touch()
    return nonce


def _secret(folder: Path) -> str:
    """A random word kept outside the workspace, so that no candidate can guess the nonce and a retry finds it again."""
    path = folder / "nonce"
    if not path.exists():
        write_whole(path, secrets.token_hex(16))
    return path.read_text(encoding="utf-8")


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - ANSWER_LIMIT))
        return file.read().decode("utf-8", "replace")
