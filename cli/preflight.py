"""What can be refused before anything is started: each check names the thing and the mend."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ..activities.collecting.disk import free_bytes
from ..activities.limits import FLOOR_BYTES
from ..workflows.errors import RefusedError
from ..workflows.model.budget import MAX_CANDIDATES, Caps
from ..workflows.model.contract import MAX_GOAL_CHARS, Secret, SecretUse
from ..workflows.model.goal import MAX_TEMPLATE, GoalRequest, SandboxMode
from ..workflows.model.outcome import SessionMode
from ..workflows.model.promotion import PromoteMode, PromoteTarget
from ..workflows.rules.budget import worst_case
from .nearest import offer
from .options import GoalOptions

if TYPE_CHECKING:
    from ..activities.repository import Repository

AMPLE_BYTES = 50 << 30
"""With this much free space the tree is not measured: that would cost every start the time of walking it."""

COPIES = 3
"""A run needs room for this many copies of the tree at the least: store, workspace, measured copy."""

_RIVALS = (
    ("verify", "contract", "the contract file holds the ladder: write the command as a rung there"),
    ("protect", "contract", "write `protected:` in the contract file"),
    ("setup", "contract", "write `setup:` in the contract file"),
    ("carry", "contract", "write `carry:` in the contract file"),
    ("secret", "contract", "write `secrets:` in the contract file"),
    ("rung_timeout", "contract", "write `timeout:` at each rung of the contract file"),
    ("best_of", "candidates", "they are two spellings of one option: give one"),
    ("goal_file", "goal", "give the goal as TEXT or as a file"),
)


def contradictions(options: GoalOptions) -> None:
    """Refuse two options that exclude one another."""
    given = options.given()
    for one, other, mend in _RIVALS:
        if {one, other} <= given:
            raise RefusedError(f"{_flag(one)} and {_flag(other)} contradict each other", hint=mend)


def _flag(name: str) -> str:
    return "TEXT" if name == "goal" else f"--{name.replace('_', '-')}"


def goal(text: str, *, needed: bool) -> str:
    """The goal, stripped; refused when empty, too long or holding a NUL."""
    stripped = text.strip()
    if not stripped and (needed or text):
        raise RefusedError("the goal is empty", hint="say in words what the agents are to reach")
    if len(stripped) > MAX_GOAL_CHARS:
        raise RefusedError(
            f"the goal has {len(stripped):,} characters, at most {MAX_GOAL_CHARS:,} are allowed",
            hint="put the details in a file of the repository and name it in the goal",
        )
    if "\0" in stripped:
        raise RefusedError("the goal holds a NUL character", hint="remove it")
    return stripped


def some_rung(options: GoalOptions) -> None:
    """Refuse a run that nothing would decide."""
    if not options.verify:
        raise RefusedError(
            "no rung: nothing would decide who wins", hint="give --verify 'pytest -q' or --contract FILE"
        )
    if not all(line.strip() for line in options.verify):
        raise RefusedError("--verify is empty", hint="give the command that must exit 0")


def caps(given: dict[str, Any]) -> Caps:
    """The caps; refused outside their limits, with what they would have allowed at worst."""
    count = given.get("candidates", 1)
    if count < 1:
        raise RefusedError(f"{count} candidates cannot compete", hint=f"give -n 1 to {MAX_CANDIDATES}")
    if count > MAX_CANDIDATES:
        rounds = given.get("max_iterations", Caps().max_iterations)
        raise RefusedError(
            f"{count} candidates are more than {MAX_CANDIDATES}: at worst {count} x {rounds} iterations = "
            f"{count * rounds:,} agent runs would be paid for",
            hint=f"give -n {MAX_CANDIDATES} or less; with {rounds} iterations that is at most "
            f"{worst_case(Caps(candidates=MAX_CANDIDATES, max_iterations=rounds)):,} agent runs",
        )
    try:
        return Caps.model_validate(given)
    except ValidationError as error:
        raise invalid(error) from None


def secrets(given: tuple[str, ...]) -> tuple[Secret, ...]:
    """References to secrets for agents; what is none is refused by its name alone: it may be a value."""
    return tuple(map(_secret, given))


def _secret(text: str) -> Secret:
    name, _, source = text.partition("=")
    try:
        return Secret(name=name, source=source)
    except ValidationError:
        raise RefusedError(
            f"--secret {name[:40] if source else '…'}: that is no reference, or no variable that is free",
            hint="give NAME=env:VARIABLE or NAME='cmd:SHELL LINE'; a value itself is never given",
        ) from None


_OPTIONS = {
    "tokens": "--budget-tokens",
    "usd": "--budget-usd",
    "deadline_s": "--deadline",
    "attempt_s": "--attempt-timeout",
    "timeout_s": "--rung-timeout",
    "max_iterations": "--max-iterations",
    "run": "--id",
    "protected": "--protect",
    "carry": "--carry",
    "needs": "--needs",
    "priority": "--priority",
}


def invalid(error: ValidationError) -> RefusedError:
    """The first fault a model found, in the words of the options."""
    detail = error.errors()[0]
    named = [str(part) for part in detail["loc"] if isinstance(part, str)]
    option = next((_OPTIONS[name] for name in reversed(named) if name in _OPTIONS), ".".join(named) or "the input")
    said = detail["msg"].removeprefix("Value error, ").removeprefix("Input ").lower()
    hint = "lower-case letters, digits, dots, dashes and underscores" if option in {"--id", "--needs"} else ""
    return RefusedError(f"{option}: {str(detail['input'])[:60]!r} {said}", hint=hint)


def agents(specs: tuple[str, ...], limits: Caps) -> tuple[str, ...]:
    """The agents' specs; refused when there is none, an unknown one, or more than candidates."""
    if not specs:
        raise RefusedError("no agent", hint="give --agent 'cmd:SHELL LINE'; repeat it to mix agents")
    if len(specs) > limits.candidates:
        raise RefusedError(
            f"{len(specs)} agents for {limits.candidates} candidates: some would never run",
            hint=f"give -n {len(specs)}, or fewer agents",
        )
    return tuple(_known(spec) for spec in specs)


