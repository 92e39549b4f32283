# Two commands do everything on a fresh machine with Python and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CONSOLE := $(VENV)/.console
ifeq ($(origin CXX),default)
CXX := c++
endif
DEMO := $(VENV)/.installed-for-demo
# PyTorch without CUDA; `make demo TORCH_INDEX=` takes pip's default wheel, which on Linux brings 5 GB of CUDA libraries.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt \
	$$($(BIN)/python tools/torch_index.py '$(TORCH_INDEX)') --editable ./packages/cage2 --editable

.PHONY: demo test install check docs format fuzz clean

demo: $(DEMO)
	$(BIN)/optimist demo

test: $(STAMP) $(CONSOLE)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

install: $(STAMP) $(CONSOLE)

# The Atari console is built where a C++ compiler is found; nothing else needs it.
$(CONSOLE): $(STAMP) $(shell find packages/a2600 -name '*.h' -o -name '*.cpp' -o -name '*.json' -o -path '*/src/*.py' -o -name 'CMakeLists.txt')
	@if command -v $(CXX) >/dev/null; then $(BIN)/python -m pip install --quiet ./packages/a2600 && touch $@; \
	else echo '*** NOT BUILT AND NOT TESTED: the Atari console (packages/a2600); install a C++ compiler, e.g. g++' >&2; fi

# Random cartridges and saved states in the console, with sanitizers, where the compiler has them.
fuzz: EXECUTIONS ?= 20000
fuzz:
	@mkdir -p build
	@if echo 'int main() {}' | $(CXX) -fsanitize=address,undefined -x c++ - -o build/fuzz 2>/dev/null; then \
	$(CXX) -std=gnu++17 -g -O1 -ffp-contract=off -fsanitize=address,undefined -fno-sanitize-recover=all -Wno-psabi -pthread \
		packages/a2600/core/fuzz.cpp -o build/fuzz && build/fuzz $(EXECUTIONS); \
	else echo '*** NOT FUZZED: the Atari console; no C++ compiler with sanitizers is installed' >&2; fi

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
