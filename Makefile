# The whole workflow. Every target sets up what it needs by itself: a private .venv from python3.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test tests checks bare bench soak console-soak lint types layers unit system docs format hooks kernels clean

demo: $(VENV)/.ready
	$(BIN)/habitus demo

# Packages of the system are installed beside those of Python. Types and layers are checked beside
# the tests, which wait for processes now and then.
test: $(VENV)/bin/python
	@$(MAKE) --no-print-directory -j2 $(VENV)/.ready-dev system
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory -j2 checks tests

checks: types layers

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready-dev
	$(BIN)/mypy

layers: $(VENV)/.ready-dev
	$(BIN)/lint-imports

unit: system tests

# Threads of a product of matrices would wait for each other, busily, while other tests run.
tests: $(VENV)/.ready-dev
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal $(PYTEST)

system:
	@sh scripts/system_packages.sh

bare: # demo and test in a Debian that has only make and python3-venv; as root, or BARE=demo, BARE=container
	@sh scripts/bare.sh $(BARE)

bench: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/run.py

soak: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -m soak
	$(BIN)/python benchmarks/soak.py

console-soak: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -m soak
	$(BIN)/python benchmarks/console_soak.py --hours 6

docs: $(VENV)/.ready-dev
	$(BIN)/python scripts/command_reference.py
	$(BIN)/python scripts/figures.py
	[ ! -f mkdocs.yml ] || NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(VENV)/.ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

hooks: $(VENV)/.ready-dev
	$(BIN)/pre-commit install

kernels:
	find src -name '*.nbi' -delete -o -name '*.nbc' -delete -o -name '*.code' -delete

clean: kernels
	rm -rf $(VENV) demo dist site

$(VENV)/bin/python:
	@sh scripts/environment.sh $(PYTHON) $(VENV)
	@$@ -m pip install --quiet --disable-pip-version-check 'pip>=25' # older ones choose for a minute

# Bytecode is written as modules are imported: most of what is installed never is.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e .
	@touch $@

$(VENV)/.ready-dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[dev,bench]'
	@touch $(VENV)/.ready $@
