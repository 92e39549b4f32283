# Two commands do everything on a fresh machine with Python and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.installed-for-demo
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable

.PHONY: demo test install check format clean

demo: $(DEMO)
	$(BIN)/optimist demo

test: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

install: $(STAMP)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) '.[dev]'
	touch $(STAMP) $(DEMO)

$(DEMO): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) '.[cage2,report]'
	touch $(DEMO)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
