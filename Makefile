# clew: everything a person or a machine runs. Needs make and Python 3.11 or later with venv.

PYTHON  ?=
WORKERS ?= auto
DEMO    ?= .demo
LAB     := .lab
REAL    := tests/realclients
SCALE   := tests/cluster
RELEASE := tests/release
AXE     := axe-core@4.14.0
HARBOR  := harbor==0.25.0

# `make test PYTHON=python3.13` uses an environment of its own.
VENV   := .venv$(if $(PYTHON),-$(notdir $(PYTHON)))
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip --disable-pip-version-check install -qq --no-compile
CHECKED = $(wildcard src tests benchmarks scripts)
# Tests with a target of their own.
OTHERS := --ignore=$(REAL) --ignore=$(SCALE) --ignore=$(RELEASE)

.DEFAULT_GOAL := help
.PHONY: help run test test-all test-slow test-again test-real test-build test-scale sshd browser postgres axe harbor lint bench docs \
	docs-serve clean

help:
	@echo 'make run        start clew and its app on your own history, or on a demo if there is none'
	@echo 'make test       run the quick tests (minutes); PYTHON=python3.13 chooses an interpreter'
	@echo 'make test-all   run lint and all tests: test, test-slow, test-build, test-real, test-scale'
	@echo 'make test-slow  run the slow tests, and those that need ssh, Chromium or PostgreSQL, where they are installed'
	@echo 'make test-real  run the tests with the real agents, offline; downloads them (Linux, root, node with npm)'
	@echo 'make test-build build the wheel and the sdist, and test them with every Python found'
	@echo 'make test-scale run the tests with a Spark cluster; downloads Spark, needs Java 17'
	@echo 'make test-again run the tests that failed last'
	@echo 'make lint       run ruff, mypy and the import contracts'
	@echo 'make bench      run the benchmarks'
	@echo 'make docs       generate the reference pages and build the site into build/site'
	@echo 'make docs-serve serve the site on this machine, and rebuild it on changes'
	@echo 'make clean      remove everything that make created'

# Exit code 1 of plain `clew` means that no history was found. The app starts only at a terminal, where Ctrl-C can
# end it; where there is a screen, in a browser.
run: $(VENV)/.run-installed
	@echo '$$ clew'; status=0; home=; open=; $(VENV)/bin/clew || status=$$?; \
	if [ $$status -gt 1 ]; then exit $$status; fi; \
	if [ $$status -eq 1 ]; then \
	  home=' --home $(DEMO)'; \
	  if [ ! -d $(DEMO) ]; then echo '$$ clew demo $(DEMO)'; $(VENV)/bin/clew demo $(DEMO) || exit $$?; fi; \
	  echo "$$ clew$$home"; $(VENV)/bin/clew$$home || exit $$?; \
	fi; \
	echo; \
	if [ ! -t 0 ] || [ ! -t 1 ] || [ -n "$$CI" ]; then echo "All of it in a browser: $(VENV)/bin/clew web$$home --open"; exit; fi; \
	if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] || [ "$$(uname)" = Darwin ]; then open=' --open'; fi; \
	echo "$$ clew web$$home$$open    # all of it in a browser, until Ctrl-C"; exec $(VENV)/bin/clew web$$home$$open

# pytest's exit code is kept for .ci/run: only where all tests ran and some failed (1), they are worth another try.
PYTEST = code=0; $(PY) -m pytest -n $(WORKERS) --durations=10 --durations-min=10 $(OTHERS) \
	-m $(1) || code=$$?; echo $$code > $(VENV)/.tested; exit $$code

test: $(VENV)/.test-installed
	@$(call PYTEST,'not slow')

test-slow: $(VENV)/.dev-installed sshd browser postgres axe harbor
	@$(call PYTEST,slow)

test-all: lint test test-slow test-build test-real test-scale

test-again: $(VENV)/.test-installed
	@$(PY) -m pytest --last-failed --last-failed-no-failures none -v $(OTHERS)

# The tests of other machines need an ssh server. It is installed only where that does not also start it.
sshd:
	@if [ ! -x /usr/sbin/sshd ] && [ "$$(id -u)" = 0 ] && [ ! -d /run/systemd/system ] && command -v apt-get >/dev/null; then \
	  export DEBIAN_FRONTEND=noninteractive; install='apt-get install -qq -y --no-install-recommends openssh-server openssh-client'; \
	  { $$install || { apt-get update -qq && $$install; }; } >/dev/null 2>&1 || true; \
	fi

