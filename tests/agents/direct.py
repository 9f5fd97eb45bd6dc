"""Real agents started without `orch`: the argv, environment and files with which each is known to work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

PROMPT = "# Task from a test\n\nPlease do it.\n"
KEY = "dummy-key"
PATIENCE_S = 60
MARK = "ORCH_TEST_HOME"
"""The variable by which everything that an agent started is found: no other test has that folder."""


@dataclass(frozen=True)
class Start:
    """How to start an agent: its command, its variables, and files below its home."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)


def codex(url: str, home: Path) -> Start:
    """Codex; with a model that has the tools `exec_command` and `apply_patch`."""
    config = f"""\
model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
[analytics]
enabled = false
[feedback]
enabled = false
[features]
plugins = false
apps = false
remote_plugin = false
goals = false
"""
    argv = ("codex", "exec", "--json", "--sandbox", "danger-full-access", "-")
    env = {"CODEX_HOME": str(home / ".codex"), "SCRIPTED_KEY": KEY}
    return Start(argv, env, {".codex/config.toml": config})


def pi(url: str, home: Path) -> Start:
    """Start pi."""
    cost = {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}
    model = {"id": "scripted-model", "cost": cost, "contextWindow": 200_000, "maxTokens": 32_000}
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "SCRIPTED_KEY", "models": [model]}
    argv = ("pi", "--provider", "scripted", "--model", "scripted-model", "-p", "--mode", "json", "--offline")
    env = {"PI_CODING_AGENT_DIR": str(home / "agent"), "PI_OFFLINE": "1", "PI_TELEMETRY": "0", "SCRIPTED_KEY": KEY}
    return Start(argv, env, {"agent/models.json": json.dumps({"providers": {"scripted": provider}})})


def claude(url: str, home: Path) -> Start:
    """Claude Code."""
    argv = ("claude", "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits")
    env = {
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": url,
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    return Start((*argv, "--allowedTools", "Bash"), env)


AGENTS: Mapping[str, Callable[[str, Path], Start]] = {"codex": codex, "pi": pi, "claude": claude}


class Direct:
    """An agent's process in a tree, with an environment made from nothing.

    Attributes:
        run: its name at the model server.
        tree: where it works.
    """

    def __init__(self, name: str, run: str, url: str, programs: Path, tree: Path, home: Path) -> None:
        self.run, self.tree, self._home = run, tree, home
        start = AGENTS[name](url, home)
        for path, text in {**start.files, "prompt": PROMPT, "tmp/empty": ""}.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text)
        path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.defpath))
        env = {
            "PATH": path,
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            "LANG": "C.UTF-8",
            MARK: str(home),
            **start.env,
        }
        with (home / "prompt").open("rb") as stdin, self._out.open("wb") as out:
            self._process = subprocess.Popen(
                start.argv, cwd=tree, env=env, stdin=stdin, stdout=out, stderr=out, start_new_session=True
            )

    @property
    def _out(self) -> Path:
        return self._home / "out"

    @property
    def output(self) -> str:
        """What it printed."""
        return self._out.read_text(errors="replace")

    def wait(self, timeout: float = 60) -> int:
        """Wait for its end; return its exit status. Raises TimeoutExpired."""
        return self._process.wait(timeout)

    def processes(self) -> list[psutil.Process]:
        """It and all that it started, whatever session or parent they have by now."""
        found = psutil.process_iter(["environ"])
        return [one for one in found if (one.info["environ"] or {}).get(MARK) == str(self._home)]

    def commands(self) -> list[str]:
        """The command lines of those that live."""
        lines = []
        for process in self.processes():
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                lines.append(" ".join(process.cmdline()))
        return lines

    def kill(self) -> None:
        """End all of them, at once; those, too, that one started meanwhile."""
        until = time.monotonic() + PATIENCE_S
        while left := self.processes():
            assert time.monotonic() < until, left
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            time.sleep(0.05)
        self._process.wait(PATIENCE_S)


def ended(process: psutil.Process, *, within: float) -> bool:
    """Whether a process ends in time."""
    try:
        process.wait(within)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True
