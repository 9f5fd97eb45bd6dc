#!/bin/sh
""":"
exec python3 -I -S "$0" "$@"

The lane's way to hand over files and to learn what became of them; it stands in the lane's tree as `.orch/round`.
A program of the standard library alone, for Python 3.8 and later, started by a shell: nothing that the lane would have
Python load comes with it. Beside it lies `lane.json` (see `desk.py`). It needs no network and writes only the desk:

    outbox/<ticket>/manifest.json   what differs from the incumbent: canonical JSON, whose SHA-256 names the ticket
    outbox/<ticket>/files/<sha256>  the contents, a link's target being one; the manifest says where each belongs
    status/<ticket>.json            what became of it, written by the orchestrator
Names that are not UTF-8 stand in JSON as `os.fsdecode` gives them (surrogateescape), and so escaped.
What this program finds is for fast feedback: intake checks everything again, and trusts no byte of it.
"""  # noqa: D205, D415 - its first lines are a shell's

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Before = tuple[str, str] | None  # mode and object id in the incumbent
    Document = dict[str, Any]

USAGE = """\
usage: .orch/round submit
           hand over the changed files that are yours; prints a ticket at once
       .orch/round status [TICKET] [--wait [SECONDS]]
           what became of a ticket, or of all; with --wait: once that changes, or after so many seconds (100)
prints one JSON document; ends with 0 when it did what you asked, 1 when it could not ("error"), 2 on wrong usage
"""

WAIT_S, MOST_S, LOOK_S = 100.0, 3600.0, 0.1
"""How long `--wait` waits: less than the two minutes after which many agents' shells end a command."""

CHUNK, LISTED, LINK, SUBMODULE, FINAL = 1 << 20, 100, "120000", "160000", ("measured", "rejected")


class Refused(Exception):  # noqa: N818 - no error of the program's
    """What stands in the way, with the exit status and more to print."""

    def __init__(self, error: str, status: int = 1, **facts: Any) -> None:
        super().__init__(error)
        self.document, self.status = dict(facts, error=error), status


def main(words: list[str]) -> int:
    """Do what the words ask for, print one JSON document and return the exit status."""
    try:
        command, ticket, wait_s = _parsed(words)
        here = os.path.dirname(os.path.realpath(__file__))
        lane = _read_json(os.path.join(here, "lane.json"), "nothing can be handed over: no object in lane.json")
        document = submit(lane, os.path.dirname(here)) if command == "submit" else status(lane, ticket, wait_s)
        code = 0
    except Refused as refused:
        document, code = refused.document, refused.status
    except OSError as error:
        document, code = {"error": f"{error.strerror}: {os.fsdecode(error.filename or '')}"}, 1
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stderr.write(USAGE if code == 2 else "")
    return code


def _parsed(words: list[str]) -> tuple[str, str, float]:
    """The command, the ticket that it is about (empty: all), and for how many seconds it waits."""
    if words[:1] not in (["submit"], ["status"]):
        raise Refused("say submit or status", 2)
    ticket, wait_s, rest = "", 0.0, words[1:]
    while rest and words[0] == "status":
        option, _, value = rest[0].partition("=")
        if option == "--wait":
            if not value and re.match(r"[-.\d]+$", "".join(rest[1:2])):
                value = rest.pop(0) and rest[0]
            if not re.match(r"\d+(\.\d+)?$", value or "0") or float(value or 0) > MOST_S:
                raise Refused(f"--wait takes from 0 to {MOST_S:.0f} seconds, not {value}", 2)
            wait_s = float(value or WAIT_S)
        elif ticket or option.startswith("-"):
            break
        else:
            ticket = rest[0]
        rest.pop(0)
    if rest:
        raise Refused(f"{words[0]} does not take {rest[0]}", 2)
    return words[0], ticket, wait_s


