# clew: everything a person or a machine runs. Needs make and Python 3.11 or later with venv.

PYTHON  ?=
WORKERS ?= auto
DEMO    ?= .demo
LAB     := .lab
REAL    := tests/realclients
SCALE   := tests/cluster
AXE     := axe-core@4.14.0

VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip --disable-pip-version-check install -qq
CHECKED = $(wildcard src tests benchmarks scripts)

.DEFAULT_GOAL := help
.PHONY: help run test test-again sshd browser postgres axe test-real test-scale lint bench docs clean

help:
	@echo 'make run        clew and its app on your own history, or on a demo where there is none'
	@echo 'make test       the whole test suite, without test-real and test-scale'
	@echo 'make test-again what failed last, alone'
	@echo 'make test-real  tests with the genuine clients, offline; fetches them (Linux, root, node with npm)'
	@echo 'make test-scale tests with a Spark cluster of several processes; fetches Spark, needs Java 17'
	@echo 'make lint       ruff, mypy and the import contracts'
	@echo 'make bench      the benchmarks'
	@echo 'make docs       write the generated pages again'
	@echo 'make clean      remove everything that make made'

# Exit code 1 of plain `clew` means that no history was found. The app starts where somebody sits at a terminal, who can
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

test: $(VENV)/.dev-installed sshd browser postgres axe
	@code=0; $(PY) -m pytest -n $(WORKERS) --durations=10 --durations-min=20 --ignore=$(REAL) --ignore=$(SCALE) || code=$$?; \
	echo $$code > $(VENV)/.tested; exit $$code

# Only what failed last, one after the other.
test-again: $(VENV)/.dev-installed
	@$(PY) -m pytest --last-failed --last-failed-no-failures none -v --ignore=$(REAL) --ignore=$(SCALE)

# The tests of other machines want an ssh server. Where installing one is not ours to do, or would start it, they skip.
sshd:
	@if [ ! -x /usr/sbin/sshd ] && [ "$$(id -u)" = 0 ] && [ ! -d /run/systemd/system ] && command -v apt-get >/dev/null; then \
	  export DEBIAN_FRONTEND=noninteractive; install='apt-get install -qq -y --no-install-recommends openssh-server openssh-client'; \
	  { $$install || { apt-get update -qq && $$install; }; } >/dev/null 2>&1 || true; \
	fi

# The tests of pages want a real browser; without one they skip.
browser:
	@for name in "$$CLEW_CHROMIUM" chromium chromium-browser google-chrome chrome; do \
	  if [ -n "$$name" ] && command -v "$$name" >/dev/null; then exit 0; fi; \
	done; echo 'No Chromium: the tests in a browser are skipped. On Debian or Ubuntu: apt install chromium'

# The tests of pushes want a real server, which they start themselves; without one they skip.
postgres:
	@if ! ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 && ! command -v postgres >/dev/null; then \
	  echo 'No PostgreSQL: the tests of pushes are skipped. On Debian or Ubuntu: apt install postgresql'; \
	fi

# The check of accessibility wants axe-core; where it cannot be fetched, it skips.
axe:
	@if [ ! -f $(LAB)/axe/package/axe.min.js ] && command -v npm >/dev/null; then \
	  mkdir -p $(LAB)/axe && cd $(LAB)/axe && timeout 60 npm pack --silent $(AXE) >/dev/null 2>&1 && tar xzf axe-core-*.tgz; \
	fi; [ -f $(CURDIR)/$(LAB)/axe/package/axe.min.js ] || echo 'No axe-core: the checks of accessibility are skipped. `npm` fetches it.'

# The stamp that the installation leaves names the versions, so a new pin fetches the clients again.
test-real: $(VENV)/.dev-installed
	@$(PY) -m tests.realclients.lab
	@$(PY) -m pytest $(REAL)

test-scale: $(VENV)/.spark-installed
	@$(PY) -m pytest --timeout 2400 -o faulthandler_timeout=2000 $(SCALE)

lint: $(VENV)/.dev-installed
	@$(PY) -m ruff check $(CHECKED)
	@$(PY) -m mypy src tests
	@$(VENV)/bin/lint-imports

bench: $(VENV)/.dev-installed
	@$(PY) -m benchmarks

docs: $(VENV)/.dev-installed
	@$(PY) scripts/docs.py
	@$(PY) scripts/seeds.py

clean:
	@rm -rf $(VENV) $(DEMO) $(LAB) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.run-installed: pyproject.toml | $(PY)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev-installed: pyproject.toml | $(PY)
	@$(PIP) --editable '.[dev]'
	@touch $(VENV)/.run-installed $@

$(VENV)/.spark-installed: $(VENV)/.dev-installed
	@$(PIP) --editable '.[dev,spark]'
	@touch $@

$(PY):
	@python=; \
	for candidate in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then echo 'clew needs Python 3.11 or later, and none was found on PATH.' >&2; exit 1; fi; \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	  echo "$$python has no venv module: install it first (on Debian or Ubuntu: apt install python3-venv)." >&2; exit 1; fi; \
	"$$python" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
