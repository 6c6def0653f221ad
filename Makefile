# Two commands do everything on a fresh machine: `make demo` and `make test`.

PY ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install -q -c constraints.txt

.PHONY: demo test explore lint types docs site clean

demo: $(VENV)/.demo
	$(BIN)/pellucid demo

# One thread for each of the two processes: more would stand in each other's way. Modules are
# compiled once, also where the environment says otherwise, as many tests start a process.
test: $(VENV)/.test
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n 2

# The tests of properties alone, with examples that are drawn at random.
explore: $(VENV)/.test
	$(BIN)/python -m pytest -q -m hypothesis --hypothesis-profile=explore

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

docs: $(VENV)/.demo
	$(BIN)/python scripts/document_config.py
	$(BIN)/python scripts/document_equations.py
	$(BIN)/python scripts/document_parts.py

# Into build/site: open index.html. Strict: a link that leads nowhere ends the build.
site: $(VENV)/.site
	$(BIN)/python scripts/prepare_site.py
	$(BIN)/zensical build --clean --strict

$(VENV)/bin/python:
	$(PY) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade 'pip>=25.1'

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[plot]'
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) --no-compile -e '.[test]'
	$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true  # pip would take one core for it
	touch $@

$(VENV)/.site: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[site]'
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
