"""What nobody's command sees: homes, the state directory, others' sockets and temporary files, logins."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

TMP = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - the folders themselves are meant, nothing is created in them

SHARED = (Path("/home"), Path("/root"), Path("/run"), *TMP)
"""Other users' homes; the sockets of daemons, agents of keys and buses; temporary files."""

LOGINS = (
    ".ssh", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".netrc", "_netrc",
    ".gnupg", ".docker", ".kube", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".config/git/credentials",
    ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
    ".m2/settings-security.xml", ".gradle/gradle.properties", ".terraform.d", ".terraformrc", ".config/op",
    ".config/rclone", ".config/temporalio", ".password-store",
    ".local/share/keyrings", ".config/pip", ".pip", ".config/containers", ".vault-token", ".boto", ".pgpass", ".my.cnf",
    ".mozilla", ".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history", ".python_history",
    ".claude/.credentials.json", ".claude/projects", ".claude.json", ".codex/auth.json", ".codex/sessions", ".gemini",
    ".qwen", ".pi/agent/auth.json", ".pi/agent/sessions", ".vibe", ".aider.conf.yml", ".aider",
    ".config/mini-swe-agent", ".config/opencode", ".local/share/opencode", ".config/sops", ".config/age",
)  # fmt: skip
"""Below a home; never shown, whatever else of it is."""

SECRETS = ("/etc/shadow", "/etc/gshadow", "/etc/krb5.keytab", "/etc/sudoers", "/etc/sudoers.d")
"""What only root can read, for root's own runs; besides the host's own SSH keys."""

NAMED = ("ORCH_KEYS", "ORCH_LEASES", "TEMPORAL_CONFIG_FILE", "TEMPORAL_TLS_CLIENT_KEY_PATH")
"""Variables of the worker's that name files with what opens the engine, or what it holds; and the locks of devices,
which whoever can read them can take."""


def homes() -> tuple[Path, ...]:
    """The home directories of this user: by the environment and by the user database; never the root folder."""
    found = [os.environ.get("HOME", "")]
    with suppress(KeyError):
        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    paths = (Path(os.path.realpath(home)) for home in found if home.startswith("/"))
    return tuple(dict.fromkeys(path for path in paths if path.is_dir() and path != Path("/")))


def hidden_roots(state: Path) -> frozenset[Path]:
    """The folders that are hidden as a whole, by their real names; what is needed of them is put back."""
    shared = (Path(os.path.realpath(path)) for path in SHARED if path.is_dir())
    return frozenset({*shared, *homes(), Path(os.path.realpath(state))})


def secrets() -> Iterator[Path]:
    """Every path on this host that is never shown and is there."""
    for home in homes():
        yield from _there(home / name for name in LOGINS)
    yield from _there(Path(os.environ[name]).expanduser().absolute() for name in NAMED if os.environ.get(name))
    if os.geteuid() == 0:
        yield from _there(map(Path, SECRETS))
        yield from Path("/etc/ssh").glob("ssh_host_*_key")


def _there(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        with suppress(PermissionError):  # what this user cannot reach no command of theirs can
            if path.exists():
                yield Path(os.path.realpath(path))


def below(path: Path, roots: Iterable[Path]) -> bool:
    """Whether a path lies in one of the folders, or is one."""
    return any(path.is_relative_to(root) for root in roots)
