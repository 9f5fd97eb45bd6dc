# One verb each. Everything runs in .venv, which is made when it is missing and renewed when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JOBS ?= 4 # while some tests wait for engines and agents, others keep two cores busy

unexport PYTHONDONTWRITEBYTECODE # images for containers set it: each start of `orch` would compile all of it anew

.DEFAULT_GOAL := help
.PHONY: help demo demo-round test test-agents lint types fix bench soak docs clean

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

$(READY): pyproject.toml
	PYTHON=$(PYTHON) scripts/system-packages python git
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: $(READY) ## four scripted agents compete to mend a bug of a real release
	scripts/system-packages --optional bubblewrap
	$(BIN)/python demo/run.py

demo-round: $(READY) ## three scripted lanes make a real parser faster, measured and composed
	scripts/system-packages bubblewrap
	$(BIN)/python demo/round.py

test: $(READY) ## all tests but the long ones
	scripts/system-packages git bubblewrap iproute2 chromium
	$(BIN)/pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder

test-agents: $(READY) ## real agents at a scripted model server (CLAUDE=1: Claude Code, too)
	scripts/system-packages git bubblewrap
	$(BIN)/python scripts/install_test_agents.py $(if $(CLAUDE),claude)
	$(BIN)/pytest -m 'agents and not soak' --numprocesses $(JOBS) tests/agents

lint: $(READY) ## style, types and layers; changes nothing
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

types: $(READY) ## a second look at the types, by pyright, which CI has no time for
	$(BIN)/pyright --pythonpath $(BIN)/python

fix: $(READY) ## what ruff can mend by itself
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY) ## goal runs beside a bare shell script (BENCH=--quick for a first look); what rounds cost a ticket
	scripts/system-packages git bubblewrap
	$(BIN)/python -m tests.bench.run $(BENCH)
	$(BIN)/python -m tests.bench.rounds
	$(BIN)/python -m tests.bench.round_queue

soak: $(READY) ## the long kill and churn runs
	scripts/system-packages git bubblewrap chromium
	$(BIN)/python scripts/install_test_agents.py
	$(BIN)/pytest -m soak --numprocesses $(JOBS) --timeout 600

docs: $(READY) ## write docs/cli.md from the command line itself
	$(BIN)/python -m orch.cli.reference > docs/cli.md

clean: ## remove the environment and what tools left
	rm -rf $(VENV) build dist .cache demo/.cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
