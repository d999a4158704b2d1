# Every target makes .venv on its own; Python 3.11 or newer and make are all a machine needs.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check install --quiet
ARGS ?=

.PHONY: demo test unit unit-lowest lint types bench answers load soak faults callers fuzz windows windows-short check clients doors rules conformance reference servers clean owner release-check

demo: $(VENV)/.package
	$(VENV)/bin/mcp-abridge demo

test: servers
	$(RUN) -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)

# The tests of the packages that do no I/O, and of the reference, with few random examples: seconds,
# while writing code.
PURE := document query schema summary transforms ruleset shaping session replay
unit: $(VENV)/.test
	$(RUN) -m pytest -q -n 2 --hypothesis-profile=few -m 'not slow' \
	    tests/test_architecture.py tests/reference tests/looks $(PURE:%=tests/%) $(PURE:%=proxy/mcp_abridge/%) $(ARGS)

# The same with the lowest versions of all libraries that pyproject.toml allows.
unit-lowest:
	$(PYTHON) -m venv .cache/lowest && .cache/lowest/bin/python -m pip install --quiet uv
	.cache/lowest/bin/uv pip install --quiet --resolution lowest-direct \
	    --python .cache/lowest/bin/python -e '.[test]'
	$(MAKE) unit RUN=.cache/lowest/bin/python

lint: $(VENV)/.test
	$(RUN) -m ruff check .

types: $(VENV)/.test
	$(RUN) -m mypy
	$(RUN) -m mypy --platform win32 --cache-dir .mypy_cache/windows --follow-imports silent proxy/mcp_abridge/system/windows.py tests/windows/system.py

bench: servers
	$(RUN) -m tests.benchmarks $(ARGS)

# The tests of `unit`, of faults, of `wrap`, and of verbs that touch files on Windows: CPython under Wine,
# if it can be had.
WRAPPER = tests/test_reload.py::test_the_wrapper_goes_by_the_rules_as_they_are_now
VERBS = current_folder explain hook replay test
windows: $(VENV)/.test
	$(RUN) -m tests.windows tests/looks tests/system/test_windows.py tests/faults tests/cli/wrap $(WRAPPER) \
	    $(VERBS:%=tests/cli/test_%.py) $(PURE:%=tests/%) --pyargs $(PURE:%=mcp_abridge.%) $(ARGS)
	$(RUN) -m tests.windows --code-pages tests/system/test_code_pages.py

# A minute of it, if Wine is installed. Without TESTS it is only set up.
windows-short: TESTS = tests/system/test_windows.py tests/cli/wrap/test_windows_files.py
windows-short: $(VENV)/.test
	$(RUN) -m tests.windows --if-installed $(TESTS)

# What a model calls and reads until it has seen the answer to each of 57 questions, in several ways.
answers: $(VENV)/.test
	$(RUN) -m tests.answers $(ARGS)

# examples/agentdata under load, directly and through `serve`: 60 s each with 1, 5 and 10 clients.
load: $(VENV)/.test
	$(RUN) -m tests.benchmarks.load $(ARGS)

# 100,000 calls in each way, and whether memory, descriptors, threads or processes grow by them.
soak: $(VENV)/.test
	$(RUN) -m tests.soak $(ARGS)

# What can go wrong, by the rows of tests/faults/rows.py, in larger numbers than `test` has it. With
# WITHOUT_POLL=1 the wrapper runs as on a platform whose pipes cannot be polled.
faults: servers
	FAULTS=long $(RUN) -m pytest -m fault -o testpaths=tests -o faulthandler_timeout=900 \
	    -n auto --maxprocesses 4 --dist loadfile $(ARGS)

# What `test` shows in a few cases each, or leaves out, in all cases: the files of tests that ask how long
# the run is. Among others scripts' types, pictures (with tesseract, if it is there), traces, agents,
# official clients on stdio and over HTTP, answers that are another account's, pages of many calls, the
# commands of all pages, looks at real results, the evidence of questions, tasks, and servers that change.
DOORS = $(shell grep -rlE 'faults.scale import|mark[.]long' tests --include='test_*.py')
doors: servers
	$(RUN) tests/servers/install.py agents sqlite tokenizer
	FAULTS=long $(RUN) -m pytest -n 2 -m 'not fault' tests/answers $(DOORS) $(ARGS)

# Two callers in random orders on every road for five minutes: neither ever sees the other's secret.
callers: $(VENV)/.test
	$(RUN) -m tests.callers $(ARGS)

# Random rules over documents, and sessions: 100,000 and 20,000.
fuzz: $(VENV)/.test
	$(RUN) -m tests.fuzz $(ARGS)

# Claude Code, Codex and 27 more, most against a stand-in model; writes examples/clients/README.md.
clients: $(VENV)/.test
	$(RUN) -m tests.clients $(ARGS)

# The bundled rules against all running servers that they are for, some of them large.
rules: servers
	$(RUN) tests/servers/install.py rules apis grafana sentry atlassian serena
	FAULTS=long $(RUN) -m pytest -n 2 tests/test_bundled_rules.py $(ARGS)

# The official conformance suite, directly and through the proxy.
conformance: $(VENV)/.test
	$(RUN) -m tests.conformance $(ARGS)

check: lint types test

# The real servers and clients that the tests run, and the conformance suite, kept in .cache; pinned
# in tests/servers and tests/conformance.
servers: $(VENV)/.test
	$(RUN) tests/servers/install.py
	$(RUN) -m tests.conformance.install

clean:
	rm -rf $(VENV) .cache build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The pages of reference and schema.json in rules/ and examples/sidecar/, from Structs, docstrings and
# examples, and the files of clients in examples/clients/README.md.
reference: $(VENV)/.test
	$(RUN) -m tests.reference

# Builds what would be released, tries it on each Python, writes dist/, and names what is to be filled in.
release-check: $(VENV)/.test
	$(RUN) -m tests.release $(ARGS)

# Writes the owner's name in place of OWNER: once, before the first release.
OWNED = $(shell git grep --files-with-matches --word-regexp OWNER -- :!tests :!Makefile :!CONTRIBUTING.md)
owner:
	sed -i.bak 's/\bOWNER\b/$(OWNER)/g' $(OWNED) && rm -f $(OWNED:%=%.bak)

# The stamps: each is written last, so that an interrupted step is done again.
$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("mcp-abridge needs Python 3.11 or newer, $(PYTHON) is %d.%d; name another one: make PYTHON=python3.13" % sys.version_info[:2])'
	@$(PYTHON) -m venv $(VENV) || { echo 'no virtual environment could be made; on Debian and Ubuntu: apt install python3-venv' >&2; exit 1; }
	@# The one that Python 3.11 and 3.12 bring takes twice as long; without a newer one it goes on.
	-@$(PIP) --upgrade pip
	@touch $@

$(VENV)/.package: pyproject.toml $(VENV)/.python
	$(PIP) --editable .
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.python
	$(PIP) --editable '.[test]'
	@touch $(VENV)/.package $@
