# Everything a developer types. `make demo` and `make test` set up what they need: a virtual
# environment with the locked packages, the Rust core, the preload library, the workloads.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
JOBS ?= $(shell nproc)
# The same cases in every run: a test that fails fails again. Another seed tries others.
SEED ?= 1
BIN := .venv/bin
PIP := .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes
# `make demo` installs what a user needs, whatever tests or lints the rest; an environment that has the
# rest has the same packages for a user, so going back and forth installs nothing.
USERS_GOALS := demo install core man wheel wheel-test
ENVIRONMENT := $(if $(filter-out $(USERS_GOALS),$(MAKECMDGOALS)),dev,user)
PACKAGES := .venv/$(ENVIRONMENT)
NATIVE := python/tierloom/native
PRELOAD := $(or $(CARGO_TARGET_DIR),target)/release/libtierloom_preload.so

.PHONY: toolchain help demo test test-rust test-python live machines test-lab test-lab-long smoke smoke-bare test-bare \
	bench recordings estimates fuzz lint format install core workloads man site wheel wheel-test release lock clean
.DEFAULT_GOAL := help

help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: install ## Profile a program here, plan its data for a CXL machine, show what it gains
	$(BIN)/tierloom demo

# Three rings of tests; CONTRIBUTING.md says which one a test belongs to.
test: packages-tests test-rust test-python ## All that is right or wrong whatever the machine does: what CI runs

live: packages-live install workloads ## What judges this machine as well: accuracy, overhead, programs unharmed, kills, servers; an hour
	cargo test --workspace --locked --quiet --no-run
	cargo test --locked --quiet --package tierloom-place --test exhaustive -- --ignored
	$(BIN)/pytest -m "(live or long) and not lab"

machines: packages-bare test-lab-long wheel-test release ## What starts machines: guests of the lab, bare Debian roots, clean environments; an hour
	$(BARE) bookworm user "make demo"
	$(BARE) bookworm root ".ci/run"

# Whoever is root on a Debian gets what the tests run; anyone else is told, and those tests are skipped.
packages-%:
	@$(PYTHON) tools/install_packages.py $(or $(GROUPS),$*)

packages-tests: GROUPS := verbs tests
packages-live: GROUPS := verbs tests live lab

test-rust: toolchain ## Unit tests and laws of the Rust crates
	PROPTEST_RNG_SEED=$(SEED) cargo test --workspace --locked --quiet

test-python: install workloads ## Commands, programs, laws and published claims
	$(BIN)/pytest -n $(JOBS) --dist loadgroup --durations=20 -m "not live and not lab and not long"

test-lab: packages-lab install ## Placement checked in virtual machines with far memory: six minutes of two processors
	$(BIN)/pytest -m "lab and not long" tests/lab/test_guest.py

test-lab-long: packages-lab install ## The same with CXL memory, and everything else that starts a virtual machine: tens of minutes
	$(BIN)/pytest -m lab tests

smoke: install workloads ## Tests that show in some minutes whether a machine is set up right
	$(BIN)/pytest -n $(JOBS) --dist loadgroup -m smoke

BARE := $(PYTHON) tools/bare_root.py

smoke-bare: packages-bare ## The two commands, in short, on a bare Debian 12 and 13: a quarter of an hour
	$(BARE) bookworm user "make demo" "make smoke"
	$(BARE) trixie root "make demo" "make smoke" "make wheel-test"

test-bare: packages-bare ## The two commands on a bare Debian 12 and 13, as a user and as root: an hour and more
	$(BARE) bookworm user "make demo" "make test"
	$(BARE) bookworm root "make demo" "make test"
	$(BARE) trixie user "make demo" "make test"
	$(BARE) trixie root "make demo" "make test"

bench: install workloads ## Accuracy and overhead of profiling, published findings, speed of the engines
	cargo build --release --locked --quiet --package tierloom-record --example analyse
	$(BIN)/python benches/sampler_accuracy.py --tool target/release/examples/analyse --preload $(NATIVE)/libtierloom_preload.so
	$(BIN)/python benches/stall_shares.py --tool target/release/examples/analyse --preload $(NATIVE)/libtierloom_preload.so
	$(BIN)/python benches/recorder.py
	$(BIN)/python benches/startup.py
	$(BIN)/python benches/probe_against_peers.py
	$(BIN)/tierloom reproduce
	$(BIN)/python benches/hpc_study.py
	cargo build --release --locked --quiet --package tierloom-pmem --example transactions
	$(BIN)/python benches/pmem_overhead.py --tool target/release/examples/transactions
	$(BIN)/python benches/offload_study.py
	$(BIN)/python benches/sweep.py
	cargo bench --locked --quiet --package tierloom-analysis --package tierloom-predict --package tierloom-place --package tierloom-tiering --package tierloom-expander

