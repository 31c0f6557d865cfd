# Two commands do all on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Breaks of the plain loop and the ring, which few tests touch: proven at each `make test`.
QUICK := 35-01 35-06 35-10 35-11 35-13 35-16 35-17 35-21
STAMP := $(VENV)/.installed

.PHONY: setup demo test verify coverage lint clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt "torch==$$(sed -n 's/^torch==//p' constraints.txt)" numpy
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable ".[dev]"
	touch $@

demo: setup
	PATH="$(CURDIR)/$(BIN):$$PATH" bash scripts/demo.sh

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/phase35
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/breaklab
	$(BIN)/breaklab lint
	$(BIN)/breaklab verify $(QUICK)

# Every break; a quarter of an hour on two cores.
verify: setup
	$(BIN)/breaklab verify --all

# Lines of the lab that its own tests run, forked ranks included.
coverage: setup
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q tests/phase35
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
