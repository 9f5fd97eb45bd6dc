"""Raw options resolved to a request: defaults applied, contract compiled, all that can be refused refused."""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ..activities.collecting.disk import free_bytes
from ..workflows.errors import RefusedError
from ..workflows.model.contract import Contract, Rung
from ..workflows.model.goal import USUAL_PRIORITY, GoalRequest, SandboxMode, is_url
from ..workflows.model.placement import Placement
from ..workflows.model.promotion import PromoteTarget
from . import carrying, placing, preflight, sources
from .contract_file import load_contract
from .defaults import with_defaults
from .derived_protection import resolve
from .durations import show_duration
from .options import GoalOptions
from .reading import reader
from .sources import Source
from .talk import clean, one_line, plural

MAX_GOAL_BYTES = 1 << 20
"""A larger goal file is refused before it is read whole."""

SLUG = 32
"""Characters of the goal in a run's id."""

_SANDBOX = {None: SandboxMode.AUTO, True: SandboxMode.REQUIRED, False: SandboxMode.OFF}


@dataclass(frozen=True)
class GoalPlan:
    """What would be started.

    Attributes:
        request: the resolved request; its `host` is filled in when it is started.
        facts: lines worth reading before the start.
    """

    request: GoalRequest
    facts: tuple[str, ...]


def resolve_goal(options: GoalOptions, *, state: Path) -> GoalPlan:
    """Resolve and check; RefusedError before anything is created or started. `state` is the state directory."""
    preflight.contradictions(options)
    with sources.opened(options.repo, options.ref, state) as source:
        options = with_defaults(options, source.root)
        preflight.contradictions(options)
        contract, facts = _contract(options, source.root)
        request = _sealed(_request(options, source, contract), options, state)
    preflight.programs(request)
    preflight.usable(request)
    preflight.sandbox(request.sandbox)
    placing.check(request)
    sources.check(source, promote=str(request.promote), carry=contract.carry)
    repository = source.repository
    if repository is None:
        preflight.space(lambda: source.bytes, state)
        return GoalPlan(request, (*_facts(request), *facts))
    preflight.operation(repository, request.promote)
    preflight.space(lambda: preflight.tree_bytes(repository), state)
    carrying.check(repository, contract.carry, free=free_bytes(state), copies=lambda: carrying.copies(state))
    return GoalPlan(request, (*_facts(request), *facts, *carrying.suggestions(repository, contract.carry)))


def _contract(options: GoalOptions, root: Path) -> tuple[Contract, list[str]]:
    goal = _goal(options)
    if options.contract:
        contract = load_contract(options.contract, goal=goal)
    else:
        preflight.some_rung(options)
        contract = _compile(options, goal)
    contract, covered = resolve(contract, reader(root))
    return contract, [clean(line) for line in covered]


