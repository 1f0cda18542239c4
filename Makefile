PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export OMP_NUM_THREADS ?= 1

.PHONY: demo test check docs bench clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[all]" --group dev
	touch $@

demo: $(STAMP)            ## break a real run, diagnose it, prove the fix
	$(BIN)/traindx demo

check: $(STAMP)           ## lint, types, documentation up to date (import layers are a test)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check

test: check               ## everything that has to hold
	$(BIN)/python -m pytest -n 2

docs: $(STAMP)            ## write the generated pages anew
	$(BIN)/python docs/generate.py

bench: $(STAMP)           ## speed and accuracy, each beside a baseline
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache
