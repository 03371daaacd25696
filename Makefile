# The main targets are `demo` and `test`. Both work on a fresh Debian-like machine
# with rustup, gcc and make, and do all set-up themselves.

# For how long `make fuzz` runs each of its targets.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= archive decode disk dns dockerfile guest_files http log_pattern mcp_arguments oci patch pattern \
	records sanitizer screen session shell_filter state_files

# For how long `make soak` begins rounds with each backend, what all choices follow from, and
# the only round, if it is to repeat one.
HOURS ?= 1
BACKENDS ?= qemu process
SEED ?=
ROUND ?=

# Tests often wait for VMs, so run 1.5 tests per processor to keep all of them busy.
export RUST_TEST_THREADS ?= $(shell expr $$(nproc) + $$(nproc) / 2)

.DEFAULT_GOAL := help
.PHONY: help demo setup tools vsock kernel build test loom lint features package bench deny fuzz soak

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Not optimised: the demo mostly waits for a VM, and the tests use the same build.
demo: setup ## Set everything up, check the host, then boot a VM and print its uname.
	cargo build --package vmcell-cli
	@cargo run --quiet --package vmcell-cli -- demo

setup: tools kernel ## Install all that VMs and tests need: packages, musl target, guest kernel.

tools: ## Install missing packages and the musl target.
	@scripts/setup.sh

vsock: tools ## Install what tests need besides: vhost-device-vsock, a vsock device for QEMU, and a client of MCP.
	@scripts/setup.sh test

kernel: tools ## Build the guest kernel, once per source version and config.
	@path=$$(kernel-config/build.sh) && echo "guest kernel: $$path"

build: tools ## Build the library with its agent, and the CLI.
	cargo build --release --package vmcell-cli

test: setup vsock ## Run all tests, including those with real VMs.
	kernel-config/check.sh
	cargo test --workspace --no-fail-fast
	cargo test --package vmcell-launcher --features program
	VMCELL_TEST_LINK=hybrid-vsock cargo test --workspace --test vm

# In a folder of its own, because its flags would have all else built again. Only the unit
# tests of the library, with nothing but files: programs have no models.
loom: tools ## Check the memory that agent and workers share, in all orders of its use.
	RUSTFLAGS="--cfg loom" cargo test --package vmcell-agent --lib --release \
		--no-default-features --features files --target-dir target/loom model::

lint: tools ## Check format, lints and documentation.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy -p vmcell-agent --bin vmcell-init --features init --profile guest -- -D warnings
	cargo clippy -p vmcell-launcher --all-targets --features program -- -D warnings
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps

features: tools ## Check each library without features, with each feature alone, and for other systems.
	cargo clippy --package vmcell-wire --no-default-features -- -D warnings
	for features in '' archive manifests serde zstd; do \
		cargo clippy --package vmcell-tree --no-default-features --features "$$features" -- -D warnings || exit; \
	done
	for features in '' archive serde zstd; do \
		cargo clippy --package vmcell-disk --no-default-features --features "$$features" -- -D warnings || exit; \
	done
	cargo test --package vmcell-disk
	for features in '' files fuzzing network ports services terminals; do \
		cargo clippy --package vmcell-agent --no-default-features --features "$$features" -- -D warnings && \
		cargo test --package vmcell-agent --no-default-features --features "$$features" --test embedded || exit; \
	done
	for features in '' registry tokio; do \
		cargo clippy --package vmcell-rootfs --features "$$features" -- -D warnings || exit; \
	done
	for features in '' fuzzing http; do \
		cargo clippy --package vmcell-mcp --features "$$features" -- -D warnings || exit; \
	done
	for features in '' archive broker fuzzing hickory receipt serde terminal tool conformance; do \
		cargo clippy --package vmcell --no-default-features --features "$$features" -- -D warnings || exit; \
	done
	scripts/check-systems.sh

package: setup ## Make the packages, and build and run programs elsewhere that have only these.
	scripts/package.sh

bench: setup vsock ## Run all benchmarks, and write their tables to target/bench-figures.md.
	scripts/bench.sh

deny: ## Check licences, versions, sources and known vulnerabilities of dependencies.
	scripts/deny.sh

fuzz: ## Fuzz the parsers of untrusted input, each target for FUZZ_SECONDS.
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

soak: setup ## Use VMs at random for HOURS with each of BACKENDS, and check that nothing is left. SEED, ROUND: repeat.
	cargo build --release --package vmcell-soak
	set -e; for backend in $(BACKENDS); do \
		target/release/vmcell-soak --hours $(HOURS) --backend $$backend \
			$(if $(SEED),--seed $(SEED)) $(if $(ROUND),--round $(ROUND)); \
	done
