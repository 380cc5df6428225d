# agentd. Nothing here needs root; everything is safe to repeat.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help venv demo test check style types layers generated format generate clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(READY) ## everything installed, editable, in .venv

$(READY): requirements-dev.txt pyproject.toml $(wildcard plugins/*/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "agentd needs Python 3.11 or newer; set PYTHON=" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

demo: $(READY) ## an agent works through an inbox of incidents (uses AGENTD_INTELLIGENCE when set)
	@$(BIN)/python examples/incidents/demo.py

test: $(READY) ## all tests but the long ones (-m soak)
	$(BIN)/pytest -n auto -m "not soak"

check: style types layers generated ## style, types, layers, generated files

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports --no-logo

generated: $(READY)
	$(BIN)/python scripts/generate.py --check

format: $(READY) ## let ruff put the style right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: $(READY) ## rewrite what follows from plugins/* and from the code (references in docs)
	$(BIN)/python scripts/generate.py

clean: ## remove the venv and every cache
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
