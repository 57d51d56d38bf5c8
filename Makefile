PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test test-all new-check ptxas chaos golden clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(VENV)/.installed  ## install into .venv and show the wiring of a DGX-1
	@$(BIN)/dgxcheck topo -m --from dgx-1-v100

test:  ## install the dev group, then check style, types, imports and behaviour
test-all: MORE := -m "" --hypothesis-profile=long
test-all:  ## the same with faults at every place, all pairs of faults, and long fuzzing
test test-all: $(VENV)/.developed
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto $(MORE)

new-check: $(VENV)/.developed  ## NAME=subject.word: write the skeleton of a check with its test, and register it
	@$(BIN)/python tests/new_check.py $(NAME) $(PACKAGE)

ptxas: $(VENV)/.ptxas  ## fetch NVIDIA's assemblers of three CUDA releases (107 MB), for the tests of the kernels

chaos: $(VENV)/.developed  ## run hundreds of sick drivers and systems, and count what holds
	cd tests && ../$(BIN)/python -m chaos $(ROWS)

golden: $(VENV)/.developed  ## accept what the golden tests print now
	DGXCHECK_UPDATE_GOLDEN=1 $(BIN)/pytest -n auto tests/test_golden.py
	$(BIN)/python tests/check_paragraphs.py
	$(BIN)/python tests/fault_words.py
	$(BIN)/python tests/remedy_list.py
	$(BIN)/python tests/threshold_list.py
	$(BIN)/python tests/transcripts.py

clean:  ## forget the virtual environment
	rm -rf $(VENV)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.developed: pyproject.toml $(VENV)/.installed
	$(BIN)/python -m pip install --quiet "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

# the wheels of CUDA 11 and 12 hold files of the same names, so each release has its own folder
$(VENV)/.ptxas: | $(VENV)/bin/python
	rm -rf $(VENV)/ptxas
	$(BIN)/python -m pip install --quiet --no-deps --target $(VENV)/ptxas/11 'nvidia-cuda-nvcc-cu11==11.8.*'
	$(BIN)/python -m pip install --quiet --no-deps --target $(VENV)/ptxas/12 'nvidia-cuda-nvcc-cu12==12.9.*'
	$(BIN)/python -m pip install --quiet --no-deps --target $(VENV)/ptxas/13 'nvidia-cuda-nvcc==13.*'
	@touch $@
