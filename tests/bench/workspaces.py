"""`python -m tests.bench.workspaces`: what workspaces cost by each provider, beside `git worktree add` in sequence."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from orch.activities.carry import carry
from orch.activities.home import Home
from orch.activities.objects import import_commit
from orch.activities.repository import inspect
from orch.activities.store import Store
from orch.activities.workspaces import TREE, Layers
from orch.activities.workspaces.bases import bases_of, make_layer, plain_base
from orch.activities.workspaces.registry import PROVIDERS, flaws

from .workspaces_contenders import ByHand, ByProvider, Contender, edit
from .workspaces_limits import inodes, limits, room
from .workspaces_repo import SETTLED_S, git, make_dependencies, make_repository
from .workspaces_report import Samples, carried_table, limits_table, making_table, snapshot_table

SIZES = (1_000, 10_000, 60_000)
COUNTS = (1, 4, 16, 64)
CHANGES = (0, 1, 10, 1_000)
T = TypeVar("T")

LOOKED_AT = 4
"""In how many of the workspaces made at once git is run."""

MOST = {"git worktree add": 1_000_000, "clone": 250_000, "worktree": 250_000}
"""Files in all copies at once, beyond which a contender that copies is left out: minutes and gigabytes."""


def main() -> None:
    """Measure and print."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="orch-bench-", dir=options.folder) as name:
        folder = Path(name)
        facts = {"cores": os.cpu_count(), "kernel": platform.release(), "git": git(folder, "version").split()[-1]}
        _say(", ".join(f"{key} {value}" for key, value in facts.items()) + f", turns {options.repeat}")
        if why := flaws(Home(folder / "probe")):
            raise SystemExit(f"no overlays in this folder: {why['overlay']}; name another one with --folder")
        measured = limits(folder)
        print(limits_table(measured))
        results = {files: _measure(folder / str(files), files, options) for files in options.files}
        for files, samples in results.items():
            print(f"\n### {files:,} files\n\n{making_table(samples, measured)}\n\n{snapshot_table(samples, measured)}")
        if options.carried:
            print(f"\n### Carried\n\n{carried_table(_carried(folder / 'carried', options))}")
    if options.json:
        document = {"facts": facts, "limits_ms": measured, **{str(n): s.facts() for n, s in results.items()}}
        options.json.write_text(json.dumps(document, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.workspaces", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1,000 files, N = 1 and 4, 100 MB carried")
    parser.add_argument("--repeat", type=int, default=5, help="interleaved turns (default 5)")
    parser.add_argument(
        "--files", type=int, nargs="+", default=[1_000, 10_000, 60_000], help="sizes of the repositories"
    )
    parser.add_argument("--counts", type=int, nargs="+", default=list(COUNTS), help="workspaces at once")
    parser.add_argument("--carried", type=int, default=1_024, help="megabytes of dependencies; 0 for none")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    parser.add_argument("--folder", type=Path, help="where to work: a file system that overlays can be written on")
    options = parser.parse_args()
    if options.quick:
        options.files, options.counts, options.carried = [1_000], [1, 4], 100
    return options


def _measure(folder: Path, files: int, options: argparse.Namespace) -> Samples:
    """All steps on one repository, the contenders taking turns."""
    folder.mkdir()
    repo, store, commit = _repository(folder, files)
    by_hand = ByHand(repo, folder / "by-hand")
    contenders: list[Contender] = [by_hand, *(ByProvider(p, store, commit) for p in PROVIDERS.values())]
    samples = Samples(files)
    for turn in range(options.repeat):
        shutil.rmtree(bases_of(store), ignore_errors=True)
        samples.add("base", "overlay", 1, _timed(lambda: plain_base(store, commit)))
        time.sleep(SETTLED_S)
        for number in options.counts:
            for contender in _in_turn(contenders, turn):
                if number * files <= MOST.get(contender.name, number * files):
                    _make(contender, number, samples)
        _say(f"{files:,} files: turn {turn + 1} of workspaces")
    _snapshots(contenders, by_hand, samples, options.repeat)
    shutil.rmtree(folder)
    return samples


def _repository(folder: Path, files: int) -> tuple[Path, Store, str]:
    repo = make_repository(folder / "repo", files)
    repository = inspect(repo)
    store = Store.of(Home(folder / "state"), repository)
    assert repository.head
    import_commit(store.git, repository, repository.head)
    return repo, store, repository.head


def _make(contender: Contender, number: int, samples: Samples) -> None:
    """Make so many workspaces, have git look at some of them, and remove all."""
    name, numbers = contender.name, range(number)
    samples.add("make", name, number, _timed(lambda: _open_all(contender, numbers)))
    samples.inodes[name] = inodes(contender.folder(0))
    samples.room[name] = room(contender.folder(0))
    for n in numbers[:LOOKED_AT]:
        samples.add("head", name, number, _timed(partial(contender.inside, n, "git", "rev-parse", "HEAD")))
        samples.add("status", name, number, _timed(partial(_clean, contender, n)))
    samples.add("remove", name, number, _timed(lambda: contender.close(numbers)))


def _open_all(contender: Contender, numbers: Iterable[int]) -> None:
    for number in numbers:
        contender.open(number)


def _clean(contender: Contender, number: int) -> None:
    if said := contender.inside(number, "git", "status", "--porcelain"):
        raise SystemExit(f"{contender.name}: a new workspace is not clean: {said[:200]!r}")


def _snapshots(contenders: Sequence[Contender], by_hand: ByHand, samples: Samples, repeat: int) -> None:
    """One workspace for each number of changes; each turn overwrites the same files anew."""
    names = git(by_hand.repo, "ls-files", "part*").splitlines()
    chosen = {k: names[:: max(1, len(names) // k)][:k] if k else [] for k in CHANGES}
    for contender in contenders:
        for changes in chosen:
            contender.open(changes)
    time.sleep(SETTLED_S)
    for changes in chosen:
        by_hand.settle(changes)
    for turn in range(repeat):
        for changes, paths in chosen.items():
            for contender in _in_turn(contenders, turn):
                edit(contender, changes, f"{turn} {contender.name}", paths)
                samples.add("snapshot", contender.name, changes, _timed(partial(contender.snapshot, changes)))
    for changes, paths in chosen.items():
        _compare(contenders, changes, paths)
    for contender in contenders:
        contender.close(chosen)


def _compare(contenders: Sequence[Contender], number: int, paths: list[str]) -> None:
    """Fail when the same changes give different trees."""
    for contender in contenders:
        edit(contender, number, "the same", paths)
    trees = {contender.name: contender.snapshot(number) for contender in contenders}
    if len(set(trees.values())) > 1:
        raise SystemExit(f"the trees differ after {number} changes: {trees}")


def _carried(folder: Path, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """What dependencies add to making a workspace: milliseconds and bytes, by contender."""
    folder.mkdir()
    repo, store, commit = _repository(folder, options.files[0])
    count = make_dependencies(repo / "node_modules", options.carried)
    _say(f"{options.carried} MB carried, {count:,} files")
    paths = [Path("node_modules")]
    begun = time.perf_counter()
    plain_base(store, commit)
    name = make_layer(store, "carried-bench", lambda tree: carry(repo, tree, paths))
    layer_ms = (time.perf_counter() - begun) * 1000
    overlay, samples, rooms = PROVIDERS["overlay"], Samples(count), {}

    def open_with(contender: ByProvider, layers: Layers | None) -> None:
        tree = contender.provider.open(store, contender.folder(0), commit, layers or Layers())
        if layers is None:
            carry(repo, tree, paths)

    ways: dict[str, tuple[ByProvider, Layers | None]] = {
        "overlay, nothing carried": (ByProvider(overlay, store, commit), Layers()),
        "overlay": (ByProvider(overlay, store, commit), Layers(below=(name,))),
        "clone": (ByProvider(PROVIDERS["clone"], store, commit), None),
    }
    time.sleep(SETTLED_S)
    for turn in range(options.repeat):
        for way, (contender, layers) in _in_turn(list(ways.items()), turn):
            samples.add("make", way, 1, _timed(partial(open_with, contender, layers)))
            rooms[way] = room(contender.folder(0))
            inside = contender.inside(0, "sh", "-c", "ls node_modules 2>/dev/null | wc -l")
            assert (int(inside) > 0) == (way != "overlay, nothing carried"), contender.folder(0) / TREE
            contender.close([0])
    shutil.rmtree(folder)
    made = {way: {"ms": samples.middle("make", way, 1) or 0.0, "bytes": float(rooms[way])} for way in ways}
    return {"(the layer, once)": {"ms": layer_ms, "bytes": 0.0}, **made}


def _in_turn(items: Sequence[T], turn: int) -> list[T]:
    """The items, each turn beginning with another one."""
    first = turn % len(items)
    return [*items[first:], *items[:first]]


def _timed(action: Callable[[], object]) -> float:
    """Milliseconds."""
    begun = time.perf_counter()
    action()
    return (time.perf_counter() - begun) * 1000


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
