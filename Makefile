PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS ?= 100000
MUTANTS ?= 100
SEED ?= 1
TARGETS ?= recording bug_report text kernel_log configuration profile config_space shown \
	results node_names counters watch_state watch_records rank history fabric

.PHONY: help demo test test-ci test-all new-check ptxas chaos mutants conditions fuzz lock lowest dist golden clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(VENV)/.installed  ## install into .venv and show the wiring of a DGX-1
	@$(BIN)/dgxcheck topo -m --from dgx-1-v100

test: MORE := -m "not exhaustive and not in_ci"
test:  ## install the dev group, then check style, types, imports and behaviour: a third of the cases of each table
test-ci: MORE := -m "not exhaustive"
test-ci:  ## the same with all cases, all shipped faults, what takes seconds, and other programs: what CI runs
test-all: MORE := -m "" --hypothesis-profile=long
test-all:  ## the same with all faults at every place, pairs of faults, and long fuzzing
# the tests start hundreds of interpreters, which must not compile every module again
test test-ci test-all: export PYTHONDONTWRITEBYTECODE =
test test-ci test-all: $(VENV)/.developed
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m compileall -q dgxcheck probes
	$(BIN)/pytest -n auto --dist worksteal $(MORE)

new-check: $(BIN)/ruff  ## NAME=subject.word: write the skeleton of a check with its test, and register it
	@$(BIN)/python tests/new_check.py $(NAME) $(PACKAGE)

ptxas: $(VENV)/.ptxas  ## fetch NVIDIA's assemblers of three CUDA releases (107 MB), for the tests of the kernels

chaos: $(VENV)/.developed  ## run hundreds of sick drivers and systems, and count what holds
	cd tests && ../$(BIN)/python -m chaos $(ROWS)

mutants: $(VENV)/.developed  ## MUTANTS=100 SEED=1: change random lines one at a time, and tell which change no test notices
	cd tests && ../$(BIN)/python mutation.py $(MUTANTS) $(SEED)

conditions: $(VENV)/.developed  ## all tests once: which comparison, operand or branch none of them varies
	$(BIN)/python tests/conditions.py

fuzz: $(VENV)/.developed  ## RUNS=100000 inputs for each loader and reader (TARGETS="text recording"), guided by coverage
	@$(BIN)/python -m pip install --quiet atheris || { echo "atheris has no wheel for this Python; take 3.11 to 3.13"; exit 1; }
	PYTHONPATH=tests; export PYTHONPATH; for target in $(TARGETS); do \
		$(BIN)/python -m fuzz $$target -runs=$(RUNS) -print_final_stats=1 || exit 1; done

lock: $(VENV)/bin/python  ## pin the newest versions of everything that development needs, with hashes
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --upgrade --no-header --no-annotate \
		--group dev pyproject.toml --output-file requirements-dev.txt

lowest: $(VENV)/bin/python  ## test with the lowest versions of the dependencies that pyproject.toml allows
	$(PYTHON) -m venv $(VENV)/lowest
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --no-header --extra fleet pyproject.toml --output-file $(VENV)/lowest.txt
	$(VENV)/lowest/bin/python -m pip install --quiet "pip>=25.1"
	$(VENV)/lowest/bin/python -m pip install --quiet --requirement $(VENV)/lowest.txt --group dev --editable .
	$(VENV)/lowest/bin/python -m pytest -n auto tests/cli tests/driver tests/fleet tests/test_golden.py

dist: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
dist: $(VENV)/.developed  ## wheel, sdist, single file, Debian package, bill of materials: the same bytes from the same commit
	rm -rf dist $(VENV)/dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m release dist/*.whl dist
	$(PYTHON) -m venv --without-pip $(VENV)/dist
	$(BIN)/python -m pip --python $(VENV)/dist/bin/python install --quiet dist/*.whl
	$(BIN)/python -m pip install --quiet "cyclonedx-bom>=7"
	$(BIN)/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml --mc-type application \
		--output-file dist/dgxcheck.cdx.json $(VENV)/dist/bin/python

golden: $(VENV)/.developed  ## accept what the golden tests print now
	DGXCHECK_UPDATE_GOLDEN=1 $(BIN)/pytest -n auto -m "not exhaustive"
	$(BIN)/python tests/check_paragraphs.py
	$(BIN)/python tests/fault_words.py
	$(BIN)/python tests/remedy_list.py
	$(BIN)/python tests/threshold_list.py
	$(BIN)/python tests/transcripts.py

clean:  ## forget the virtual environment
	rm -rf $(VENV)

$(BIN)/ruff:  # where it is there nothing is installed again
	@$(MAKE) --no-print-directory $(VENV)/.developed

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.developed: pyproject.toml requirements-dev.txt $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements-dev.txt
	@touch $@

# the wheels of CUDA 11 and 12 hold files of the same names, so each release has its own folder
$(VENV)/.ptxas: | $(VENV)/bin/python
	rm -rf $(VENV)/ptxas
	$(BIN)/python -m pip install --quiet --no-deps --target $(VENV)/ptxas/11 'nvidia-cuda-nvcc-cu11==11.8.*'
	$(BIN)/python -m pip install --quiet --no-deps --target $(VENV)/ptxas/12 'nvidia-cuda-nvcc-cu12==12.9.*'
	$(BIN)/python -m pip install --quiet --no-deps --target $(VENV)/ptxas/13 'nvidia-cuda-nvcc==13.*'
	@touch $@
