#!/bin/bash
# deny.sh: checks licences, versions, sources and known vulnerabilities of the dependencies (deny.toml).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh deny
cargo deny --locked check --hide-inclusion-graph licenses bans sources
# The advisories are a git repository, the only part that needs a network.
if timeout 120 cargo deny --locked fetch db; then
    cargo deny --locked check --hide-inclusion-graph --disable-fetch advisories
else
    echo "advisories: skipped, because their database cannot be reached" >&2
fi
