"""What no lane of a round may change: what is said, what grades, and all that the campaign's commands name."""

from __future__ import annotations

from collections.abc import Sequence

from ..activities.commit_tree import CommitTree
from ..activities.round_facts import broken
from ..workflows.model.contract import Contract, Rung
from ..workflows.model.round.plan import Commands
from .derived_protection import derive
from .named_tests import anchored
from .shell_line import started
from .talk import clean
from .yaml_lines import Document

_STEPS = ("setup", "probe", "build", "smoke", "benchmark", "validate_")


def protection(
    commands: Commands, said: Sequence[str], validator: Sequence[str], tree: CommitTree
) -> tuple[tuple[str, ...], list[str]]:
    """The globs of protected paths, and lines that say which they are besides those that are said.

    What the commands name or load comes first, so that a `!GLOB` opens a path; the validator's files come last, so that
    nothing opens them.
    """
    derived = derive(_as_contract(commands), tree.text)
    named = dict.fromkeys((*derived.named, *derived.open, *_arguments(commands, tree)))
    loaded = [glob for glob in derived.globs if glob not in derived.named]
    graders = [anchored(path) for path in validator]
    facts = []
    if graders:
        facts.append(f"protected, because they decide what is right: {', '.join(map(clean, graders))}")
    if named:
        facts.append(f"protected, because the commands name them: {', '.join(map(clean, named))}")
    if loaded:
        facts.append(f"protected, because the commands' tools load them: {', '.join(map(clean, loaded))}")
    before = dict.fromkeys(glob for glob in (*loaded, *named, *said) if glob not in graders)
    return (*before, *graders), facts


def sound_globs(document: Document, globs: Sequence[str]) -> list[str]:
    """Those that are globs; the others are refused."""
    bad = {index for index, glob in enumerate(globs) if broken(glob.removeprefix("="))}
    for index in bad:
        document.refuse(("protected", index), f"`{globs[index]}` is no glob", "write it as in a .gitignore")
    return [glob for index, glob in enumerate(globs) if index not in bad]


def _as_contract(commands: Commands) -> Contract:
    """The commands as a ladder: set-up's own line is a rung like the others, as it decides what is measured, too."""
    found = [(name.rstrip("_"), getattr(commands, name)) for name in _STEPS]
    return Contract(goal="x", rungs=tuple(Rung(name=name, run=command.run) for name, command in found if command))


def _arguments(commands: Commands, tree: CommitTree) -> list[str]:
    """What of the tree stands as a word in the lines that grade, such as a benchmark's input, as anchored globs."""
    lines = [command.run for command in (commands.benchmark, commands.validate_) if command]
    words = (one.below(word) for line in lines for one in started(line) for word in (one.word, *one.args))
    return [anchored(path) for path in dict.fromkeys(words) if path and tree.text(path) is not None]
