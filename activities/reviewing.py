"""The `review_head` activity: a reviewer that can only veto; anything but a clear answer is a veto."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from math import inf
from pathlib import Path

from ..workflows.model.attempt import CloseAttempt
from ..workflows.model.outcome import OutcomeKind
from ..workflows.model.review import Review, ReviewHead
from ..workflows.model.usage import Usage
from ..workflows.rules.outcome import retry_at
from . import clock
from .agents.preparing import AgentRun
from .agents.running import Ran, run_supervised
from .agents.stream import parsed
from .artifacts import write_whole
from .attempts import close_attempt_folder
from .effect import effect, in_thread
from .home import Home
from .places import Place
from .prompts import review_prompt
from .sandbox import REVIEW
from .store import Store
from .workspaces.registry import open_workspace

PROMPT = "review.md"
"""The prompt as it was made from the tree, before any launch."""

DIFF_LIMIT = 200_000
"""Characters of the diff that a reviewer is shown; the whole change lies in its folder."""

COMMENT_LIMIT = 2000

SPOKE = frozenset({OutcomeKind.DONE, OutcomeKind.NO_CHANGE})
"""After any other outcome there is no answer to read."""


class Reviewing:
    """Runs the reviewer agent on a copy of the head's tree."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @effect
    async def review_head(self, request: ReviewHead) -> Review:
        """Ask the reviewer about the head's tree; anything but a clear answer is a veto."""
        place = Place(self._home, request.attempt, self._home.attempt(request.attempt) / "review")
        request = request.model_copy(update={"deadline": clock.here(request.deadline, clock.offset())})
        nonce = await in_thread(_prepare, Store(self._home, request.store), place, request)
        said, usage = await _answered(place, request)
        close = CloseAttempt(attempt=request.attempt, store=request.store)
        await in_thread(close_attempt_folder, self._home, close)
        if said.outcome.kind not in SPOKE:
            words = f"reviewer: {said.outcome.kind.value.replace('_', ' ')}: {said.outcome.detail}".rstrip(": ")
            return Review(approved=False, answered=False, comment=words, usage=usage)
        return read_answer(said.answer, nonce).model_copy(update={"usage": usage})


async def _answered(place: Place, request: ReviewHead) -> tuple[Ran, Usage]:
    """The reviewer's last launch, and what all of them used; what passes by itself is waited for."""
    run = AgentRun(
        place,
        request.agent,
        (place.folder / PROMPT).read_text(encoding="utf-8"),
        (),
        {"ORCH_ROLE": "reviewer"},
        deadline=request.deadline,
        limit_s=request.limit_s,
        sandbox=request.sandbox,
        spend=request.spend,
        profile=REVIEW,
    )
    usage, ends = Usage(), Counter[OutcomeKind]()
    last = min(time.time() + request.limit_s, inf if request.deadline is None else request.deadline)
    while True:
        ran = await run_supervised(run)
        usage, kind, now = usage + ran.report.usage, ran.outcome.kind, time.time()
        again, left_s = retry_at(ran.outcome, before=ends[kind], now=now, deadline=last), request.limit_s - usage.wall_s
        if again is None or left_s <= 0:
            return ran, usage
        ends[kind] += 1
        run = run if ran.report.blocked else replace(run, launch=run.launch + 1, limit_s=left_s)
        await asyncio.sleep(max(0.0, again - now))


def read_answer(text: str, nonce: str) -> Review:
    """Read the last non-empty line as the answer; without nonce and boolean `veto` it is none, hence a veto."""
    lines = [line for line in text.splitlines() if line.strip()]
    answer = parsed(lines[-1]) if lines else None
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
        open_workspace(store, place.folder, request.new)
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
