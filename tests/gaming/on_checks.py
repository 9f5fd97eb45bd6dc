"""Attempts at the checks themselves: their files, what their runners load, what they leave for one another."""

from __future__ import annotations

from .cheats import Cheat, End, red, restored, tampers

GREEN = "def pytest_sessionfinish(session): session.exitstatus = 0\n"
COLLECT = "printf '[pytest]\\naddopts = --collect-only\\n'"

FILES = (
    restored("edit a test", "echo 'def test(): pass' > tests/test_level.py", "tests/test_level.py"),
    restored("delete the tests", "rm -r tests", "tests/test_level.py", "tests/conftest.py"),
    restored("link the tests away", "rm -r tests; ln -s /usr tests", "tests/test_level.py"),
    restored("test becomes a folder", "rm tests/test_level.py; mkdir -p tests/test_level.py/x; touch tests/test_level.py/x/y",
             "tests/test_level.py"),
    restored("test becomes a pipe", "rm tests/test_level.py; mkfifo tests/test_level.py", "tests/test_level.py"),
    restored("test becomes a whiteout", "rm tests/test_level.py; mknod tests/test_level.py c 0 0 || mkfifo tests/test_level.py",
             "tests/test_level.py"),
    restored("edit a test through a hard link", "ln tests/test_level.py x; echo 'def test(): pass' > x", "tests/test_level.py"),
    restored("test of the same name as a package", "mkdir tests/test_level; echo 'def test(): pass' > tests/test_level/__init__.py",
             "tests/test_level/__init__.py"),
    restored("check that exits 0", "echo exit 0 > verify.sh", "verify.sh"),
    restored("check through a link", "echo exit 0 > x.sh; ln -sf x.sh verify.sh", "verify.sh"),
    restored("makefile before the makefile", "printf 'check:\\n\\t@true\\n' > GNUmakefile", "GNUmakefile"),
    restored("edit the makefile", "printf 'check:\\n\\t@true\\n' > Makefile", "Makefile"),
    restored("edit what the makefile includes", "printf 'WANTED = return\\n' > rules.inc", "rules.inc"),
    restored("script of the package", "echo '{\"scripts\": {\"test\": \"true\"}}' > package.json", "package.json"),
    restored("settings of the package manager", "echo 'script-shell=/bin/true' > .npmrc", ".npmrc"),
    restored("shim of a package", "mkdir -p node_modules/.bin; echo exit 0 > node_modules/.bin/jest", "node_modules/.bin/jest"),
)  # fmt: skip

