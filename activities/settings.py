"""What decides which bytes a checkout has: copied from the user's repository into the store."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from ..workflows.errors import RefusedError
from ..workflows.model.base import Value
from .changes import display
from .git import Git
from .repository import Repository

CONTENT = re.compile(
    r"core\.(autocrlf|eol|safecrlf|symlinks|attributesfile|excludesfile|checkroundtripencoding|protecthfs|protectntfs)"
    r"|filter\..+\.(clean|smudge|process|required)"
)
"""Settings that decide contents. `core.fileMode` and `core.ignoreCase` tell of a file system: the store has its own."""

FILE = "content.config"
"""Beside the store's `config`, which includes it."""

_ALL = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--")
_INFO = ("attributes", "exclude")


def copy_settings(repository: Repository, git_dir: Path) -> None:
    """Make the store's settings, attributes and excludes those of the user's repository, from whatever scope."""
    _write(git_dir / FILE, _config(repository.git.lines("config", "--list", "-z", "--includes")))
    for name in _INFO:
        source = repository.common_dir / "info" / name
        _write(git_dir / "info" / name, source.read_bytes() if source.is_file() else b"")


def copy_own_settings(git: Git, git_dir: Path) -> None:
    """The same for a repository that is nowhere on this host: those that its user has for all repositories."""
    _write(git_dir / FILE, _config(git.lines("config", "--list", "-z", "--includes")))


class Carried(Value):
    """Those settings for a host that does not have the user's repository; files as Latin-1 text, byte for byte."""

    config: str = ""
    attributes: str = ""
    exclude: str = ""
    global_attributes: str = ""
    global_ignores: str = ""


def carried_settings(git: Git, git_dir: Path) -> Carried:
    """What decides contents in a store and in the files of this user that git looks at."""
    return Carried(
        config=_read(git_dir / FILE),
        attributes=_read(git_dir / "info" / "attributes"),
        exclude=_read(git_dir / "info" / "exclude"),
        global_attributes=_read(_global(git, "core.attributesFile", "attributes")),
        global_ignores=_read(_global(git, "core.excludesFile", "ignore")),
    )


def keep_settings(git_dir: Path, carried: Carried) -> None:
    """Make the settings of a store those that were carried there; this host's own user has no say in them."""
    files = {"attributes": carried.global_attributes, "ignore": carried.global_ignores}
    for name, text in files.items():
        _write(git_dir / "carried" / name, text.encode("latin-1"))
    paths = {"attributesfile": "attributes", "excludesfile": "ignore"}
    ours = "".join(_entry(f"core.{key}", str(git_dir / "carried" / name)) for key, name in paths.items())
    _write(git_dir / FILE, carried.config.encode("latin-1") + ours.encode("utf-8", "surrogateescape"))
    _write(git_dir / "info" / "attributes", carried.attributes.encode("latin-1"))
    _write(git_dir / "info" / "exclude", carried.exclude.encode("latin-1"))


def _global(git: Git, key: str, usual: str) -> Path:
    """A file of the user's for all repositories, as git finds it."""
    _, named, _ = git.attempt("config", "--type=path", key)
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(os.fsdecode(named.strip())) if named.strip() else Path(config) / "git" / usual


def _read(path: Path) -> str:
    return path.read_bytes().decode("latin-1") if path.is_file() else ""


def check_filters(repository: Repository, git: Git) -> None:
    """Raise RefusedError when a path in the tree of `git` goes through a required filter that has no program here."""
    settings = dict(map(_split, repository.git.lines("config", "--list", "-z", "--includes")))
    for name in [key[7:-9] for key in settings if re.fullmatch(r"filter\..+\.required", key) and _true(settings[key])]:
        missing = [p for p in _programs(settings, f"filter.{name}") if not _runs(p, repository.top)]
        paths = git.lines(*_ALL, f":(attr:filter={name})") if missing else []
        if paths:
            raise RefusedError(
                f"the filter driver {name} of {display(paths[0])} cannot run: {missing[0]} is not there",
                hint=f"install it, or unset filter.{name}.required",
            )


def _programs(settings: dict[str, str], driver: str) -> list[str]:
    """The programs a driver starts: one process for all, or one command for each direction."""
    names = ("process",) if f"{driver}.process" in settings else ("clean", "smudge")
    commands = [settings.get(f"{driver}.{name}", "").split() for name in names]
    return [command[0].strip("\"'") for command in commands if command]


def _runs(program: str, top: Path) -> bool:
    return shutil.which(str(top / program) if "/" in program else program) is not None


def _config(records: list[bytes]) -> bytes:
    """A config file with those of the settings that decide contents, in order, so that the last one wins as it did."""
    settings = [pair for pair in map(_split, records) if CONTENT.fullmatch(pair[0])]
    return "".join(_entry(*pair) for pair in settings).encode("utf-8", "surrogateescape")


def _entry(key: str, value: str) -> str:
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    header = f"{section} {_quoted(subsection)}" if subsection else section
    return f"[{header}]\n\t{name} = {_quoted(value)}\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'


def _split(record: bytes) -> tuple[str, str]:
    """A key and its value; a key without a value means true."""
    key, newline, value = record.decode("utf-8", "surrogateescape").partition("\n")
    return key, value if newline else "true"


def _true(value: str) -> bool:
    return value.lower() in {"true", "yes", "on", "1"}


def _write(path: Path, data: bytes) -> None:
    """Replace a file in one step, and only when it differs: others may be reading it."""
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.new")
    aside.write_bytes(data)
    aside.replace(path)
