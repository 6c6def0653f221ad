# Two commands do everything on a fresh machine: `make demo` and `make test`.

PY ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Compiled where it is imported: of 13,000 modules that pip would compile, tests import a third.
INSTALL := $(BIN)/python -m pip install -q --no-compile -c constraints.txt

# Two workers more than cores, as a fifth of the tests' time is waiting (tests/side_by_side.py).
WORKERS := $(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$((cores < 7 ? cores + 2 : 8)))
TESTS := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q

.PHONY: demo test quick explore lint types docs notebooks live site clean

demo: $(VENV)/.demo
	$(BIN)/pellucid demo

# One thread for each process: more would stand in each other's way. Modules are compiled once, also
# where the environment says otherwise, as many tests start a process.
test: $(VENV)/.test
	$(TESTS) --workers $(WORKERS)

# Some of each area, for every change: under two minutes on two cores.
quick: $(VENV)/.test
	$(TESTS) --workers $(WORKERS) @tests/quick.txt

# At night: properties with examples drawn at random, sweeps, clusters, foreign clients; damaged
# files and kills at size; every break of scripts/breaks.toml, which a test must notice.
explore: $(VENV)/.test
	$(TESTS) -m 'hypothesis or nightly' --hypothesis-profile=explore
	PELLUCID_FUZZ_COUNT=1000 PELLUCID_KILLS=50 $(TESTS) tests/faults/test_fuzzed_files.py \
	    tests/faults/test_hostile_documents.py tests/faults/test_kills.py \
	    tests/interop/test_random_models.py tests/web/test_engine_equals_python.py \
	    tests/web/test_web_tokenizers.py
	$(BIN)/python scripts/breaks.py

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

docs: $(VENV)/.demo
	$(BIN)/python scripts/document_config.py
	$(BIN)/python scripts/document_equations.py
	$(BIN)/python scripts/document_parts.py
	$(BIN)/python -m book scenes
	$(BIN)/python -m book live --again

# The outputs of docs/notebooks, after a change of a cell: some two minutes on one core.
notebooks: $(VENV)/.demo
	$(BIN)/python scripts/run_notebooks.py

# A small model, trained for some minutes, as one page that translates by itself: docs/live.html.
# After a change of the explorer or the engine `python -m book live --again` is enough.
live: $(VENV)/.demo
	$(BIN)/python -m book live

# Into build/site: open index.html, whose first screen is that page.
# Strict: a link that leads nowhere ends the build.
site: $(VENV)/.site
	$(BIN)/python scripts/prepare_site.py
	$(BIN)/zensical build --clean --strict

$(VENV)/bin/python:
	$(PY) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade 'pip>=25.1'

# First and by itself: the build for CPUs, a fifth of the size, unless there is an NVIDIA card.
$(VENV)/.torch: $(VENV)/bin/python constraints.txt
	$(BIN)/python scripts/install_torch.py
	touch $@

$(VENV)/.demo: $(VENV)/.torch pyproject.toml constraints.txt
	$(INSTALL) -e '.[train,plot]'
	touch $@

$(VENV)/.test: $(VENV)/.torch pyproject.toml constraints.txt
	$(INSTALL) -e '.[all]' --group test
	touch $@

$(VENV)/.site: $(VENV)/.torch pyproject.toml constraints.txt
	$(INSTALL) -e '.[train]' --group site
	touch $@

# Holds what the tests need as well: whoever lints first installs once.
$(VENV)/.dev: $(VENV)/.torch pyproject.toml constraints.txt
	$(INSTALL) -e '.[all]' --group dev
	touch $(VENV)/.test $@

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