def submit(lane: Document, top: str) -> Document:
    """Hand over what differs from the incumbent and is the lane's; say what else differs."""
    if time.time() > lane["deadline"]:
        raise Refused("the deadline of this lane has passed: nothing is taken in any more")
    outbox = os.path.join(lane["desk"], "outbox")
    aside = os.path.join(outbox, f".new-{os.urandom(8).hex()}")
    os.mkdir(aside)  # a desk that is gone is not made anew: the lane is over
    try:
        os.mkdir(os.path.join(aside, "files"))
        entries, outside = _collected(lane, os.fsencode(top), os.fsencode(aside))
        if not entries:
            raise Refused("no file of yours differs from the incumbent", out_of_scope=outside)
        facts = {"files": entries, "lane": lane["lane"], "round": lane["round"]}
        manifest = json.dumps(facts, sort_keys=True, separators=(",", ":")).encode("ascii")
        with open(os.path.join(aside, "manifest.json"), "wb") as file:
            file.write(manifest)
        ticket = f"{lane['round']}-{lane['lane']}-{hashlib.sha256(manifest).hexdigest()[:8]}"
        known = _state(lane, ticket)
        if not known:
            try:
                os.rename(aside, os.path.join(outbox, ticket))  # whole, or not at all
            except OSError:
                if not os.path.isdir(os.path.join(outbox, ticket)):
                    raise
                known = {"status": "submitted"}  # the same files were handed over before
    finally:
        _remove(aside)
    state = {"ticket": ticket, "status": known.get("status", "submitted"), "duplicate": bool(known)}
    return dict(state, files=len(entries), out_of_scope=outside)


def _collected(lane: Document, top: bytes, aside: bytes) -> tuple[list[Document], list[Document]]:
    """Copy the lane's changed files aside; return their entries, and the other changed paths with the reason."""
    tracked = _started(top, "diff-index", "--raw", "-z", "--no-renames", "--ignore-submodules=dirty", lane["incumbent"])
    others = _started(top, "ls-files", "-z", "--others", "--exclude-standard")  # both look while the rules are read
    rules = {name: [(yes, re.compile(text)) for yes, text in found] for name, found in lane["rules"].items()}
    entries, outside, left = [], [], lane["max_bytes"]
    for name, change in sorted(_differing(tracked, others).items()):
        path = os.fsdecode(name)
        why = _foreign(rules, path, change[0])
        entry = _entry(top, name, change, b"" if why else aside, left)
        if entry is None:
            continue
        if why or "why" in entry:
            outside.append({"path": path, "why": why or entry["why"]})
        else:
            left -= entry.pop("size")
            entries.append(dict(entry, path=path))
        if len(entries) > lane["max_files"]:
            raise Refused(f"more than the {lane['max_files']} files that one submission may hold")
    more = len(outside) - LISTED
    return entries, outside[:LISTED] + ([{"path": "", "why": f"and {more} more"}] if more > 0 else [])


def _foreign(rules: Document, path: str, before: Before) -> str:
    """Why a path is not the lane's to change; empty when it is."""
    if matches(rules["protected" if before else "closed"], path):
        return "protected"
    others, own = matches(rules["others"], path), matches(rules["own"], path)
    return "another lane's" if others else "" if own else "outside of your globs"


def matches(rules: list[tuple[bool, re.Pattern[str]]], path: str) -> bool:
    """Whether a path matches, as in a .gitignore: the last rule decides, but one for a folder gives way to others."""
    found, weight = False, 0
    for include, pattern in rules:
        match = pattern.search(path.replace("\n", "_"))
        if match:
            of_folder = bool(match.groupdict().get("ps_d"))
            if (include and of_folder) or (1 if of_folder else 2) >= weight:
                found, weight = include, 1 if of_folder else 2
    return found


def _entry(top: bytes, name: bytes, change: tuple[Before, str], aside: bytes, left: int) -> Document | None:
    """What the manifest says of a path, its content copied aside; None when it did not change; or why it cannot."""
    (before, after), path, mode = change, os.path.join(top, name), _mode(top, name)
    if name.endswith(b"/") or (before and before[0] == SUBMODULE):
        return {"why": "a repository of its own"}
    if not mode or stat.S_ISDIR(mode):
        return {"deleted": True, "size": 0} if before else None
    if stat.S_ISLNK(mode):
        target = os.readlink(path)
        return _copied([target], len(target), (before, LINK), aside, left)
    if not stat.S_ISREG(mode):
        return {"why": "not a file"}
    if not (aside or before):
        return {}  # another's new file: nothing to compare
    kind = after if after in ("100644", "100755") else "100755" if mode & 0o100 else "100644"
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        return _copied(iter(lambda: file.read(CHUNK), b""), size, (before, kind), aside, left)


@functools.lru_cache(1 << 20)
def _mode(top: bytes, name: bytes) -> int:
    """What lies at a path, as `lstat` says, and not beyond a link; 0 when nothing does."""
    try:
        there = not name or stat.S_ISDIR(_mode(top, os.path.dirname(name)))
        return os.lstat(os.path.join(top, name)).st_mode if there else 0
    except OSError:
        return 0


