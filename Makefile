# The two commands of the README. Both may be repeated, as root and as a normal user.
#   make lab  [ARGS="--no-browser --port 8890"]   JupyterLab on notebooks/
#   make test                                     everything that is checked

SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: lab test test-all
.DEFAULT_GOAL := lab

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "oh_jupyter needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "A virtual environment cannot be made. On Debian: apt-get install python3-venv" >&2; exit 1; }

# What a user runs: the package as it would be released, JupyterLab, and all that the notebooks show.
$(VENV)/.lab: $(BIN)/python pyproject.toml $(shell find oh_jupyter labextension/src labextension/style labextension/schema -type f -not -path '*/labextension/static/*' -not -name '*.pyc' -not -path 'oh_jupyter/labextension/*' 2>/dev/null)
	$(BIN)/python -m pip install --quiet ".[all]"
	@touch $@

# What a developer needs: the tools, and the package from this folder.
$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	@touch $@

lab: $(VENV)/.lab
	@$(BIN)/oh-jupyter install-browser || true
	@mkdir -p notebooks/workspace
	$(BIN)/jupyter lab $$( [ "$$(id -u)" = 0 ] && echo --allow-root ) --notebook-dir=notebooks $(ARGS)

test-all: $(VENV)/.dev
	VENV=$(VENV) scripts/check --all

test: $(VENV)/.dev
	VENV=$(VENV) scripts/check
