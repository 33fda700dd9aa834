# `make demo` and `make test` each work as the very first command on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LAB := $(VENV)/.lab
DEV := $(VENV)/.dev
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable

.PHONY: demo lab test check lint fuzz soak bench browser screenshots notebooks clean help

help: ## Say what there is to make
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

$(LAB): pyproject.toml
	@echo "Setting up $(VENV): the first time takes a minute or two."
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[lab,serve,dashboard]'
	@touch $@

# PyTorch first and alone: whatever else asks for it then takes this one.
$(DEV): $(LAB)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(INSTALL) '.[lab,serve,dashboard,torch,dev]'
	@touch $@

demo: $(LAB) ## Five methods on real flights over a one-way graph; writes oneway-demo/
	$(BIN)/oneway demo

lab: $(LAB) ## Eight real peers to watch and to break, on a page
	$(BIN)/oneway lab --dashboard

test: export OPENBLAS_NUM_THREADS := 1 # workers share two cores, and wait for others a third of the time
test: $(DEV) browser ## All tests
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations 40

lint: $(DEV) ## Formatting, types and the layer contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test ## What CI runs

# Without it the tests of the pages are skipped, and say so.
browser: ## Debian's chromium, for the tests of the pages, if it is missing
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  command -v google-chrome >/dev/null || { \
	    echo "Installing chromium for the tests of the pages."; \
	    { apt-get update -qq && apt-get install -qq -y chromium; } >/dev/null 2>&1; } || \
	  echo "There is no chromium and it cannot be installed here: the tests in a browser" \
	       "will be skipped. To run them: apt-get install chromium"

screenshots: $(DEV) browser ## The pictures of docs/images, anew
	$(BIN)/python docs/screenshots.py

notebooks: $(DEV) ## The notebooks of docs/notebooks, run anew, with what they show
	$(BIN)/python docs/run_notebooks.py

fuzz: $(DEV) ## Ten thousand schedules of faults against the protocol, a quarter of an hour
	ONEWAY_FUZZ_SCHEDULES=10000 $(BIN)/python -m pytest -n 2 --dist load \
	  tests/protocol/test_fuzz.py tests/protocol/test_neighbourhood.py

soak: export OPENBLAS_NUM_THREADS := 1
soak: $(DEV) ## Eight real peers under loss, kills and attack for 20 minutes: audit, memory, learning
	$(BIN)/python benchmarks/soak.py --minutes 20

bench: $(DEV) browser ## Speed and memory, as ratios measured in one run
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/susy.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/loading.py
	$(BIN)/python benchmarks/occupancy.py
	$(BIN)/python benchmarks/step_rules.py
	$(BIN)/python benchmarks/commits.py
	$(BIN)/python benchmarks/pushes.py
	$(BIN)/python benchmarks/liar.py
	$(BIN)/python benchmarks/page.py
	$(BIN)/python benchmarks/torch_nodes.py
	$(BIN)/python benchmarks/ray_sweeps.py
	$(BIN)/python benchmarks/parts.py
	$(BIN)/python benchmarks/ten_million.py
	$(BIN)/python benchmarks/async_events.py
	$(BIN)/python benchmarks/async_levels.py
	$(BIN)/python benchmarks/async_against_lab.py
	$(BIN)/python benchmarks/internet_scale.py

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