def _copied(chunks: Any, size: int, change: tuple[Before, str], aside: bytes, left: int) -> Document | None:
    """Hash what is read, and keep just that, under its hash; None when it is what the incumbent has."""
    (before, kind), ours = change, hashlib.sha256()
    gits = hashlib.new("sha256" if before and len(before[1]) == 64 else "sha1", b"blob %d\0" % size)
    part, read = os.path.join(aside, b"part"), 0
    with open(part if aside else os.devnull, "wb") as out:
        for chunk in chunks:
            read += len(chunk)
            if aside and read > left:
                raise Refused("more than one submission may hold", hint="have git ignore what is no source")
            for sink in (ours.update, gits.update, out.write):
                sink(chunk)
    if before == (kind, gits.hexdigest()):
        return None
    if aside:
        os.rename(part, os.path.join(aside, b"files", ours.hexdigest().encode()))
    return {"mode": kind, "sha256": ours.hexdigest(), "size": read}


def _differing(tracked: tuple[str, int, int], others: tuple[str, int, int]) -> dict[bytes, tuple[Before, str]]:
    """The paths that may differ from the incumbent: what it has there (mode, id), and the mode that git sees now."""
    records = iter(_ended(*tracked))
    found: dict[bytes, tuple[Before, str]] = {}
    for facts, name in zip(records, records):  # noqa: B905 - since Python 3.10
        old_mode, mode, old_id = facts.decode().lstrip(":").split(" ")[:3]
        before = None if old_mode == "000000" else (old_mode, old_id)
        if before or name not in found:
            found[name] = (before, mode)
    mine = (name for name in _ended(*others) if name.split(b"/", 1)[0] != b".orch")
    return {**dict.fromkeys(mine, (None, "")), **found}


def _started(top: bytes, *words: str) -> tuple[str, int, int]:
    """Start git in the tree; nobody's variables turn it elsewhere, and it looks no further up."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env.update(GIT_OPTIONAL_LOCKS="0", GIT_CEILING_DIRECTORIES=os.fsdecode(os.path.dirname(top)))
    argv = ("git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", "-C", os.fsdecode(top), *words)
    reading, writing = os.pipe()
    try:
        pid = os.posix_spawnp("git", argv, env, file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)])
    finally:
        os.close(writing)
    return words[0], pid, reading


def _ended(command: str, pid: int, reading: int) -> list[bytes]:
    with open(reading, "rb") as stream:
        data = stream.read()
    if os.waitpid(pid, 0)[1]:
        raise Refused(f"git {command} failed in this tree", hint="what it said stands above")
    return data.split(b"\0")[:-1]


def status(lane: Document, ticket: str, wait_s: float) -> Document:
    """What is known of a ticket, or of all; once that changes or `wait_s` is over."""
    until = time.monotonic() + wait_s
    now = first = _states(lane, ticket)
    while now == first and time.monotonic() < until and any(one["status"] not in FINAL for one in now):
        time.sleep(min(LOOK_S, max(0.0, until - time.monotonic())))
        now = _states(lane, ticket)
    found = dict(now[0]) if ticket else {"tickets": now}
    return dict(found, changed=now != first) if wait_s else found


def _states(lane: Document, ticket: str) -> list[Document]:
    waiting = {name for name in os.listdir(os.path.join(lane["desk"], "outbox")) if not name.startswith(".")}
    known = {name[:-5] for name in os.listdir(os.path.join(lane["desk"], "status")) if name.endswith(".json")}
    states = ((one, _state(lane, one)) for one in sorted(waiting | known) if ticket in ("", one))
    found = [state or {"ticket": one, "status": "submitted"} for one, state in states if state or one in waiting]
    if ticket and not found:
        raise Refused("there is no ticket " + ticket, tickets=sorted(waiting | known))
    return found


def _state(lane: Document, ticket: str) -> Document:
    """What the orchestrator wrote of a ticket; empty when that is nothing."""
    found = _read_json(os.path.join(lane["desk"], "status", ticket + ".json"))
    return dict(found, status=found.pop("state"), ticket=ticket) if "state" in found else {}


def _read_json(path: str, otherwise: str = "") -> Document:
    try:
        with open(path, encoding="utf-8") as file:
            found: Document = dict(json.load(file))
    except (OSError, TypeError, ValueError):
        found = {}
    if otherwise and not found:
        raise Refused(otherwise)
    return found


def _remove(aside: str) -> None:
    for folder in (os.path.join(aside, "files"), aside):
        if os.path.isdir(folder):
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
            os.rmdir(folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
