PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test golden clean

help:  ## what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(VENV)/.installed  ## install into .venv and show the wiring of a DGX-1
	@$(BIN)/dgxcheck topo -m --from dgx-1-v100

test: $(VENV)/.developed  ## install the dev group, then check style, types, imports and behaviour
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto

golden: $(VENV)/.developed  ## accept what the golden tests print now
	DGXCHECK_UPDATE_GOLDEN=1 $(BIN)/pytest -n auto tests/test_golden.py
	$(BIN)/python tests/check_paragraphs.py
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
