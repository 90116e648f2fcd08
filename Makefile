# Two commands for newcomers: `make demo` and `make test`. They need only Python 3.11 or newer.
# A file in $(VENV) notes that pip has run; it runs again only when a requirements file has changed.

VENV ?= .venv
PORT ?= 8000
PYTEST_ARGS ?=
# The first interpreter that is new enough. Versions that CI tests come before the newest.
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3.14 python3; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then \
		echo $$python; break; fi; done)

BIN := $(VENV)/bin/python
# pip says what it collects, so that nobody waits in front of a silent screen.
PIP := $(BIN) -m pip install --disable-pip-version-check
# A catalogue names the files of a text, but no lines, because those change with every edit.
MESSAGES := --locale de --locale zh_Hans --no-obsolete --no-wrap --add-location file --verbosity 0
# The settings of a fictitious production site, for Django's checks of such sites.
PRODUCTION := DEBUG=0 ALLOWED_HOSTS=fakegame.example REDIS_URL=redis://redis.example:6379/0 \
	DATABASE_URL=sqlite://:memory: SECRET_KEY=$$($(BIN) -c 'import secrets; print(secrets.token_hex(32))')

.PHONY: help demo test test-all docs messages lint check install install-test

help:
	@echo 'make demo [PORT=8000]      run the demo site with its servers, on this machine only'
	@echo 'make test [PYTEST_ARGS=]   run the quick tests on private Redis servers (three minutes on two cores)'
	@echo 'make test-all              run all tests; needs Chromium, PostgreSQL and an earlier make test'
	@echo 'make docs                  build the manual and the reference in docs/_build/; any warning is an error'
	@echo 'make messages              bring the catalogues of components/locale/ up to date; needs GNU gettext'
	@echo 'make lint                  check style, layers, types, migrations and the production settings'
	@echo 'make check                 check only migrations and the production settings'
	@echo 'Other variables: PYTHON (the interpreter to use), VENV (the folder to install into).'

demo: install
	@$(BIN) manage.py demo --port $(PORT)

test: install-test
	@$(BIN) -m pytest -n auto --dist worksteal -m 'not slow' $(PYTEST_ARGS)

# Installs nothing. If a program is missing, this fails at once and names the program.
test-all:
	@test -e $(VENV)/installed-test || { echo 'Nothing is installed in $(VENV) yet. Run make test first.'; exit 1; }
	@$(BIN) -m pytest -n auto --dist worksteal --complete $(PYTEST_ARGS)

docs: $(VENV)/installed-docs
	@$(BIN) -m sphinx --quiet --fail-on-warning --keep-going --builder html docs docs/_build

messages: install
	@cd components && $(abspath $(BIN)) -m django makemessages $(MESSAGES) --domain django
	@cd components && $(abspath $(BIN)) -m django makemessages $(MESSAGES) --domain djangojs
	@cd components && $(abspath $(BIN)) -m django compilemessages --verbosity 0

lint: check
	@$(BIN) -m ruff check
	@$(BIN) -m ruff format --check
	@$(VENV)/bin/lint-imports --no-cache
	@$(BIN) -m mypy

check: install-test
	@$(PRODUCTION) $(BIN) manage.py makemigrations --check
	@$(PRODUCTION) $(BIN) manage.py check --deploy --fail-level WARNING

install: $(VENV)/installed
install-test: $(VENV)/installed-test

$(BIN):
	@test -n "$(PYTHON)" || { echo 'Python 3.11 or newer is needed, and none was found.' \
		'Install one, or name its path: make PYTHON=/path/to/python3.12 ...'; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo '$(PYTHON) is not Python 3.11 or newer.'; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { \
		echo '$(PYTHON) lacks the module venv. Debian, Ubuntu: sudo apt install python3-venv'; exit 1; }
	@echo "Making a virtual environment in $(VENV), with $$($(PYTHON) --version)."
	@$(PYTHON) -m venv --clear $(VENV)

$(VENV)/installed: requirements.txt | $(BIN)
	@echo 'Installing the requirements of the site (this runs again only when requirements.txt has changed).'
	@$(PIP) -r requirements.txt || { echo 'pip has failed, as said above. Is there a network?'; exit 1; }
	@touch $@

$(VENV)/installed-docs: docs/requirements.txt $(VENV)/installed
	@$(BIN) -c 'import sys; sys.exit(sys.version_info < (3, 12))' || { \
		echo 'Sphinx needs Python 3.12 or newer: make docs PYTHON=/path/to/python3.12 VENV=.venv-docs'; exit 1; }
	@echo 'Installing the requirements of the manual.'
	@$(PIP) -r docs/requirements.txt || { echo 'pip has failed, as said above. Is there a network?'; exit 1; }
	@touch $@

$(VENV)/installed-test: tests/requirements.txt $(VENV)/installed
	@echo 'Installing the requirements of the tests.'
	@$(PIP) -r tests/requirements.txt || { echo 'pip has failed, as said above. Is there a network?'; exit 1; }
	@$(BIN) -m tests.upstream
	@touch $@