browser:
	@for name in "$$CLEW_CHROMIUM" chromium chromium-browser google-chrome chrome; do \
	  if [ -n "$$name" ] && command -v "$$name" >/dev/null; then exit 0; fi; \
	done; echo 'No Chromium: the browser tests are skipped. On Debian or Ubuntu: apt install chromium'

postgres:
	@if ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 && ! command -v postgres >/dev/null; then \
	  echo 'No PostgreSQL: its tests are skipped. On Debian or Ubuntu: apt install postgresql'; \
	fi

axe:
	@if [ ! -f $(LAB)/axe/package/axe.min.js ] && command -v npm >/dev/null; then \
	  mkdir -p $(LAB)/axe && cd $(LAB)/axe && timeout 60 npm pack --silent $(AXE) >/dev/null 2>&1 && tar xzf axe-core-*.tgz; \
	fi; [ -f $(CURDIR)/$(LAB)/axe/package/axe.min.js ] || echo 'No axe-core: the accessibility tests are skipped. `npm` downloads it.'

# Harbor's models check trajectories. The package asks for Python 3.12 and many others; its models need only pydantic.
harbor: | $(PY)
	@if [ ! -f $(LAB)/harbor/.installed ]; then \
	  mkdir -p $(LAB) && $(PY) -m venv $(LAB)/harbor && \
	  $(LAB)/harbor/bin/python -m pip --disable-pip-version-check install -qq --no-deps --ignore-requires-python $(HARBOR) && \
	  $(LAB)/harbor/bin/python -m pip --disable-pip-version-check install -qq 'pydantic>=2.11' && \
	  touch $(LAB)/harbor/.installed; \
	fi 2>/dev/null; [ -f $(LAB)/harbor/.installed ] || echo 'No Harbor: the tests with its models are skipped. `pip` downloads it.'

test-build: $(VENV)/.dev-installed
	@$(PY) -m pytest $(RELEASE)

# Each agent is installed in a folder of its own. One that cannot be installed is skipped.
test-real: $(VENV)/.dev-installed
	@$(PY) -m tests.realclients.install
	@$(PY) -m pytest -n $(WORKERS) $(REAL) || \
	  { echo 'Running the failed tests again, alone:'; $(PY) -m pytest --last-failed --last-failed-no-failures none -v $(REAL); }

test-scale: $(VENV)/.spark-installed
	@$(PY) -m pytest --timeout 2400 -o faulthandler_timeout=2000 $(SCALE)

lint: $(VENV)/.dev-installed
	@$(PY) -m ruff check $(CHECKED)
	@$(PY) -m mypy src tests benchmarks scripts
	@$(VENV)/bin/lint-imports

bench: $(VENV)/.dev-installed
	@$(PY) -m benchmarks

docs: $(VENV)/.dev-installed
	@$(PY) scripts/docs.py
	@$(VENV)/bin/zensical build --clean --strict

docs-serve: $(VENV)/.dev-installed
	@$(VENV)/bin/zensical serve --dev-addr 127.0.0.1:8000

clean:
	@rm -rf .venv .venv-* $(DEMO) $(LAB) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .cache
	@find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.run-installed: pyproject.toml | $(PY)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.test-installed: pyproject.toml | $(PY)
	@$(PIP) --editable '.[test]'
	@touch $(VENV)/.run-installed $@

$(VENV)/.dev-installed: pyproject.toml | $(PY)
	@$(PIP) --editable '.[dev]'
	@touch $(VENV)/.run-installed $(VENV)/.test-installed $@

$(VENV)/.spark-installed: $(VENV)/.dev-installed
	@$(PIP) --editable '.[dev,spark]'
	@touch $@

$(PY):
	@python=; \
	for candidate in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then echo 'clew needs Python 3.11 or later, and found no $(or $(PYTHON),python3) that is.' >&2; exit 1; fi; \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "$$python has no venv module: install it first (on Debian or Ubuntu: apt install python3-venv)." >&2; exit 1; fi; \
	"$$python" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