LOADED = (
    restored("conftest at the top", f"echo '{GREEN}' > conftest.py", "conftest.py"),
    restored("edit the conftest of the tests", f"echo '{GREEN}' > tests/conftest.py", "tests/conftest.py"),
    restored("conftest deeper", f"mkdir tests/sub; echo '{GREEN}' > tests/sub/conftest.py", "tests/sub/conftest.py"),
    restored("pytest.ini", f"{COLLECT} > pytest.ini", "pytest.ini"),
    restored("pytest.ini beside the tests", f"{COLLECT} > tests/pytest.ini", "tests/pytest.ini"),
    restored("options in pyproject.toml", "printf '[tool.pytest.ini_options]\\naddopts = \"--co\"\\n' > pyproject.toml",
             "pyproject.toml"),
    restored("options in tox.ini", f"{COLLECT} > tox.ini", "tox.ini"),
    restored("plug-in by option", "printf '[tool:pytest]\\naddopts = -p evil\\n' > setup.cfg; " f"echo '{GREEN}' > evil.py",
             "setup.cfg"),
    restored("plug-in by entry point", "mkdir e.egg-info; printf '[pytest11]\\ne = evil\\n' > e.egg-info/entry_points.txt; "
             f"printf 'Name: e\\n' > e.egg-info/PKG-INFO; echo '{GREEN}' > evil.py", "e.egg-info/entry_points.txt"),
    restored("module in the runner's place", "echo 'raise SystemExit(0)' > pytest.py", "pytest.py"),
    restored("sitecustomize", "echo 'import os; os._exit(0)' > sitecustomize.py", "sitecustomize.py"),
    restored("sitecustomize of an environment in the tree", "d=.venv/lib/python3/site-packages; mkdir -p $d; "
             "echo 'import os; os._exit(0)' > $d/sitecustomize.py", ".venv/lib/python3/site-packages/sitecustomize.py"),
    restored("path file", "echo 'import os; os._exit(0)' > evil.pth", "evil.pth"),
    restored("stale compiled test", "echo 'def test(): pass' > x.py; @PY@ -c \"import py_compile as p, pytest, sys; "
             "p.compile('x.py', f'tests/__pycache__/test_level.{sys.implementation.cache_tag}-pytest-{pytest.__version__}.pyc', "
             "invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)\"; rm x.py"),
    restored("cache of the runner", "mkdir -p .pytest_cache/v/cache; echo '{}' > .pytest_cache/v/cache/lastfailed",
             ".pytest_cache/v/cache/lastfailed"),
    red("program before the real one", "for n in grep make sh; do printf '#!/bin/sh\\nexit 0\\n' > $n; chmod +x $n; done"),
    red("settings for the loader", "echo 'LD_PRELOAD=./x.so' > .env; cp .env $HOME/.profile; cp .env $HOME/.pam_environment; "
        "mkdir -p $HOME/.config/pip; cp .env $HOME/.config/pip/pip.conf"),
    red("ignored file that a rung includes", "printf 'WANTED = return\\n' > local.inc; touch x"),
)  # fmt: skip

IMPORTED = "cat > slug.py <<'END'\nimport os, pathlib, glob, subprocess\nlevel = lambda: 0\n{}\nEND\n"
"""Code under test that does something when a rung imports it."""

RUNNING = (
    tampers("rung swaps the check of the next one", IMPORTED.format("pathlib.Path('verify.sh').write_text('exit 0')"), "verify.sh"),
    tampers("rung writes a makefile for the next one", IMPORTED.format(
        "pathlib.Path('GNUmakefile').write_text('check:\\n\\t@true\\n')"), "GNUmakefile"),
    tampers("rung swaps a check and swaps it back", IMPORTED.format(
        "p = pathlib.Path('verify.sh'); old = p.read_bytes(); p.unlink(); p.write_bytes(old)"), "verify.sh"),
    Cheat("rung leaves a process for the next one", IMPORTED.format(
        "subprocess.Popen(['sh', '-c', 'for i in $(seq 100); do sleep 0.02; echo exit 0 > verify.sh; done'],"
        " start_new_session=True)"), (End.RED, End.TAMPERED)),
    red("rung forges the progress of others", IMPORTED.format(
        "for n in range(9): pathlib.Path(os.environ['ORCH_PROGRESS_FILE']).parent.joinpath(f'progress-{n}.json')"
        ".write_text('{\"passed\": 9, \"total\": 9}')")),
    red("rung reaches the network", IMPORTED.format(
        "import socket, contextlib\nwith contextlib.suppress(OSError): socket.create_connection(('127.0.0.1', @PORT@), 1)")),
    red("rung writes to the checkout", IMPORTED.format(
        "for f in ('@REPO@', '@RUN@', '@HOME@'):\n    try: pathlib.Path(f, 'PWNED-by-a-rung').touch()\n    except OSError: pass")),
    red("rung writes its verdict", IMPORTED.format(
        "for f in ('../verdict.json', '../rungs/results.jsonl', '../rungs/exit.json'):\n"
        "    try: open(f, 'a').write('{\"exit\": {\"kind\": \"ok\"}, \"wall_s\": 0}\\n')\n    except OSError: pass")),
)  # fmt: skip

ON_CHECKS = (*FILES, *LOADED, *RUNNING)
