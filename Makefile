# Two commands do everything on a fresh machine with Python and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.installed-for-demo
# PyTorch without CUDA; `make demo TORCH_INDEX=` takes pip's default wheel, which on Linux brings 5 GB of CUDA libraries.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt \
	$$($(BIN)/python tools/torch_index.py '$(TORCH_INDEX)') --editable ./packages/cage2 --editable

.PHONY: demo test install check docs format clean

demo: $(DEMO)
	$(BIN)/optimist demo

test: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

install: $(STAMP)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/lint-imports
	$(BIN)/python tools/check_words.py

docs: $(STAMP)
	$(BIN)/python tools/stage_site.py build/pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "the site is in build/site"

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(STAMP): pyproject.toml packages/cage2/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) '.[dev]'
	touch $(STAMP) $(DEMO)

$(DEMO): pyproject.toml packages/cage2/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) '.[cage2,report]'
	touch $(DEMO)

clean:
	rm -rf $(VENV) build .import_linter_cache .mypy_cache .ruff_cache .pytest_cache
