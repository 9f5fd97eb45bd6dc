"""The tools that ladders run, and what each loads of a tree by itself. Data; globs are those of a .gitignore.

Covered are runner configuration, files that are loaded without being named, caches, programs and modules of the tree
that stand before the real ones, and manifests that configure a runner, with their locks. `=GLOB` (the tests that a
runner collects by itself) protects what is there and lets candidates add. Left open is what is imported by name: the
code under test runs in the runner's own process, and no list of files can keep it from lying there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Runner:
    """A tool that decides whether a rung passes.

    Attributes:
        programs: the words that start it, also as `python -m WORD`.
        loads: globs of what it loads by itself.
        tests: globs of the tests it collects by itself.
        implies: runners that it starts or is written in.
    """

    programs: str
    loads: str = ""
    tests: str = ""
    implies: tuple[str, ...] = ()


RUNNERS = {
    "python": Runner("python python3 pypy3", "sitecustomize.py usercustomize.py *.pth *.pyc *.egg-info/ *.dist-info/"),
    "pytest": Runner(
        "pytest py.test",
        "conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini setup.cfg pyproject.toml .pytest_cache/"
        " /pytest.py /pytest/ /_pytest/ /pluggy/",
        "test_*.py *_test.py",
        ("python", "coverage"),
    ),
    "unittest": Runner("unittest", "/unittest.py /unittest/", "test*.py", ("python",)),
    "coverage": Runner("coverage", ".coveragerc setup.cfg tox.ini pyproject.toml", "", ("python",)),
    "tox": Runner("tox", "tox.ini tox.toml setup.cfg pyproject.toml .tox/", "", ("pytest",)),
    "nox": Runner("nox", "noxfile.py .nox/", "", ("pytest",)),
    "uv": Runner("uv", "pyproject.toml uv.toml uv.lock .python-version", "", ("python",)),
    "poetry": Runner("poetry", "pyproject.toml poetry.toml poetry.lock", "", ("python",)),
    "hatch": Runner("hatch pdm pipenv", "pyproject.toml hatch.toml pdm.lock Pipfile Pipfile.lock", "", ("python",)),
    "pip": Runner("pip pip3", "setup.py setup.cfg pyproject.toml", "", ("python",)),
    "ruff": Runner("ruff", "ruff.toml .ruff.toml pyproject.toml .ruff_cache/"),
    "mypy": Runner("mypy dmypy", "mypy.ini .mypy.ini setup.cfg pyproject.toml .mypy_cache/"),
    "pyright": Runner("pyright basedpyright", "pyrightconfig.json pyproject.toml"),
    "flake8": Runner("flake8", ".flake8 setup.cfg tox.ini"),
    "pylint": Runner("pylint", "pylintrc .pylintrc pylintrc.toml .pylintrc.toml setup.cfg pyproject.toml"),
    "black": Runner("black isort", "pyproject.toml .isort.cfg setup.cfg"),
    "node": Runner("node nodejs", "package.json node_modules/", "*.test.* *.spec.*"),
    "npm": Runner("npm npx", "package.json package-lock.json npm-shrinkwrap.json .npmrc node_modules/", "", ("node",)),
    "yarn": Runner(
        "yarn yarnpkg", "package.json yarn.lock .yarnrc .yarnrc.yml .yarn/ .pnp.* node_modules/", "", ("node",)
    ),
    "pnpm": Runner(
        "pnpm pnpx", "package.json pnpm-lock.yaml pnpm-workspace.yaml .pnpmfile.* .npmrc node_modules/", "", ("node",)
    ),
    "bun": Runner("bun bunx", "package.json bunfig.toml bun.lock bun.lockb node_modules/", "*.test.* *.spec.*"),
    "deno": Runner("deno", "deno.json deno.jsonc deno.lock", "*.test.* *_test.*"),
    "jest": Runner(
        "jest ts-jest react-scripts",
        "jest.config.* jest.setup.* jest.preset.* babel.config.* .babelrc* .swcrc tsconfig*.json __mocks__/",
        "*.test.* *.spec.* __tests__/ __snapshots__/",
        ("node",),
    ),
    "vitest": Runner(
        "vitest",
        "vitest.config.* vitest.workspace.* vitest.setup.* vite.config.* tsconfig*.json __mocks__/",
        "*.test.* *.spec.* __tests__/ __snapshots__/",
        ("node",),
    ),
    "mocha": Runner("mocha nyc c8", ".mocharc* mocha.opts .nycrc* .c8rc*", "*.test.* *.spec.* /test/", ("node",)),
    "ava": Runner("ava tap", "ava.config.* .taprc", "*.test.* /test/", ("node",)),
    "playwright": Runner(
        "playwright cypress", "playwright.config.* cypress.config.* cypress/support/", "*.spec.* *.cy.*", ("node",)
    ),
    "eslint": Runner("eslint", "eslint.config.* .eslintrc* .eslintignore .eslintcache", "", ("node",)),
    "prettier": Runner("prettier", ".prettierrc* prettier.config.* .prettierignore .editorconfig", "", ("node",)),
    "tsc": Runner("tsc", "tsconfig*.json *.tsbuildinfo", "", ("node",)),
    "make": Runner("make gmake", "Makefile makefile GNUmakefile *.mk"),
    "just": Runner("just task", "justfile .justfile Justfile Taskfile.y*ml taskfile.y*ml"),
    "cmake": Runner("cmake ctest ninja meson", "CMakeLists.txt CTest*.cmake meson.build build.ninja"),
    "cargo": Runner(
        "cargo cargo-nextest",
        "Cargo.toml Cargo.lock .cargo/ build.rs rust-toolchain* clippy.toml .clippy.toml rustfmt.toml"
        " .config/nextest.toml",
        "/tests/",
    ),
    "go": Runner("go gotestsum golangci-lint", "go.mod go.sum go.work go.work.sum vendor/ .golangci.*", "*_test.go"),
    "maven": Runner("mvn mvnw", "pom.xml .mvn/ mvnw", "/src/test/"),
    "gradle": Runner(
        "gradle gradlew", "*.gradle *.gradle.kts gradle.properties /gradle/ gradlew init.d/", "/src/test/"
    ),
    "ruby": Runner(
        "rspec rake bundle", ".rspec spec_helper.rb rails_helper.rb Rakefile Gemfile* .bundle/", "*_spec.rb"
    ),
    "php": Runner("phpunit composer", "phpunit.xml* composer.json composer.lock /vendor/", "*Test.php"),
}
"""Every runner by its name."""

BY_PROGRAM = {word: name for name, runner in RUNNERS.items() for word in runner.programs.split()}
"""The runner that a program's name means."""


def with_implied(names: list[str]) -> list[str]:
    """The runners and all that they imply, each once, in order."""
    found = dict.fromkeys(names)
    for name in names:
        found |= dict.fromkeys(with_implied(list(RUNNERS[name].implies)))
    return list(found)


def loaded(names: list[str]) -> tuple[str, ...]:
    """What the runners load by themselves, as globs."""
    return tuple(dict.fromkeys(glob for name in names for glob in RUNNERS[name].loads.split()))


def collected(names: list[str]) -> tuple[str, ...]:
    """The tests the runners collect by themselves, as globs that let candidates add."""
    return tuple(dict.fromkeys(f"={glob}" for name in names for glob in RUNNERS[name].tests.split()))
