#!/bin/bash
# check-systems.sh: checks that vmcell-disk and vmcell-tree compile for Unix systems other than Linux.
#
# Nothing is linked, so no C code has to be compiled either. But zstd's build script would try to, and there is no
# C compiler for these systems: `true` stands in for it.
set -euo pipefail
cd "$(dirname "$0")/.."

targets=(x86_64-unknown-freebsd aarch64-apple-darwin)

has_target() {
    local libraries
    libraries=$(rustc --print target-libdir --target "$1" 2>/dev/null) && [ -d "$libraries" ]
}

# add_target TARGET: prints why it failed.
add_target() {
    if ! command -v rustup >/dev/null; then
        echo "there is no rustup to add the target with"
        return 1
    fi
    timeout 300 rustup --quiet target add "$1" 2>&1
}

for target in "${targets[@]}"; do
    if ! has_target "$target" && ! reason=$(add_target "$target"); then
        echo "skipped: vmcell-disk and vmcell-tree for $target: $reason"
        continue
    fi
    variable=${target//-/_}
    # Not Clippy: conversions between types that are the same here are needed on Linux.
    env "CC_$variable=true" "AR_$variable=true" RUSTFLAGS=-Dwarnings \
        cargo check --package vmcell-disk --package vmcell-tree --all-features --target "$target"
done