recordings: install ## The recordings of tests/recordings anew, on a machine that does nothing else: some minutes
	cargo build --release --locked --quiet --package tierloom-record --example analyse
	$(BIN)/python tools/make_recordings.py

estimates: install ## What the estimator says of the recordings, into its table and into docs/accuracy.md
	PYTHONPATH=tests $(BIN)/python tests/recordings/estimates.py

lint: install ## Formatting, lints, types, and the arrows between the rooms
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(BIN)/ruff format --check python tests benches tools
	$(BIN)/ruff check python tests benches tools
	$(BIN)/mypy
	$(BIN)/mypy --strict -p benches.counts
	$(BIN)/lint-imports

SECONDS ?= 60
fuzz: install ## Made-up bytes for every parser, SECONDS each; what breaks one stays in fuzz/artifacts
	command -v cargo-fuzz > /dev/null || cargo install --locked --quiet cargo-fuzz
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement fuzz/python/requirements.txt
	$(BIN)/python fuzz/run.py --seconds $(SECONDS)

format: $(PACKAGES) ## Format all code
	cargo fmt --all
	$(BIN)/ruff format python tests benches tools
	$(BIN)/ruff check --fix python tests benches tools

install: core $(NATIVE)/libtierloom_preload.so $(NATIVE)/mg $(NATIVE)/vega.js ## Virtual environment with Tierloom in it

toolchain:
	@tools/check_toolchain.sh $(PYTHON)

.venv/user: requirements/user.txt | toolchain
	$(PYTHON) -m venv .venv
	$(PIP) --requirement requirements/user.txt
	@touch $@

.venv/dev: requirements/dev.txt requirements/user.txt | toolchain
	$(PYTHON) -m venv .venv
	$(PIP) --requirement requirements/dev.txt
	@touch .venv/user $@

# cargo knows best what is out of date, so it is always asked.
core: toolchain $(PACKAGES)
	PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/maturin develop --release --locked --quiet
	cargo build --release --locked --quiet --package tierloom-preload

$(NATIVE)/libtierloom_preload.so: core
	@mkdir -p $(NATIVE)
	@cmp --silent $(PRELOAD) $@ || cp $(PRELOAD) $@

$(NATIVE)/mg: workloads/mg.cpp $(wildcard workloads/*.hpp) workloads/Makefile
	@mkdir -p $(NATIVE)
	$(MAKE) --no-print-directory --directory workloads OUT=$(abspath $(NATIVE)) OPT=-O2 $(abspath $@)

$(NATIVE)/vega.js: tools/charts_bundle.py | $(PACKAGES)
	@mkdir -p $(NATIVE)
	$(BIN)/python $< > $@.new
	mv $@.new $@

workloads: ## Our own programs, at -O2 and -O3, in build/workloads
	$(MAKE) --no-print-directory --jobs $(JOBS) --directory workloads

site: install ## The documentation as a site in build/site
	$(BIN)/sphinx-build -W --keep-going -q -b html -c docs/site . build/site

man: install ## Manual pages of all verbs in build/man/man1
	$(BIN)/python tools/man_pages.py build/man/man1

wheel: install ## A wheel for this platform in dist/
	@rm -f dist/*.whl
	$(BIN)/maturin build --release --locked --quiet --out dist

# Into an environment of its own: what it needs is large, and nobody else does.
build/release/venv: requirements/release.txt | toolchain
	@mkdir -p build/release
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

release: $(NATIVE)/vega.js build/release/venv ## A wheel for every Linux since glibc 2.28 in dist/, and its demo in clean environments
	build/release/venv/bin/python tools/release.py dist
	$(PYTHON) tools/try_wheel.py $$(ls -t dist/tierloom-*manylinux*.whl | head -1) $(PYTHON) python3.12 python3.13 python3.14

wheel-test: wheel ## The wheel in clean environments, of this Python and of newer ones that are here
	$(PYTHON) tools/try_wheel.py dist/tierloom-*.whl $(PYTHON) python3.12 python3.13 python3.14

lock: ## Lock the newest packages within the ranges of pyproject.toml
	$(PYTHON) requirements/lock.py

clean: ## Remove everything that was built
	rm -rf target build dist .venv $(NATIVE) python/tierloom/_core.abi3.so
