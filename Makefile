# The whole workflow. Every target sets up what it needs by itself: a private .venv from python3.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test bench soak console-soak lint types layers unit system docs format hooks kernels clean

demo: $(VENV)/.ready
	$(BIN)/habitus demo

test: lint types layers unit

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready-dev
	$(BIN)/mypy

layers: $(VENV)/.ready-dev
	$(BIN)/lint-imports

unit: $(VENV)/.ready-dev system
	$(BIN)/python -m pytest -n auto

system:
	@sh scripts/system_packages.sh

bench: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/run.py

soak: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/soak.py

console-soak: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/console_soak.py --hours 6

docs: $(VENV)/.ready-dev
	$(BIN)/python scripts/command_reference.py
	[ ! -f mkdocs.yml ] || NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(VENV)/.ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

hooks: $(VENV)/.ready-dev
	$(BIN)/pre-commit install

kernels:
	find src -name '*.nbi' -delete -o -name '*.nbc' -delete

clean: kernels
	rm -rf $(VENV) demo dist site

$(VENV)/bin/python:
	@sh scripts/environment.sh $(PYTHON) $(VENV)

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	@touch $@
