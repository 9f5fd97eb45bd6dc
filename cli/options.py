"""The options of a goal run as they were given; `plan.py` resolves them to a request."""

from __future__ import annotations

from pathlib import Path

from ..workflows.model.base import Value


class GoalOptions(Value):
    """Raw options: None or empty means not given. Nothing is checked but the types.

    Attributes:
        goal: what the agents are asked to reach, in words.
        goal_file: a text file that holds the goal instead.
        repo: a folder of the user's working tree; or a URL, as a string.
        ref: of a URL, a branch, a tag or a full commit id; empty for its HEAD.
        verify: shell lines, each a rung.
        contract: a YAML contract file, instead of `verify`, `protect`, `setup`, `carry`, `secret` and `rung_timeout`.
        candidates: competing attempts per iteration.
        best_of: another spelling of `candidates`.
        agent: agent specs, repeated over the candidates in turn.
        max_iterations: iterations before the run ends without success.
        budget_tokens: tokens of all attempts together.
        budget_usd: US dollars of all attempts together.
        deadline: seconds from the start.
        attempt_timeout: seconds for one agent process.
        rung_timeout: seconds for each rung.
        protect: globs that no candidate may change.
        setup: a shell line run once per workspace.
        carry: globs of ignored paths that every workspace gets.
        secret: references to secrets for agents, `NAME=env:VARIABLE` or `NAME=cmd:SHELL LINE`.
        sandbox: True: required; False: off; None: on where a probe proves it.
        sign_off: the reviewer agent's spec.
        seal: whether to wait for approval of the contract.
        session: `continue`, `fork` or `fresh`: what the next iteration does with the winner's conversation.
        prompt_template: the project's own prompt template.
        exchange: URL of the artifact store through which attempts may go to other hosts.
        needs: labels that a host must have to be given an attempt.
        priority: 1 to 5, the smaller goes first.
        promote: `worktree`, `branch:NAME` or `none`.
        id: the run's id; made from the goal when empty.
    """

    goal: str = ""
    goal_file: Path | None = None
    repo: Path | str = Path()
    ref: str = ""
    verify: tuple[str, ...] = ()
    contract: Path | None = None
    candidates: int | None = None
    best_of: int | None = None
    agent: tuple[str, ...] = ()
    max_iterations: int | None = None
    budget_tokens: int | None = None
    budget_usd: float | None = None
    deadline: float | None = None
    attempt_timeout: float | None = None
    rung_timeout: float | None = None
    protect: tuple[str, ...] = ()
    setup: str = ""
    carry: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    sandbox: bool | None = None
    sign_off: str = ""
    seal: bool | None = None
    session: str = ""
    prompt_template: Path | None = None
    exchange: str = ""
    needs: tuple[str, ...] = ()
    priority: int | None = None
    promote: str = ""
    id: str = ""

    def given(self) -> frozenset[str]:
        """The names of the options that were given."""
        fields = type(self).model_fields
        return frozenset(name for name in fields if getattr(self, name) != fields[name].default)
