# What people run. All may be repeated, as root and as a normal user.
#   make lab  [ARGS="--no-browser --port 8890"]   JupyterLab on notebooks/
#   make test                                     everything that is checked; test-all: what is slow, too
#   make coverage [TESTS=tests/storage]           which lines the tests run; too few in all fail
#   make pictures                                 what JupyterLab shows in the tests, into screenshots/
#   make docs                                     the documentation, in docs/_build/html
#   make bench [ARGS=--short]                     figures of this machine, into docs/figures
#   make check-release                            wheel and source distribution, built, checked and installed
#   make test-matrix [ARGS="tests/shell"]         the wheel under each Python that is here

SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: lab test test-all coverage docs pictures bench check-release test-matrix
.DEFAULT_GOAL := lab

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "oh_jupyter needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "A virtual environment cannot be made. On Debian: apt-get install python3-venv" >&2; exit 1; }

# What a user runs: the package as it would be released, JupyterLab, and all that the notebooks show.
$(VENV)/.lab: $(BIN)/python pyproject.toml $(shell find oh_jupyter labextension/src labextension/style labextension/schema -type f -not -path '*/labextension/static/*' -not -name '*.pyc' -not -path 'oh_jupyter/labextension/*' 2>/dev/null)
	@$(BIN)/python scripts/install ".[all]"
	@touch $@

# What a developer needs: the tools, and the package from this folder.
$(VENV)/.dev: $(BIN)/python pyproject.toml
	@$(BIN)/python scripts/install -e ".[dev]"
	@touch $@

lab: $(VENV)/.lab
	@$(BIN)/oh-jupyter install-browser || true
	@mkdir -p notebooks/workspace
	$(BIN)/jupyter lab $$( [ "$$(id -u)" = 0 ] && echo --allow-root ) --notebook-dir=notebooks $(ARGS)

test-all: $(VENV)/.dev
	VENV=$(VENV) scripts/check --all

test: $(VENV)/.dev
	VENV=$(VENV) scripts/check

TESTS ?= tests

# What a part of the tests runs is no measure of all of them.
coverage: $(VENV)/.dev
	$(BIN)/oh-jupyter install-browser || true
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(TESTS) -m 'not slow' -n auto --dist loadfile --no-loadscope-reorder
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report $(if $(filter-out tests,$(TESTS)),--fail-under=0)

$(VENV)/.docs: $(BIN)/python pyproject.toml
	@$(BIN)/python scripts/install -e ".[docs]"
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# What JupyterLab shows in the end-to-end tests, light and dark.
pictures: $(VENV)/.dev
	mkdir -p screenshots
	OH_JUPYTER_PICTURES=$(CURDIR)/screenshots $(BIN)/python -m pytest -q tests/e2e -m 'slow or not slow'

bench: $(VENV)/.dev
	$(BIN)/python tests/benchmarks/bench_all.py $(ARGS)

check-release:
	PYTHON=$(PYTHON) scripts/check-release

test-matrix:
	scripts/test-matrix $(ARGS)
