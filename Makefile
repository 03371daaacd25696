# Two commands matter: `make demo` and `make test`. Both work on a fresh
# Debian-like machine that has rustup, gcc and make, and do all set-up themselves.

# For how long `make fuzz` looks for trouble in each of its targets.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= decode disk patch pattern screen

# Tests wait for VMs now and then: with half as many again as there are processors
# at a time, none stands idle.
export RUST_TEST_THREADS ?= $(shell expr $$(nproc) + $$(nproc) / 2)

.DEFAULT_GOAL := help
.PHONY: help demo setup tools vsock kernel build test lint bench fuzz

help: ## Say what can be made.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Not optimised: it waits for a VM, and what it is built of is there for the tests.
demo: setup ## Set everything up, say what was found, then boot a VM and print its uname.
	cargo build --package vmcell-cli
	@cargo run --quiet --package vmcell-cli -- demo

setup: tools kernel ## Everything that VMs and tests need: packages, musl target, guest kernel.

tools: ## Install the packages and the musl target, if something is missing.
	@scripts/setup.sh

vsock: tools ## Install the program that is a vsock device for QEMU, if it is missing.
	@scripts/setup.sh test

kernel: tools ## Build the guest kernel, once per source version and config.
	@path=$$(kernel-config/build.sh) && echo "guest kernel: $$path"

build: tools ## Build the library with its agent, and the CLI.
	cargo build --release --package vmcell-cli

test: setup vsock ## Run every test, those with real VMs included.
	kernel-config/check.sh
	cargo test --workspace --no-fail-fast
	VMCELL_TEST_LINK=hybrid-vsock cargo test --workspace --test vm

lint: tools ## Check format, lints and documentation.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy -p vmcell-agent --bin vmcell-init --features init --profile guest -- -D warnings
	RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps

bench: setup vsock ## Measure vmcell against plain QEMU.
	cargo bench --package vmcell-benches

# What the fuzzer finds worth keeping goes into the first folder; the second holds
# the committed seeds. `--sanitizer none` is what works with a stable compiler, and
# there is no unsafe code to look into. No VM is started, so any file is the agent.
fuzz: export VMCELL_AGENT = $(CURDIR)/Makefile
fuzz: ## Fuzz what reads bytes from the other side, each target for FUZZ_SECONDS.
	@scripts/setup.sh fuzz
	set -e; for target in $(FUZZ_TARGETS); do \
		mkdir -p fuzz/target/corpus/$$target; \
		cargo fuzz run --sanitizer none $$target \
			fuzz/target/corpus/$$target fuzz/corpus/$$target -- \
			-max_total_time=$(FUZZ_SECONDS); \
	done
