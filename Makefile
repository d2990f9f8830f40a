# Commands for users and developers. Each can be repeated, as root or as a normal user.
#   make lab  [ARGS="--no-browser --port 8890"]   start JupyterLab on notebooks/
#   make test                                     run all checks; test-all adds the long tests
#   make coverage [TESTS=tests/storage]           measure line coverage; fail below the threshold
#   make pictures                                 replace the screenshots of the pages; save all to screenshots/
#   make docs                                     build the documentation in docs/_build/html
#   make bench [ARGS=--short]                     measure this machine, into docs/figures
#   make measures [ARGS=--trace]                  count lines, files, formats and operations
#   make check-release                            build, check and install wheel and source distribution
#   make test-matrix [ARGS="tests/shell"]         test the wheel under each installed Python

SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: lab test test-all coverage docs pictures bench measures check-release test-matrix
.DEFAULT_GOAL := lab

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "oh_jupyter needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Python could not create a virtual environment. On Debian: apt-get install python3-venv" >&2; exit 1; }

# For users: the package as released, JupyterLab, and everything that the notebooks use.
$(VENV)/.lab: $(BIN)/python pyproject.toml $(shell find oh_jupyter labextension/src labextension/style labextension/schema -type f -not -path '*/labextension/static/*' -not -name '*.pyc' -not -path 'oh_jupyter/labextension/*' -not -path 'oh_jupyter/mcp_tools/apps/*' 2>/dev/null)
	@$(BIN)/python scripts/install ".[all]"
	@touch $@

# For developers: the tools, and the package in editable mode.
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

# The threshold applies only to a run of all tests.
coverage: $(VENV)/.dev
	$(BIN)/oh-jupyter install-browser || true
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(TESTS) -m 'not slow' -n auto --dist loadfile --no-loadscope-reorder
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report $(if $(filter-out tests,$(TESTS)),--fail-under=0)

$(VENV)/.docs: $(BIN)/python pyproject.toml
	@$(BIN)/python scripts/install -e ".[dev,docs]"
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# Screenshots of the end-to-end tests in the light and the dark theme.
pictures: $(VENV)/.dev
	mkdir -p screenshots
	OH_JUPYTER_PICTURES=$(CURDIR)/screenshots $(BIN)/python -m pytest -q tests/e2e -m 'slow or not slow'

bench: $(VENV)/.dev
	$(BIN)/python tests/benchmarks/bench_all.py $(ARGS)

measures: $(BIN)/python
	@$(BIN)/python scripts/measures $(ARGS)

check-release:
	PYTHON=$(PYTHON) scripts/check-release

test-matrix:
	scripts/test-matrix $(ARGS)
