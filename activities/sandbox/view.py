"""What a command sees: its needs become a box. The deepest mount that holds a path decides about it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import Access, Box, Mount
from .hiding import TMP, below, hidden_roots, secrets
from .installed import mentioned, program_folders

RESOLVER = Path("/etc/resolv.conf")
"""Where it is a link into /run, its target is shown."""


@dataclass(frozen=True)
class Needs:
    """What one command needs.

    Attributes:
        argv: the command; the absolute paths it names are shown.
        path: its PATH; the programs found there are shown, wherever they are installed.
        state: the state directory, hidden.
        tmp: its folder for temporary files, which it also sees as /tmp and /var/tmp.
        tree: the working copy; None without.
        repo: the user's own checkout, in whose place it sees the working copy; None when there is none.
        names: what lies at the top of the working copy.
        writable: what it may write besides `tree` and `tmp`.
        readable: files of the state directory it may read.
        hidden: folders within those that it may not see.
        protected: paths of the working copy, relative, that it may not write.
        expose: what the user wants shown.
        frozen: whether the working copy is read-only.
        devices: devices of the host's that it may open, besides null, random and the like.
    """

    argv: tuple[str, ...]
    path: str
    state: Path
    tmp: Path
    tree: Path | None = None
    repo: Path | None = None
    names: frozenset[str] = frozenset()
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    protected: tuple[str, ...] = ()
    expose: tuple[Path, ...] = ()
    frozen: bool = False
    devices: tuple[Path, ...] = ()


def box(needs: Needs, *, network: bool) -> Box:
    """The box of a command."""
    hidden = hidden_roots(needs.state)
    state, repo = _real(needs.state), _real(needs.repo) if needs.repo else None
    shown = _shown(needs, hidden)
    rules = [Mount.of(root, Access.HIDDEN) for root in hidden]
    rules += [m for path in shown if not below(_real(path), _around(repo)) for m in _named(path)]
    rules += [Mount.of(state, Access.HIDDEN), *(Mount.of(path, Access.HIDDEN) for path in secrets())]
    if needs.tree is not None:
        tree = _real(needs.tree)
        rules.append(Mount.of(tree, _tree_access(needs)))
        stand_ins = list(_stand_in(needs, tree, repo, [_real(p) for p in shown], rules)) if repo else []
        places = [tree, *(m.path for m in stand_ins if m.source == tree and m.access is not Access.LINK)]
        rules += stand_ins
        rules += [Mount.of(place / name, Access.READ, tree / name) for place in places for name in needs.protected]
    rules += [Mount.of(path, Access.DEVICE) for path in needs.devices]
    rules += [Mount.of(_real(path), Access.READ) for path in needs.readable]
    rules += [Mount.of(_real(path), Access.HIDDEN) for path in needs.hidden if path.is_dir()]
    rules += [Mount.of(_real(path), Access.WRITE) for path in (*needs.writable, needs.tmp)]  # the last word at a path
    return Box(_with_tmp(_effective(rules), _real(needs.tmp)), network)


def credentials(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Those of the paths that lie in what is never shown."""
    never = tuple(secrets())
    return tuple(path for path in paths if below(_real(path), never))


def _shown(needs: Needs, hidden: frozenset[Path]) -> list[Path]:
    """What is put back of hidden places; never a login, nor anything of the state directory."""
    state, never = _real(needs.state), tuple(secrets())
    resolver = [Path(os.path.realpath(RESOLVER))] if RESOLVER.is_symlink() else []
    found = [*program_folders(needs.path, hidden), *mentioned(needs.argv, hidden), *needs.expose, *resolver]
    return [
        path
        for path in dict.fromkeys(found)
        if path.exists()
        and not below(_real(path), (state, *never))
        and below(path, hidden) | below(_real(path), hidden)
    ]


def _named(path: Path) -> Iterator[Mount]:
    """A path by its real name, and by the name it goes by."""
    real = _real(path)
    yield Mount.of(real, Access.READ)
    if path != real:
        yield Mount.of(path, Access.READ, real)


def _stand_in(needs: Needs, tree: Path, repo: Path, shown: list[Path], rules: list[Mount]) -> Iterator[Mount]:
    """The working copy in the place of the user's checkout: absolute paths into it mean the candidate's files.

    A link does where it can be made. What only the checkout has of the programs on PATH, such as an environment that
    is not carried, is put back beside links to all that lies at the top of the working copy.
    """
    if any(root.is_relative_to(repo) for root in hidden_roots(needs.state)) or not repo.is_dir():
        return  # the repository is a home: what lies in it is hidden as that
    own = [path for path in shown if path.is_relative_to(repo) and path != repo]
    missing = [path for path in own if path.relative_to(repo).parts[0] not in needs.names]
    holder = _holder(repo, {rule.path: rule for rule in rules})
    if missing:
        kept = {path.relative_to(repo).parts[0] for path in missing}
        yield Mount.of(repo, Access.HIDDEN)
        yield from (Mount.of(path, Access.READ) for path in missing)
        yield from (Mount.of(repo / name, Access.LINK, tree / name) for name in sorted(needs.names - kept))
    elif holder is not None and holder.access is Access.HIDDEN:
        yield Mount.of(repo, Access.LINK, tree)
    else:
        yield Mount.of(repo, _tree_access(needs), tree)


def _tree_access(needs: Needs) -> Access:
    return Access.READ if needs.frozen else Access.WRITE


def _effective(rules: Iterable[Mount]) -> list[Mount]:
    """The mounts that change anything, parents first; of two at one path the later one."""
    kept: dict[Path, Mount] = {}
    for mount in sorted({rule.path: rule for rule in rules}.values(), key=lambda m: (len(m.path.parts), m.path)):
        above = _holder(mount.path, kept)
        if not _redundant(mount, above):
            kept[mount.path] = mount
    return list(kept.values())


def _redundant(mount: Mount, above: Mount | None) -> bool:
    if above is None:
        return mount.access is Access.READ and mount.path == mount.source
    if above.access is Access.LINK:
        return True
    if mount.access is Access.HIDDEN:
        return above.access is Access.HIDDEN and above.path not in TMP  # these become writable
    if above.access is Access.READ and mount.path != _real(mount.path):
        return True  # the link itself is seen there
    return mount.access is above.access and mount.source == above.source / mount.path.relative_to(above.path)


def _holder(path: Path, mounts: Mapping[Path, Mount]) -> Mount | None:
    """The deepest mount above a path."""
    return next((mounts[parent] for parent in path.parents if parent in mounts), None)


def _with_tmp(mounts: list[Mount], tmp: Path) -> tuple[Mount, ...]:
    """The folders of temporary files: the command's own, but in memory where something else must be mounted in it."""
    places = {Path(os.path.realpath(path)) for path in TMP}
    return tuple(
        mount
        if mount.path not in places
        else Mount.of(mount.path, Access.SCRATCH)
        if any(other is not mount and other.path.is_relative_to(mount.path) for other in mounts)
        else Mount.of(mount.path, Access.WRITE, tmp)
        for mount in mounts
    )


def _around(repo: Path | None) -> tuple[Path, ...]:
    return () if repo is None else (repo,)


def _real(path: Path) -> Path:
    """A mount point must not be a link."""
    return Path(os.path.realpath(path))
