"""opencode by `opencode run --format json`: how it is started, unattended, and where it keeps its sessions."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from .adapter import AgentCall, Launch, OnPath, Traits, Translator
from .api_errors import classify
from .fields import complaint, text
from .opencode_events import OpencodeTranslator
from .providers import NO_KEY, NO_MODEL, SECRETS, keys, server
from .said import Complained, Said

CONFIG = {
    "autoupdate": False,
    "share": "disabled",
    "snapshot": False,
    "permission": {
        "bash": "allow",
        "edit": "allow",
        "external_directory": "allow",
        "plan_enter": "deny",
        "plan_exit": "deny",
        "question": "deny",
        "task": "deny",  # nobody counts the tokens of its own sub-agents
        "webfetch": "allow",
    },
}

QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
}

NO_PLUGIN = {
    ".config/opencode/node_modules/.keep": "",
    ".config/opencode/package-lock.json": '{"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}',
}
"""Files that make it believe that the library for plug-ins is there: else it downloads that for every home."""

FOLDERS = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}


class OpencodeAgent(OnPath):
    """The opencode agent; what it may do is up to the fence of `orch`."""

    name = "opencode"
    traits = Traits(
        program="opencode",
        oldest=(1, 18, 33),
        forks=True,
        prices=True,
        secrets=SECRETS,
        login=(".local/share/opencode/auth.json",),
        settings={"effort": "how much the model reasons, as its provider names it"},
    )

    def call(self, launch: Launch) -> AgentCall:
        """Begin a session, go on in one, or branch off from one; a given title saves the request for one."""
        spec, url = launch.spec, server(launch)
        model = f"orch/{spec.argument or NO_MODEL}" if url else spec.argument
        argv = [spec.program(self.traits.program), "run", "--format", "json", "--pure", "--title", "orch"]
        argv += ["--model", model] if model else []
        argv += ["--variant", spec.settings["effort"]] if "effort" in spec.settings else []
        argv += ["--session", launch.session] if launch.session else []
        argv += ["--fork"] if launch.session and launch.fork else []
        config = {**CONFIG, **(_provider(launch, url) if url else {})}
        folders = {name: str(launch.home / folder) for name, folder in FOLDERS.items()}
        env = {**QUIET, **folders, "OPENCODE_CONFIG_CONTENT": json.dumps(config), **keys(launch)}
        return AgentCall(tuple(argv), env, {launch.home / name: words for name, words in NO_PLUGIN.items()})

    def translator(self) -> Translator | None:
        """A reader of steps."""
        return OpencodeTranslator()

    def leftovers(self, launch: Launch, stderr: str) -> Iterator[Said]:  # noqa: ARG002 - its stream tells the rest
        """Why it could not begin."""
        if words := complaint(stderr):
            yield Complained(classify(words), words)

    def adopt(self, launch: Launch, old: Path) -> bool:
        """Bring its database, with the session in the new tree: else it would work in the old one, and never end."""
        theirs, ours = _database(old), _database(launch.home)
        if theirs.is_symlink() or not theirs.is_file():
            return False
        ours.parent.mkdir(parents=True, exist_ok=True)
        if not _copied(theirs, ours, launch):
            ours.unlink(missing_ok=True)
        return ours.exists()


def _copied(theirs: Path, ours: Path, launch: Launch) -> bool:
    try:
        _copy(theirs, ours)
        with closing(sqlite3.connect(ours)) as database, database:
            return _moved(database, launch.session, os.path.realpath(launch.tree))
    except sqlite3.Error:  # an agent may have put anything in its place
        return False


def _copy(theirs: Path, ours: Path) -> None:
    """Copy a database with what stands only in its journal yet."""
    uri = f"{theirs.as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as source, closing(sqlite3.connect(ours)) as copy:
        source.backup(copy)


def _moved(database: sqlite3.Connection, session: str, tree: str) -> bool:
    """Move the session, and the paths that it speaks of."""
    found = database.execute("SELECT directory FROM session WHERE id = ?", (session,)).fetchone()
    old = text(found[0]) if found else ""
    if not old:
        return False
    below = re.compile(rf"{re.escape(old)}(?![\w.-])")
    database.create_function("moved", 1, lambda words: below.sub(lambda _: tree, words))
    database.execute("UPDATE session SET directory = ? WHERE id = ?", (tree, session))
    for table in ("message", "part"):
        database.execute(f"UPDATE {table} SET data = moved(data) WHERE session_id = ?", (session,))  # noqa: S608 - ours
    return True


def _database(home: Path) -> Path:
    return home / ".local/share/opencode/opencode.db"


def _provider(launch: Launch, url: str) -> Mapping[str, Any]:
    """The server as a provider of one model; its price and its size are not known."""
    name = launch.spec.argument or NO_MODEL
    key = "{env:OPENAI_API_KEY}" if launch.secrets.get("OPENAI_API_KEY") else NO_KEY
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "orch",
        "options": {"baseURL": url, "apiKey": key},
        "models": {name: {}},
    }
    return {"provider": {"orch": provider}, "enabled_providers": ["orch"], "small_model": f"orch/{name}"}
