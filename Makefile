# Everything a developer types. `make demo` and `make test` set up what they need: a virtual
# environment with the locked packages, the Rust core, the preload library, the workloads.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
JOBS ?= $(shell nproc)
# The same cases in every run: a test that fails fails again. Another seed tries others.
SEED ?= 1
BIN := .venv/bin
PACKAGES := .venv/locked
NATIVE := python/tierloom/native
PRELOAD := target/release/libtierloom_preload.so

.PHONY: help fuzz demo test test-rust test-python test-long test-lab test-lab-long bench lint format install core workloads man site wheel lock clean
.DEFAULT_GOAL := help

help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: install ## Profile a program here, plan its data for a CXL machine, show what it gains
	$(BIN)/tierloom demo

test: test-rust test-python ## All tests, Rust and Python

test-rust: ## Unit tests and laws of the Rust crates
	PROPTEST_RNG_SEED=$(SEED) cargo test --workspace --locked --quiet

test-python: install workloads ## Commands, programs, laws and published claims
	$(BIN)/pytest -n $(JOBS) --dist loadgroup -m "not long and not lab"

test-lab: install ## Placement checked in virtual machines with far memory: six minutes of two processors
	$(BIN)/pytest -m "lab and not long" tests/lab/test_guest.py

test-lab-long: install ## The same with CXL memory, and everything else that starts a virtual machine: tens of minutes
	$(BIN)/pytest -m lab tests

test-long: install ## What `make test` leaves out because it takes minutes: the search against all placements, heavy programs
	PROPTEST_RNG_SEED=$(SEED) cargo test --release --locked --quiet --package tierloom-place -- --ignored
	$(BIN)/pytest -m "long and not lab" tests/programs

bench: install workloads ## Accuracy and overhead of profiling, published findings, speed of the engines
	cargo build --release --locked --quiet --package tierloom-sampler --example analyse
	$(BIN)/python benches/sampler_accuracy.py --tool target/release/examples/analyse --preload $(NATIVE)/libtierloom_preload.so
	$(BIN)/python benches/stall_shares.py --tool target/release/examples/analyse --preload $(NATIVE)/libtierloom_preload.so
	$(BIN)/python benches/recorder.py
	$(BIN)/python benches/probe_against_peers.py
	$(BIN)/tierloom reproduce
	$(BIN)/python benches/hpc_study.py
	cargo build --release --locked --quiet --package tierloom-pmem --example transactions
	$(BIN)/python benches/pmem_overhead.py --tool target/release/examples/transactions
	$(BIN)/python benches/offload_study.py
	$(BIN)/python benches/sweep.py
	cargo bench --locked --quiet --package tierloom-predict --package tierloom-place --package tierloom-tiering --package tierloom-expander

lint: install ## Formatting, lints, types, and the arrows between the rooms
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(BIN)/ruff format --check python tests benches tools
	$(BIN)/ruff check python tests benches tools
	$(BIN)/mypy
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

$(PACKAGES): requirements/lock.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement requirements/lock.txt
	touch $@

# cargo knows best what is out of date, so it is always asked.
core: $(PACKAGES)
	PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/maturin develop --release --locked --quiet
	cargo build --release --locked --quiet --package tierloom-preload

$(NATIVE)/libtierloom_preload.so: core
	@mkdir -p $(NATIVE)
	@cmp --silent $(PRELOAD) $@ || cp $(PRELOAD) $@

$(NATIVE)/mg: workloads/mg.cpp $(wildcard workloads/*.hpp) workloads/Makefile
	@mkdir -p $(NATIVE)
	$(MAKE) --no-print-directory --directory workloads OUT=$(abspath $(NATIVE)) OPT=-O2 $(abspath $@)

$(NATIVE)/vega.js: tools/charts_bundle.py $(PACKAGES)
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
	$(BIN)/maturin build --release --locked --out dist

lock: ## Lock the newest packages within the ranges of pyproject.toml
	$(PYTHON) requirements/lock.py > requirements/lock.txt.new
	mv requirements/lock.txt.new requirements/lock.txt

clean: ## Remove everything that was built
	rm -rf target build dist .venv $(NATIVE) python/tierloom/_core.abi3.so
