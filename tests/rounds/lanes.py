"""Scripted agents of lanes, as `cmd:` specs: each does one thing that a lane may do, or must not.

Their folder is the lane's workspace. What the wrapper prints goes to the agent's output.
"""

from __future__ import annotations

SUBMIT = ".orch/round submit"
WAIT = "while .orch/round status --wait 20 | grep -Eq '\"(submitted|queued|measuring)\"'; do :; done"
"""Wait until every ticket of the lane is measured or rejected."""


def cmd(*lines: str) -> str:
    """An agent's spec of shell lines; the first that fails ends it."""
    return "cmd:" + "\n".join(("set -e", *lines))


def turn(lane: str, factor: float, answer: str = "right") -> str:
    """The line that turns a lane's knob."""
    return f"printf 'FACTOR = %s\\nANSWER = \"%s\"\\n' {factor} {answer} > engine/{lane}/knob.py"


def python(text: str) -> str:
    """The lines that run a program given as it is."""
    return f"python3 -B - <<'PROGRAM'\n{text}\nPROGRAM"


def gain(lane: str, factor: float = 0.5, *, think_s: float = 0.0, wait: bool = False) -> str:
    """Turn the knob after some seconds of thought, submit, and maybe wait for what becomes of it."""
    return cmd(f"sleep {think_s}", turn(lane, factor), SUBMIT, *((WAIT,) if wait else ()))


def gains(lane: str, *factors: float) -> str:
    """One submission for each factor, as fast as they come."""
    return cmd(*(line for factor in factors for line in (turn(lane, factor), SUBMIT)))


def wrong(lane: str, factor: float = 0.3) -> str:
    """A gain whose result is wrong."""
    return cmd(turn(lane, factor, "wrong"), SUBMIT)


def idle() -> str:
    """Change nothing, submit nothing."""
    return cmd("true")


def out_of_globs(lane: str, factor: float = 0.5, path: str = "README.md") -> str:
    """A gain, and an edit of a path that is not the lane's."""
    return cmd(turn(lane, factor), f"mkdir -p $(dirname {path})", f"echo mine > {path}", SUBMIT)


def identical(lane: str, factor: float = 0.5) -> str:
    """The same files twice, with another try between them taken back before it was submitted."""
    return cmd(turn(lane, factor), SUBMIT, turn(lane, 0.9), turn(lane, factor), SUBMIT)


def at_once(lane: str, factor: float = 0.5, times: int = 2) -> str:
    """The same files submitted by several processes at the same instant."""
    return cmd(turn(lane, factor), *(f"{SUBMIT} &" for _ in range(times)), "wait")


def changes_after_submit(lane: str, factor: float = 0.5, after: float = 0.1) -> str:
    """Submit, then write other bytes into the tree and over whatever lies in the outbox."""
    outbox = """import json, pathlib
desk = pathlib.Path(json.loads(pathlib.Path(".orch/lane.json").read_text())["desk"])
for path in desk.glob("outbox/*/files/*"):
    path.write_text("FACTOR = 0.01\\n")"""
    return cmd(turn(lane, factor), SUBMIT, turn(lane, after), python(outbox))


def late(lane: str, seconds: float, factor: float = 0.5) -> str:
    """Submit at once, and again with other files after some seconds, from a process that nobody waits for."""
    again = f"(sleep {seconds}; {turn(lane, factor / 2)}; {SUBMIT})"
    return cmd(turn(lane, factor), SUBMIT, f"setsid sh -c {_quoted(again)} & sleep {seconds + 30}")


def wrapper_edited(lane: str, factor: float = 0.5) -> str:
    """Say in the lane's own copy that everything may be written, replace the benchmark, submit by the wrapper."""
    opened = """import json, os, pathlib
path = pathlib.Path(".orch/lane.json")
os.chmod(path, 0o644)
rules = {"own": [[True, "."]], "others": [], "protected": [], "closed": []}
path.write_text(json.dumps({**json.loads(path.read_text()), "rules": rules, "submissions": 99, "deadline": 9e9}))"""
    return cmd(turn(lane, factor), cheat(), python(opened), SUBMIT)


def cheat() -> str:
    """The line that makes the benchmark faster than it is."""
    return "sed -i 's/return sum(float/return 0.1 * sum(float/' bench/bench.py"


def linked(lane: str, target: str, factor: float = 0.5) -> str:
    """A gain, and a symbolic link in the lane's own folder."""
    return cmd(turn(lane, factor), f"ln -s {target} engine/{lane}/link", SUBMIT)


def many_files(lane: str, count: int = 100_000) -> str:
    """So many files, all under the lane's globs."""
    text = f"""import pathlib
folder = pathlib.Path("engine/{lane}/many")
folder.mkdir()
for n in range({count}):
    (folder / f"{{n}}.txt").touch()"""
    return cmd(python(text), f"{SUBMIT} || true")


def large_file(lane: str, size: str = "2G") -> str:
    """One sparse file of that size under the lane's globs."""
    return cmd(f"truncate -s {size} engine/{lane}/large.bin", f"{SUBMIT} || true")


def full_outbox(count: int = 100_000, size: str = "2G") -> str:
    """An outbox that no wrapper filled: entries without end, and a sparse file of that size in one of them."""
    text = f"""import json, pathlib
desk = pathlib.Path(json.loads(pathlib.Path(".orch/lane.json").read_text())["desk"])
for n in range({count}):
    (desk / "outbox" / f"r1-flood-{{n:08x}}").touch()
entry = desk / "outbox" / "r1-flood-large"
entry.mkdir()
(entry / "manifest.json").touch()"""
    large = '$(python3 -c \'import json; print(json.load(open(".orch/lane.json"))["desk"])\')/outbox/r1-flood-large'
    return cmd(python(text), f"truncate -s {size} {large}/manifest.json")


def in_trial(lane: str, body: str, factor: float = 0.5) -> str:
    """A knob whose module does something when a trial imports it; `body` is one Python statement."""
    return cmd(turn(lane, factor), f"printf '%s\\n' {_quoted(body)} >> engine/{lane}/knob.py", SUBMIT)


def forged(*files: tuple[str, str, str], sha256: str = "") -> str:
    """An outbox entry written past the wrapper: files as path, mode and content; `sha256` for a hash that is none."""
    text = f"""import hashlib, json, os, pathlib
lane = json.loads(pathlib.Path(".orch/lane.json").read_text())
files = sorted({list(files)!r})
hashes = [{sha256!r} or hashlib.sha256(text.encode()).hexdigest() for _, _, text in files]
entries = [dict(path=path, mode=mode, sha256=one) for (path, mode, _), one in zip(files, hashes)]
manifest = dict(files=entries, lane=lane["lane"], round=lane["round"])
raw = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
outbox = pathlib.Path(lane["desk"], "outbox")
aside = outbox / ".forged"
(aside / "files").mkdir(parents=True)
for (_, _, text), one in zip(files, hashes):
    (aside / "files" / one).write_text(text)
(aside / "manifest.json").write_bytes(raw)
os.rename(aside, outbox / f"{{lane['round']}}-{{lane['lane']}}-{{hashlib.sha256(raw).hexdigest()[:8]}}")"""
    return cmd(python(text))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
