#!/bin/sh
# check.sh [CONFIG [FLAVOUR]]: does this kernel config hold what the fragments ask for?
#
# Kconfig drops a symbol without a word when something it depends on is missing, so a fragment alone
# proves nothing. CONFIG is the config of the cached kernel unless it is given.
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
    # Kconfig writes "is not set", or nothing at all, for a symbol that is off.
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