def session(text: str) -> SessionMode:
    """The mode of sessions; empty is `continue`."""
    modes = [mode.value for mode in SessionMode]
    if text and text not in modes:
        raise RefusedError(f"--session: {text[:60]!r} is no mode", hint=offer(text, modes))
    return SessionMode(text or SessionMode.CONTINUE)


def template(path: Path | None) -> str:
    """The prompt template; refused when it cannot be read, is too long, or leaves out what agents need."""
    if path is None:
        return ""
    from ..activities.prompt_template import check

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise RefusedError(f"the prompt template {path} cannot be read: {why}", hint="name a text file") from None
    if len(text) > MAX_TEMPLATE:
        raise RefusedError(
            f"the prompt template {path} has {len(text):,} characters, at most {MAX_TEMPLATE:,} are allowed",
            hint="put the details in a file of the repository and name it in the template",
        )
    check(text, str(path))
    return text


def reviewer(spec: str) -> str:
    """The reviewer's spec, checked like any agent's; empty stays empty."""
    return _known(spec) if spec else ""


def _known(spec: str) -> str:
    from ..activities.agents.registry import resolve

    resolve(spec)
    return spec


def programs(request: GoalRequest) -> None:
    """Refuse a rung or an agent whose program is not there; what set-up may install is not asked for."""
    from ..activities.agents.registry import resolve
    from ..activities.programs import missing_program

    specs = dict.fromkeys(spec for spec in (*request.agents, request.sign_off) if spec)
    found = [(spec, resolve(spec)) for spec in specs]
    missing = [(f"agent {spec!r}", agent.adapter.missing(agent.spec, request.path or None)) for spec, agent in found]
    if not request.contract.setup:
        missing += [(f"rung {rung.name!r}", missing_program(rung.run)) for rung in request.contract.rungs]
    for what, name in missing:
        if name:
            raise RefusedError(f"{what}: there is no program {name!r} on PATH", hint="install it, or mend the command")


def usable(request: GoalRequest) -> None:
    """Refuse an agent whose program is too old or broken here, or that has no login; all are asked at once."""
    from ..activities.agents.registry import resolve
    from ..activities.agents.survey import Flaw, keys, look
    from .agents import hint

    specs = [spec for spec in dict.fromkeys((*request.agents, request.sign_off)) if spec]
    agents = [resolve(spec).spec for spec in specs]
    with ThreadPoolExecutor(len(agents)) as threads:
        found = threads.map(lambda agent: look(agent.name, agent.settings.get("bin", "")), agents)
    given = {secret.name for secret in request.contract.secrets if SecretUse.AGENT in secret.to}
    for spec, one in zip(specs, found, strict=True):
        if one.flaw is Flaw.NO_LOGIN and one.traits and given.intersection(keys(one.traits)):
            continue
        if one.flaw is not None:
            raise RefusedError(
                f"agent {spec!r} cannot be used here: {one.flaw.value.replace('_', ' ')}", hint=hint(one)
            )


def sandbox(mode: SandboxMode) -> None:
    """Refuse a setting that names no sandbox and no workspaces, and --sandbox on a host that cannot give one."""
    from ..worker.settings import refuse_unknown_makers

    refuse_unknown_makers()
    if mode is SandboxMode.REQUIRED:
        from ..activities.sandbox.registry import probe

        if flaw := probe():
            raise RefusedError(f"--sandbox: {flaw.why}", hint=f"{flaw.mend}; or give --no-sandbox")


def round_sandbox(mode: SandboxMode) -> None:
    """Refuse a round on a host that cannot give a sandbox, unless it was said to do without."""
    from ..worker.settings import refuse_unknown_makers

    refuse_unknown_makers()
    if mode is not SandboxMode.OFF:
        from ..activities.sandbox.registry import probe

        if flaw := probe():
            raise RefusedError(
                f"a round runs in the sandbox, and that does not work here: {flaw.why}",
                hint=f"{flaw.mend}; or give --no-sandbox",
            )


def operation(found: Repository, target: PromoteTarget) -> None:
    """Refuse to promote into a tree in the middle of a merge, a rebase or the like."""
    if target.mode is PromoteMode.WORKTREE and found.operation:
        raise RefusedError(
            f"a {found.operation} is in progress in {found.top}",
            hint="finish or abort it, or start with --promote none or branch:NAME",
        )


def space(tree: Callable[[], int], state: Path) -> None:
    """Refuse to fill the disk that holds the state directory; `tree` tells the bytes of a copy."""
    free = free_bytes(state)
    if free >= AMPLE_BYTES:
        return
    needed = max(FLOOR_BYTES, COPIES * tree())
    if free < needed:
        raise RefusedError(
            f"no space: {free >> 20:,} MiB are free beside {state}, a run of this tree needs {needed >> 20:,} MiB",
            hint="`orch gc` collects what no live run needs; or set ORCH_STATE to a larger disk",
        )


def tree_bytes(found: Repository) -> int:
    """The size of the tracked and untracked files that a snapshot would take."""
    from ..activities.git import Git

    listed = Git(found.top).lines("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sum(_bytes(os.path.join(os.fsencode(found.top), name)) for name in set(listed))  # noqa: PTH118 - bytes


def _bytes(path: bytes) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
