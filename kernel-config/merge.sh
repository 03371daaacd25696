#!/bin/sh
# Prints all fragments as one list of CONFIG_X=value lines, without reasons.
#
# Fails, and names the line, when a symbol has no reason, is malformed, or is set twice: with two values
# for one symbol it would depend on the order of the files which one wins.
set -eu
LC_ALL=C # the order of the files must not depend on the user's language
export LC_ALL

cd "$(dirname "$0")"
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
    if (symbol in seen) { complain("already set in " seen[symbol]); next }
    seen[symbol] = FILENAME
    print setting
}
END { exit bad }
' ./*.config
