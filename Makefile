# make demo        the whole way on an emulator: apply, ask, look, destroy
# make test        the test suite; long searches are sampled
# make quick       the kernel's fast tests, for the loop while working; under 90 seconds on two quiet cores
# make coverage    runs the tests and stores which of them runs each line; TESTS=tests/planning for a folder
# make which       the tests that exercise a file, by the last make coverage; FILE=tpudeploy/planning/quota.py
# make exhaustive  the long searches, whole, the long stories, the startup script under a real systemd, and a real vLLM on CPU
# make lint        format, lint, types, floors, names and sentences, shell, workflows, the image
# make docs        the documentation site, in build/site; a warning or a broken link is an error
# make compatibility  docs/compatibility.md, from the tables of the catalog
# make picture     the pictures of the docs: the live table of a real apply, the dashboard, a report
# make constraints versions for pipelines (with hashes) and for this folder, after a change of dependencies; UPGRADE=1 for newer ones
# make bench       what commands take to start, validate and plan of 1,000 profiles, as multiples of python -c pass
# make hunt        how soon a slice is found, in thousands of worlds, beside an oracle and what people do; ten minutes
# make mutation    what the tests of the pure heart, of sizing, boot log and planning notice of a change to it; MODULES="placement refusals" for some
# make release-check  what a tag would publish: release notes, both packages in each Python here, schema, action, hook, image; five minutes
# make clean       removes .venv and every cache

# The first Python that is new enough; PYTHON=... chooses another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Where Python may not keep what it compiled, each worker of pytest and each command that a test starts compiles it again.
export PYTHONDONTWRITEBYTECODE :=
PIP := .venv/bin/python -m pip --disable-pip-version-check --quiet
INSTALL := $(PIP) install --constraint constraints/development.txt --editable
WORKFLOWS := $(wildcard examples/05-pull-requests/*.yml .github/workflows/*.yml)
GITHUB_WORKFLOWS := $(filter-out %/gitlab-ci.yml,$(WORKFLOWS))
SCRIPTS := .ci/run .ci/memory .ci/promtool .ci/routers .ci/distributions .ci/from-tag .ci/release-notes tpudeploy/emulator/machine/shim.sh \
	tests/real_systemd/enter.sh $(wildcard examples/*.sh examples/*/*.sh)

.PHONY: demo test quick coverage which exhaustive lint docs compatibility picture constraints bench hunt mutation release-check clean

demo: .venv/installed
	@examples/demo.sh

test: export TMPDIR ?= $(shell .ci/memory)
test: .venv/installed-dev .venv/promtool-tried .venv/routers-tried
	pytest -n 5 --dist worksteal -m 'not live and not long' --hypothesis-seed=0

# The kernel without what starts processes, waits or searches long: no features, no emulator's own tests, no house.
QUICK := $(addprefix tests/,adapters boot_log catalog config domain engine metrics planning reconcile serialization sizing \
	verify views stories/test_main_job.py)
quick: export TMPDIR ?= $(shell .ci/memory)
quick: .venv/installed-dev
	pytest -n 2 --dist worksteal -m 'not live and not long and not exhaustive and not waits' --hypothesis-seed=0 \
		--ignore tests/reconcile/test_hunting.py $(QUICK)

coverage: export TMPDIR ?= $(shell .ci/memory)
coverage: .venv/installed-dev
	pytest -n 5 --dist worksteal -m 'not live and not long' --hypothesis-seed=0 --cov --cov-context=test --cov-report= $(TESTS)

which: .venv/installed-dev
	@python tests/house/which.py $(FILE)

exhaustive: .venv/installed-dev
	pytest -n 2 -rs -m 'exhaustive or long' --timeout 10800 -o faulthandler_timeout=10900

lint: .venv/installed-dev
	ruff format --check .
	ruff check .
	mypy
	lint-imports
	python tests/house/words.py
	python tests/house/measures.py
	python tests/house/budgets.py
	shellcheck $(SCRIPTS)
	zizmor --quiet --offline action.yml $(GITHUB_WORKFLOWS)
	hadolint Dockerfile
	actionlint $(GITHUB_WORKFLOWS)

docs: .venv/installed-docs
	sphinx-build --fail-on-warning --keep-going --fresh-env --quiet docs build/site
	@echo "The site is build/site/index.html."

compatibility: .venv/installed-dev
	python docs/compatibility.py

picture: .venv/installed-docs
	python docs/picture.py
	python docs/pictures/pages.py

# Pins what a pipeline installs, with hashes, and what this Makefile installs. As little as possible changes, unless UPGRADE=1.
COMPILE = uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --no-header --no-annotate \
	$(if $(UPGRADE),--upgrade)
constraints: .venv/installed-dev
	$(COMPILE) --extra gcs --group build --generate-hashes --output-file constraints/pipeline.txt
	$(COMPILE) --extra dev --extra docs --output-file constraints/development.txt

bench: .venv/installed-dev
	PYTHONPATH=tests python -m bench.startup

hunt: .venv/installed-dev
	PYTHONPATH=tests python -m bench.hunt

mutation: .venv/installed-dev
	python tests/house/mutation.py $(MODULES)

VERSION = $(shell .venv/bin/python -c 'from tpudeploy.version import VERSION; print(VERSION)')
release-check: .venv/installed-dev
	.ci/release-notes $(VERSION)
	.ci/distributions $(VERSION)
	.ci/from-tag $(VERSION)
	check-jsonschema --check-metaschema profiles/profile.schema.json
	check-jsonschema --schemafile profiles/profile.schema.json profiles/*.yaml
	pytest -q tests/house/test_release.py tests/house/test_wheel.py tests/house/test_shipped_workflows.py \
		tests/house/test_shipped_documents.py
	zizmor --quiet --offline action.yml $(GITHUB_WORKFLOWS)
	actionlint $(GITHUB_WORKFLOWS)

clean:
	rm -rf .venv mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build/site dist
	find tpudeploy tests examples -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; PYTHON=/path/to/python make ... names one." >&2; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }

.venv/installed: pyproject.toml constraints/development.txt | .venv/bin/python
	$(INSTALL) .
	@touch $@

.venv/installed-dev: pyproject.toml constraints/development.txt | .venv/bin/python
	$(INSTALL) '.[dev]'
	@touch .venv/installed $@

.venv/installed-docs: pyproject.toml constraints/development.txt | .venv/bin/python
	$(INSTALL) '.[docs]'
	@touch .venv/installed $@

# Without it, the tests of alert rules are skipped, and say so.
.venv/promtool-tried: .ci/promtool | .venv/bin/python
	@.ci/promtool .venv/bin/promtool || echo "Tests that ask promtool will be skipped." >&2
	@touch $@

# Without one of them, the tests that run it are skipped, and say so.
.venv/routers-tried: .ci/routers | .venv/bin/python
	@.ci/routers .venv/bin || echo "Tests that run a router which is missing will be skipped." >&2
	@touch $@
