#!/bin/sh
# merge.sh [FLAVOUR]: prints all fragments as one list of CONFIG_X=value lines, without reasons.
#
# With a flavour, what flavours/FLAVOUR.config says counts in place of what the others say.
#
# Fails, and names the line, when a symbol has no reason, is malformed, or is set twice: with two values
# for one symbol it would depend on the order of the files which one wins.
set -eu
LC_ALL=C # the order of the files must not depend on the user's language
export LC_ALL

cd "$(dirname "$0")"
if [ $# -gt 0 ]; then
    set -- "./flavours/$1.config"
    [ -r "$1" ] || { echo "kernel-config: no such flavour: $1" >&2; exit 1; }
fi
exec awk '
function complain(text) {
    printf "%s:%d: %s: %s\n", FILENAME, FNR, text, $0 > "/dev/stderr"
    bad = 1
}
/^[[:space:]]*$/ || /^#/ { next }
!/^CONFIG_[A-Za-z0-9_]+=("[^"]*"|[^"#[:space:]]+)([[:space:]]|$)/ { complain("not CONFIG_X=value"); next }
!/[[:space:]]#[[:space:]]*[^[:space:]]/ { complain("no reason"); next }
{
    setting = $0
    sub(/[[:space:]]+#.*/, "", setting)
    symbol = setting
    sub(/=.*/, "", symbol)
    flavoured = FILENAME ~ /^\.\/flavours\//
    if (symbol in seen && !(flavoured && seen[symbol] !~ /^\.\/flavours\//)) {
        complain("already set in " seen[symbol])
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