def _goal(options: GoalOptions) -> str:
    """The goal in words; empty when the contract file has to say it."""
    if options.goal_file is None:
        return preflight.goal(options.goal, needed=options.contract is None)
    try:
        with options.goal_file.open("rb") as file:
            text = file.read(MAX_GOAL_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise RefusedError(
            f"the goal file {options.goal_file} cannot be read: {(why or 'unknown').lower()}",
            hint="name a readable text file",
        ) from None
    return preflight.goal(text, needed=True)


def _compile(options: GoalOptions, goal: str) -> Contract:
    timeout = {} if options.rung_timeout is None else {"timeout_s": options.rung_timeout}
    try:
        rungs = tuple(_rung(line, index, timeout) for index, line in enumerate(options.verify, 1))
        return Contract(
            goal=goal,
            rungs=rungs,
            protected=options.protect,
            setup=options.setup.strip(),
            carry=options.carry,
            secrets=preflight.secrets(options.secret),
        )
    except ValidationError as error:
        raise preflight.invalid(error) from None


def _rung(line: str, index: int, timeout: dict[str, float]) -> Rung:
    return Rung.model_validate({"name": f"verify-{index}", "run": line, **timeout})


def _request(options: GoalOptions, source: Source, contract: Contract) -> GoalRequest:
    caps = preflight.caps(_caps(options))
    try:
        return GoalRequest(
            run=options.id or run_id("goal", contract.goal),
            repo=source.repo,
            ref=source.commit,
            host="",
            contract=contract,
            agents=preflight.agents(options.agent, caps),
            caps=caps,
            sandbox=_SANDBOX[options.sandbox],
            sign_off=preflight.reviewer(options.sign_off),
            seal=bool(options.seal),
            session=preflight.session(options.session),
            template=preflight.template(options.prompt_template),
            placement=Placement(
                exchange=options.exchange,
                needs=tuple(dict.fromkeys(options.needs)),
                away_s=placing.host_away(os.environ),
            ),
            priority=USUAL_PRIORITY if options.priority is None else options.priority,
            promote=promote_target(options.promote or ("none" if source.repository is None else "")),
            path=os.environ.get("PATH", ""),
        )
    except ValidationError as error:
        raise preflight.invalid(error) from None


def _sealed(request: GoalRequest, options: GoalOptions, state: Path) -> GoalRequest:
    """The request as the engine may see its id and search attributes: with encryption on they hold no words."""
    from ..activities.home import Home
    from ..worker.keys import load_keys

    ring = load_keys(Home(state))
    if ring is None:
        return request
    return request.model_copy(update={"run": options.id or run_id("goal", ""), "label": ring.label(request.repo)})


def _caps(options: GoalOptions) -> dict[str, object]:
    given = {
        "max_iterations": options.max_iterations,
        "candidates": next(
            (n for n in (options.candidates, options.best_of) if n is not None), len(options.agent) or None
        ),
        "tokens": options.budget_tokens,
        "usd": options.budget_usd,
        "deadline_s": options.deadline,
        "attempt_s": options.attempt_timeout,
    }
    return {name: value for name, value in given.items() if value is not None}


def promote_target(text: str) -> PromoteTarget:
    """Read `worktree`, `branch:NAME` or `none`; empty is `worktree`."""
    try:
        return PromoteTarget.parse(text or "worktree")
    except ValueError:
        raise RefusedError(
            f"{text!r} is no target of a promotion", hint="write worktree, branch:NAME or none"
        ) from None


def run_id(kind: str, text: str) -> str:
    """A fresh readable id: the kind, the first words (none of an empty text), six random digits."""
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if len(slug) > SLUG:
        slug = slug[:SLUG].rpartition("-")[0] or slug[:SLUG]
    return "-".join(part for part in (kind, slug, secrets.token_hex(3)) if part)


def _facts(request: GoalRequest) -> list[str]:
    caps, contract = request.caps, request.contract
    limits = [f"at most {plural(caps.candidates * caps.max_iterations, 'attempt')}"]
    limits += [f"{caps.tokens:,} tokens"] if caps.tokens else []
    limits += [f"${caps.usd:.2f}"] if caps.usd else []
    limits += [f"deadline in {show_duration(caps.deadline_s)}"] if caps.deadline_s else []
    lines = [
        f"goal: {one_line(contract.goal, 100)}",
        _where(request),
        f"ladder: {' → '.join(one_line(rung.run, 60) for rung in contract.rungs)}",
        f"candidates: {caps.candidates} per iteration, {', '.join(limits)}",
    ]
    if request.placement.exchange:
        needs = f" with {', '.join(request.placement.needs)}" if request.placement.needs else ""
        lines.append(f"hosts: any{needs}, by way of {clean(request.placement.exchange)}")
    lines += [f"set-up: {one_line(contract.setup, 80)}"] if contract.setup else []
    given = (f"{s.name} from {one_line(s.source, 60)}, to {' and '.join(s.to)}" for s in contract.secrets)
    return lines + ([f"secrets: {'; '.join(given)}"] if contract.secrets else [])


def _where(request: GoalRequest) -> str:
    if not is_url(request.repo):
        return f"tree: {clean(request.repo)}, promoted to {request.promote}"
    return f"repository: {clean(request.repo)} at {request.ref[:12]}; the result stays here: orch diff {request.run}"
