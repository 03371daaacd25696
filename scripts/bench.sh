#!/bin/bash
# bench.sh [--update] [BENCH...]: runs the benchmarks, all of them by default, and writes their tables to
# bench-figures.md in the target folder. With --update the tables of benches/README.md are replaced too.
set -euo pipefail
cd "$(dirname "$0")/.."

all=(vm confinement snapshots workspaces secrets mcp environments processes files terminals services ports network disk links process_backend churn sizes wire screen)
target=${CARGO_TARGET_DIR:-target}
readme=benches/README.md
update=no
if [ "${1:-}" = --update ]; then
    update=yes
    shift
fi
benches=("${@:-${all[@]}}")
tables=$target/bench-figures
mkdir -p "$tables"

# Prints the machine and the versions that the figures are of.
conditions() {
    local version kernel=${XDG_CACHE_HOME:-$HOME/.cache}/vmcell/kernel/current/version
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
    echo "vmcell $version ($(git rev-parse --short HEAD 2>/dev/null || echo 'no commit')), $(date -u +%Y-%m-%d)," \
        "$(nproc) cores, $("${VMCELL_QEMU:-qemu-system-x86_64}" --version | head -n 1)," \
        "Linux $(sed -n 's/^release=//p' "$kernel" 2>/dev/null)," \
        "$(sed -n 's/^acceleration: //p' "$tables/vm.out" 2>/dev/null | head -n 1)."
}

# Prints the report of Criterion on standard input as a table. A long name has a line of its own.
criterion_table() {
    awk '
        BEGIN { print "| what | time | throughput |"; print "|---|---|---|" }
        function middle(text) { sub(/.*\[/, "", text); split(text, part, " "); return part[3] " " part[4] }
        function flush_row() { if (time) print "| " what " | " time " | " rate " |"; time = rate = "" }
        # The change since the last run.
        /%/ { next }
        /time: +\[/ {
            flush_row()
            name = $0; sub(/ *time:.*/, "", name)
            what = name == "" ? previous : name
            time = middle($0)
        }
        /thrpt: +\[/ && time && !rate { rate = middle($0) }
        /^[^ ]/ && !/^Benchmarking/ && !/time:/ { previous = $0 }
        END { flush_row() }'
}

# replace NAME: replaces the lines of the README between the comments around a table by those on standard input.
replace() {
    local new
    new=$(table=$(cat) awk -v begin="<!-- figures: $1 -->" '
        $0 == "<!-- end -->" { inside = 0 }
        !inside { print }
        $0 == begin { print "\n" ENVIRON["table"] "\n"; inside = 1 }' "$readme")
    printf '%s\n' "$new" >"$readme"
}

failed=()
for bench in "${benches[@]}"; do
    echo "== $bench" >&2
    cargo bench --quiet --package vmcell-benches --bench "$bench" | tee "$tables/$bench.out" || failed+=("$bench")
    case $bench in
    wire | screen) criterion_table <"$tables/$bench.out" ;;
    *) sed -n '/^|/p' "$tables/$bench.out" ;;
    esac >"$tables/$bench.md"
done

conditions >"$tables/conditions.md"
{
    cat "$tables/conditions.md"
    for bench in "${benches[@]}"; do
        printf '\n## %s\n\n' "$bench"
        cat "$tables/$bench.md"
    done
} >"$target/bench-figures.md"
if [ $update = yes ]; then
    for name in conditions "${benches[@]}"; do
        # A table that was cut short does not replace a whole one.
        [[ " ${failed[*]} " != *" $name "* ]] || continue
        replace "$name" <"$tables/$name.md"
    done
fi
echo "the tables are in $target/bench-figures.md" >&2
if [ ${#failed[@]} -ne 0 ]; then
    echo "these failed: ${failed[*]}" >&2
    exit 1
fi
