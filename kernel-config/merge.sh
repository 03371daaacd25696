#!/bin/sh
# merge.sh [FLAVOUR]: prints all fragments as one list of CONFIG_X=value lines, without comments.
#
# With a flavour, the values in flavours/FLAVOUR.config override those of the other fragments.
#
# Fails with the line number if a symbol has no comment with its reason, is malformed, or is set twice:
# with two values for one symbol, the order of the files would decide.
set -eu
LC_ALL=C # the order of the files must not depend on the user's locale
export LC_ALL

cd "$(dirname "$0")"
if [ $# -gt 0 ]; then
    set -- "./flavours/$1.config"
    [ -r "$1" ] || { echo "kernel-config: no such flavour: $1" >&2; exit 1; }
fi
exec awk '
function report(text) {
    printf "%s:%d: %s: %s\n", FILENAME, FNR, text, $0 > "/dev/stderr"
    bad = 1
}
/^[[:space:]]*$/ || /^#/ { next }
!/^CONFIG_[A-Za-z0-9_]+=("[^"]*"|[^"#[:space:]]+)([[:space:]]|$)/ { report("not CONFIG_X=value"); next }
!/[[:space:]]#[[:space:]]*[^[:space:]]/ { report("no reason"); next }
{
    setting = $0
    sub(/[[:space:]]+#.*/, "", setting)
    symbol = setting
    sub(/=.*/, "", symbol)
    in_flavour = FILENAME ~ /^\.\/flavours\//
    if (symbol in seen && !(in_flavour && seen[symbol] !~ /^\.\/flavours\//)) {
        report("already set in " seen[symbol])
        next
    }
    if (!(symbol in seen)) symbols[++count] = symbol
    seen[symbol] = FILENAME
    settings[symbol] = setting
}
END {
    for (i = 1; i <= count; i++) print settings[symbols[i]]
    exit bad
}
' ./*.config "$@"
