# Every target sets up what it needs in its own virtual environment; only Python 3.11 or newer has to be there.
#
#   make test PYTHON=python3.12      another interpreter
#   make test TORCH=1                also run the tests on torch
#   make test ROOM=losses            the tests of one package
#   make test PYTEST_ARGS="-k huber" a part of the tests
#   make test WORKERS=4              more processes
#   make test-all TORCH=1            every case of every test
#   make fuzz FUZZ_CASES=500         fewer cases of hostile input
#   make docs GALLERY=0              the pages without running the examples

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
TORCH ?=
ROOM ?=
PYTEST_ARGS ?=
GALLERY ?= 1
FUZZ_CASES ?= 10000

BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The tests write bytecode, which the processes that they start need not compile again.
TEST_ENV := PYTHONDONTWRITEBYTECODE=
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

export MPLBACKEND ?= Agg

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-all fuzz lint bench docs dist-check check-publish release clean distclean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(STAMPS)/cli,plot ## curves from curves on built-in data: a table, a picture and a page in demo/
	$(BIN)/fenchel demo --output demo

test: $(STAMPS)/test $(if $(TORCH),$(STAMPS)/torch) ## run the tests (ROOM=losses: of one package; TORCH=1: on torch too)
	$(TEST_ENV) $(ONE_THREAD) $(BIN)/python -m pytest -p no:benchmark -n $(WORKERS) $(CASES) $(if $(ROOM),--room $(ROOM)) $(PYTEST_ARGS)

test-all: CASES := --exhaustive
test-all: test ## run every case of every test; make test takes those that can fail apart

fuzz: $(STAMPS)/test ## hostile input: 10 000 cases in about 20 minutes (FUZZ_CASES=500 for fewer)
	$(ONE_THREAD) $(BIN)/python -m tests.fuzz --cases $(FUZZ_CASES) --workers $(WORKERS)

lint: $(STAMPS)/lint,cli,plot ## style, types, the direction of imports and docstrings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/check_docstrings.py

bench: $(STAMPS)/bench ## run the benchmarks, on one thread
	$(ONE_THREAD) $(BIN)/python -m pytest benchmarks $(PYTEST_ARGS)

docs: $(STAMPS)/docs ## build the pages in docs/_build/html; a warning or a broken link within them is an error
	$(ONE_THREAD) $(BIN)/python -m sphinx -E -W --keep-going $(if $(filter 0,$(GALLERY)),-D plot_gallery=0) -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py

dist-check: ## build sdist and wheel, install the wheel in a new environment and try it
	.ci/try-dist $(PYTHON)

check-publish: ## list what is open before the project can be published: places, versions, changelog
	$(PYTHON) .ci/release.py check

release: ## build, check and tag a release; nothing is signed or sent
	$(PYTHON) .ci/release.py build

clean: ## remove what the other targets wrote, but for the virtual environment
	rm -rf demo reproduce build dist docs/_build docs/auto_examples docs/api docs/sg_execution_times.rst
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	find . -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove the virtual environment too
	rm -rf $(VENV)

# Tests that read real data find it beside the checkout, unless the caller says where it is.
ifeq ($(origin FENCHEL_DATA),undefined)
ifneq ($(wildcard ../shared/data),)
test: export FENCHEL_DATA := $(CURDIR)/../shared/data
endif
endif

# The virtual environment. A stamp stands for a set of extras that is installed; it is made anew when pyproject.toml
# changes.
$(VENV)/pyvenv.cfg:
	@command -v "$(PYTHON)" > /dev/null || \
	    { echo "$(PYTHON) was not found. Install Python 3.11 or newer, or run: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Python 3.11 or newer is needed; $(PYTHON) is $$("$(PYTHON)" --version 2>&1). Run: make PYTHON=python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2> /dev/null || \
	    { echo "$(PYTHON) has no venv module. Install it (on Debian and Ubuntu: the package python3-venv)." >&2; exit 1; }
	"$(PYTHON)" -m venv --clear $(VENV)

$(STAMPS)/torch: $(VENV)/pyvenv.cfg
	$(PIP) torch==2.13.0
	@mkdir -p $(@D) && touch $@

$(STAMPS)/%: pyproject.toml $(VENV)/pyvenv.cfg
	@echo "Installing fenchel[$*] into $(VENV); the first time takes a few minutes."
	@$(PIP) --editable '.[$*]'
	@mkdir -p $(@D) && touch $@
