#!/bin/bash
# fuzz.sh SECONDS TARGET...: fuzzes each target for so long, two at once.
#
# Inputs are the committed seeds, and what earlier runs have found, in fuzz/target/corpus. An input
# that makes a target panic, takes more than 10 s, or takes more than 1 GiB of memory is a failure:
# its path is printed. What the fuzzer prints is in fuzz/target/logs.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=$1
shift
at_once=2
input_seconds=10
memory_mib=1024
logs=fuzz/target/logs
failed=fuzz/target/failed

# No VM is started, so any file can stand in for the programs that are embedded.
export VMCELL_AGENT=$PWD/Makefile VMCELL_LAUNCHER=$PWD/Makefile
# cargo-fuzz would have each crate compiled by one thread.
export RUSTFLAGS="${RUSTFLAGS:-} -Ccodegen-units=16"

say() { printf 'fuzz: %s\n' "$*"; }

# --- Build all targets at once ----------------------------------------------------------------------

mkdir -p "$logs"
began=$SECONDS
# Sanitizers need a nightly compiler, and the fuzzed code has no unsafe code.
if ! cargo fuzz build --sanitizer none >"$logs/build" 2>&1; then
    grep --extended-regexp --after-context 12 '^error' "$logs/build" || tail --lines 40 "$logs/build"
    exit 1
fi
say "built in $((SECONDS - began)) s"
programs=fuzz/target/$(rustc --print host-tuple)/release

# --- Fuzz them --------------------------------------------------------------------------------------

# Prints a line about a target, and what was wrong.
report() {
    local target=$1 status=$2 log=$logs/$1
    local tried
    tried=$(sed --quiet 's/^stat::number_of_executed_units: *//p' "$log")
    if [ "$status" -eq 0 ]; then
        say "$target: ${tried:-no} inputs"
        return
    fi
    say "$target FAILED:"
    # The panic, the summary of libFuzzer, and the path of the input.
    grep --extended-regexp --after-context 3 "panicked at|^==[0-9]+== ERROR|Test unit written to" "$log" |
        cut --characters -400 | head --lines 20
    say "try it again with: $programs/$target INPUT"
    echo "$target" >>"$failed"
}

fuzz() {
    local target=$1 status=0
    mkdir -p "fuzz/target/corpus/$target" "fuzz/artifacts/$target"
    # New inputs go to the first folder.
    "$programs/$target" -max_total_time="$seconds" -timeout="$input_seconds" \
        -rss_limit_mb="$memory_mib" -print_final_stats=1 \
        -artifact_prefix="fuzz/artifacts/$target/" \
        "fuzz/target/corpus/$target" "fuzz/corpus/$target" >"$logs/$target" 2>&1 || status=$?
    report "$target" "$status"
}

rm -f "$failed"
for target in "$@"; do
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do
        wait -n || true
    done
    fuzz "$target" &
done
wait
[ ! -e "$failed" ]
