# `make demo` and `make test` each work as the very first command on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LAB := $(VENV)/.lab
DEV := $(VENV)/.dev
ALL := $(VENV)/.all
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable

.PHONY: demo lab test test-all check lint fuzz soak bench paper browser screenshots notebooks clean help

help: ## Say what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

$(LAB): pyproject.toml
	@echo "Setting up $(VENV): the first time takes a minute or two."
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[lab,serve,dashboard]'
	@touch $@

$(DEV): $(LAB)
	$(INSTALL) '.[lab,serve,dashboard,dev]'
	@touch $@

# PyTorch first and exactly: an open range takes gigabytes for GPUs where this one has a CPU build.
$(ALL): $(DEV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'torch==2.13.0'
	$(INSTALL) '.[lab,serve,dashboard,all]'
	@touch $@

demo: $(LAB) ## Seven methods on real flights over a one-way graph; writes oneway-demo/
	$(BIN)/oneway demo

lab: $(LAB) ## Eight real peers to watch and to break, on a page
	$(BIN)/oneway lab --dashboard

test test-all: export OPENBLAS_NUM_THREADS := 1 # test processes share the cores

test: $(DEV) ## All that proves the heart, in less than eight minutes on two cores
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --ignore tests/system

test-all: $(ALL) browser ## Also storms of real processes, a browser, Ray, notebooks and studies
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations 40 \
	  --hypothesis-profile thorough

lint: $(ALL) ## Formatting, types and the layer contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test-all ## What CI runs

# Without it the tests of the pages are skipped, and say so.
browser: ## Debian's chromium, for the tests of the pages, if it is missing
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  command -v google-chrome >/dev/null || { \
	    echo "Installing chromium for the tests of the pages."; \
	    { apt-get update -qq && apt-get install -qq -y chromium; } >/dev/null 2>&1; } || \
	  echo "There is no chromium and it cannot be installed here: the tests in a browser" \
	       "will be skipped. To run them: apt-get install chromium"

screenshots: $(ALL) browser ## The pictures of docs/images, anew
	$(BIN)/python docs/screenshots.py

notebooks: $(ALL) ## The notebooks of docs/notebooks, run anew, with what they show
	$(BIN)/python docs/run_notebooks.py

fuzz: $(ALL) ## Ten thousand schedules of faults against the protocol, a quarter of an hour
	ONEWAY_FUZZ_SCHEDULES=10000 $(BIN)/python -m pytest -n 2 --dist load \
	  tests/protocol/test_fuzz.py tests/protocol/test_neighbourhood.py

soak: export OPENBLAS_NUM_THREADS := 1
soak: $(ALL) ## Eight real peers under loss, kills and attack for 20 minutes: audit, memory, learning
	$(BIN)/python tests/soak/soak.py --minutes 20

bench: $(ALL) ## Speed and memory, as ratios measured in one run
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/peer.py
	$(BIN)/python benchmarks/asynchronous.py
	$(BIN)/python benchmarks/torch_nodes.py
	$(BIN)/python benchmarks/loading.py

paper: export OPENBLAS_NUM_THREADS := 1
paper: $(LAB) ## The paper's panels and claims again, on the data at hand; writes studies/results/paper/
	$(BIN)/python studies/paper.py

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
