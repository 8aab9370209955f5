# The verbs of Merk. CI calls the same ones. Each does its own set-up.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help run init test check fmt e2e bench pictures pin clean

help: ## list the verbs
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

.venv/.runtime: pyproject.toml constraints.txt scripts/setup
	@PYTHON=$(PYTHON) scripts/setup

.venv/.dev: .venv/.runtime
	@PYTHON=$(PYTHON) scripts/setup dev

run: .venv/.runtime ## open a chat in the terminal
	@$(BIN)/merk chat

init: .venv/.runtime ## set up Telegram and a model, step by step
	@$(BIN)/merk init

test: .venv/.dev ## run every test that Python packages alone can run
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

check: .venv/.dev ## lint, types, architecture, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/codespell

fmt: .venv/.dev ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

e2e: .venv/.dev ## tests that need a browser, npm or a homeserver
	@PYTHON=$(PYTHON) scripts/setup e2e
	$(BIN)/python -m pytest -m external -n 2 --dist loadfile

bench: .venv/.dev ## measure Merk's own time in a turn
	$(BIN)/merk bench turn --messages 100000 --json

pictures: .venv/.dev ## draw the pictures of the README and the guides anew
	$(BIN)/python -m docs.pictures

pin: .venv/.dev ## write constraints.txt anew from the newest versions that fit
	scripts/pin

clean: ## remove what the other verbs made
	rm -rf .venv .venv-synapse .venv-node .venv-browser tests/e2e/e2ee/node_modules
	rm -rf build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
