"""`protected: auto`: what a ladder's tools load by themselves, and the files that decide what it runs. Pure.

Without any list of protected paths, and with a list that only takes away (`!GLOB`), `auto` holds. A list of other
globs stands for itself, together with the tests that the ladder names; the word `auto` in it adds what is derived.
What is derived comes first, so that a `!GLOB` opens a path again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..workflows.model.contract import Contract
from .followed import Read, behind
from .named_tests import anchored, grader, named_tests
from .runners import BY_PROGRAM, collected, loaded, with_implied
from .shell_line import Started, started

AUTO = "auto"
"""The word that stands for what is derived. (A file of that name is `/auto`.)"""

MAX_DEPTH = 3
"""How deep scripts that run scripts are followed."""


@dataclass
class Derived:
    """What follows from the lines of a ladder.

    Attributes:
        runners: names of the tools that run, in order.
        named: anchored globs of the files that the lines name, or that stand behind them.
        folders: anchored globs of folders that hold programs of the lines (environments inside the tree).
        open: scripts that the lines run and that stay open, as nothing says that they decide.
    """

    runners: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    @property
    def globs(self) -> tuple[str, ...]:
        """All globs, each once."""
        names = with_implied(self.runners)
        return tuple(dict.fromkeys((*loaded(names), *collected(names), *self.folders, *self.named)))


def resolve(contract: Contract, read: Read) -> tuple[Contract, tuple[str, ...]]:
    """The contract with its protected paths as plain globs, and lines that say what they cover."""
    said = tuple(glob for glob in contract.protected if glob != AUTO)
    auto = AUTO in contract.protected or all(glob.startswith("!") for glob in said)
    derived = derive(contract, read) if auto else Derived(named=_named(contract, read))
    protected = tuple(dict.fromkeys((*(glob for glob in derived.globs if glob not in said), *said)))
    return contract.model_copy(update={"protected": protected}), tuple(_covers(derived, said))


def derive(contract: Contract, read: Read) -> Derived:
    """Derive from the rungs; set-up adds the tools it runs, as it builds what the rungs run."""
    found = Derived()
    for rung in contract.rungs:
        _line(rung.run, "", read, found, MAX_DEPTH)
    if contract.setup:
        _line(contract.setup, "", read, found, MAX_DEPTH)
    found.named += _named(contract, read)
    return found


def _named(contract: Contract, read: Read) -> list[str]:
    return [glob for rung in contract.rungs for glob in named_tests(rung.run, lambda path: read(path) is not None)]


def _line(line: str, folder: str, read: Read, found: Derived, depth: int) -> None:
    for one in started(line, folder):
        if runner := BY_PROGRAM.get(one.name):
            found.runners.append(runner)
        found.folders += _environment(one)
        found.named += [anchored(path) for path in _given(one) if read(path) is not None]
        reached = behind(one, read)
        found.named += map(anchored, reached.files)
        if reached.script:
            (found.named if grader(reached.script) else found.open).append(anchored(reached.script))
        if depth:
            for inner in reached.lines:
                _line(inner, reached.folder, read, found, depth - 1)


def _environment(one: Started) -> Iterable[str]:
    """The environment inside the tree that holds a program: `.venv` of `.venv/bin/pytest`, or what is activated."""
    path = one.below(next(iter(one.args), "") if one.name in {".", "source"} else one.word if "/" in one.word else "")
    if match := re.fullmatch(r"(.+)/(?:bin|Scripts)/(?:activate|python[\d.]*|pip[\d.]*|[\w.-]+)", path):
        yield anchored(match[1]) + "/" if "venv" in match[1] or match[1] == "env" else anchored(path)
    elif "node_modules" in path.split("/"):
        yield "node_modules/"


def _given(one: Started) -> Iterable[str]:
    """Files that a runner is told to load: configurations, requirements, plug-ins."""
    for option, value in zip(one.args, (*one.args[1:], ""), strict=False):
        name, equals, own = option.partition("=")
        if name in {"-c", "--config", "--config-file", "--rcfile", "--require", "--setupFiles", "-r", "--requirement"}:
            yield one.below(own if equals else value)
        if option == "-p" and one.name == "pytest":
            yield one.below(value.replace(".", "/") + ".py")


def _covers(derived: Derived, said: Sequence[str]) -> Iterable[str]:
    names = list(dict.fromkeys(derived.runners))
    if names:
        implied = with_implied(names)
        globs = ", ".join((*loaded(implied), *dict.fromkeys(derived.folders)))
        yield f"protected, because {', '.join(names)} would load them: {globs}"
        if tests := [glob.removeprefix("=") for glob in collected(implied)]:
            yield f"protected where they are there, new ones may come: {', '.join(tests)}"
    if fresh := [glob for glob in dict.fromkeys(derived.named) if glob not in said]:
        yield f"protected, because the ladder names them: {', '.join(fresh)}"
    if derived.open:
        yield f"not protected, though the ladder runs them: {', '.join(dict.fromkeys(derived.open))}"
    if names:
        yield "a path is opened by --protect '!PATH'; a list without `auto` counts as it stands"
