#!/bin/sh
# check.sh [CONFIG [FLAVOUR]]: checks that a kernel config has the values that the fragments set.
#
# Kconfig silently drops a symbol whose dependencies are missing, so the fragments alone prove nothing.
# CONFIG defaults to the config of the cached kernel.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
config=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/vmcell/kernel/current/config}
if [ ! -r "$config" ]; then
    echo "kernel-config: no config at $config (run build.sh first)" >&2
    exit 1
fi

wanted=$("$here/merge.sh" ${2:+"$2"})
printf '%s\n' "$wanted" | awk -v config="$config" '
BEGIN {
    while ((getline line < config) > 0)
        if (line ~ /^CONFIG_/) {
            symbol = line
            sub(/=.*/, "", symbol)
            have[symbol] = substr(line, length(symbol) + 2)
        }
}
{
    symbol = $0
    sub(/=.*/, "", symbol)
    want = substr($0, length(symbol) + 2)
    # Kconfig writes "is not set" or nothing for a symbol that is off.
    got = (symbol in have) ? have[symbol] : "n"
    if (got != want) {
        printf "kernel-config: %s: wanted %s, got %s\n", symbol, want, got > "/dev/stderr"
        bad = 1
    }
}
END {
    printf "kernel-config: %d symbols checked\n", NR
    exit bad
}
'
