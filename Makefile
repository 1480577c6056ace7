# Everything here does its own set-up: it needs Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
ARGS   ?=

# Tests start many processes: what one compiled, the others take.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast test-peers test-newest check fix bench schemas clean browser reference

## watch a coding agent at work, and open its record (ARGS=--exit ends by itself)
demo: $(VENV)/.installed
	$(BIN)/hansard demo $(ARGS)

## install what the tests need and run all of them
test: $(VENV)/.installed-dev browser check
	$(BIN)/pytest -n auto --dist worksteal $(ARGS)

## the inner loop: all tests but those that are marked slow
test-fast: $(VENV)/.installed-dev
	$(BIN)/pytest -n auto --dist worksteal -m "not slow" $(ARGS)

## checks that need Node and a network: JavaScript exporters, docs/connect, MCP, the image's lines
test-peers: $(VENV)/.installed-dev
	@failed=; for part in run connect mcp_conformance image; do \
	  $(BIN)/python tests/peers/$$part.py || failed="$$failed tests/peers/$$part.py"; \
	done; test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

## the lowest and highest versions that pyproject.toml allows, then README and docs/connect with the
## packages of the day; prints what arrived of each
test-newest: $(VENV)/.installed-dev
	@failed=; $(BIN)/python tests/peers/lowest.py || failed="$$failed tests/peers/lowest.py"; \
	$(BIN)/python tests/peers/connect.py --newest $(ARGS) || failed="$$failed tests/peers/connect.py"; \
	test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

## formatting, lint, types
check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

fix: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

## figures of the README, each beside its limit
bench: $(VENV)/.installed-dev
	$(BIN)/python -m bench $(ARGS)

## write docs/schemas from the models
schemas: $(VENV)/.installed-dev
	$(BIN)/python -m tests.compiler.write_schemas

## write docs/api from the routes, docs/columns.md from the schema
reference: $(VENV)/.installed-dev
	$(BIN)/python -m tests.docs.write_reference

# Chromium: what is installed, else by apt when root, else by Playwright's own installer.
browser: $(VENV)/.installed-dev
	@$(BIN)/python tests/browser.py

$(VENV)/.venv:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/.venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[demo]"
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/.venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
