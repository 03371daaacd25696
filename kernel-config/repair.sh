#!/bin/bash
# repair.sh SOURCE: repairs known bugs in a kernel source, each only where it is.
set -euo pipefail
cd "$1"

say() { printf 'kernel: repairing %s\n' "$*" >&2; }

# Debian's 6.1.192-1: ext4 asks for a folio of its buddy cache, and takes a missing one (NULL) for one that is
# there, because in later kernels the same function returns an error. The guest panics as soon as it frees
# blocks after the cache was dropped, as when memory is short.
buddy_cache=fs/ext4/mballoc.c
lookup=mm/filemap.c
if grep -q 'IS_ERR(folio)' "$buddy_cache" && ! grep -q 'return ERR_PTR(-ENOENT)' "$lookup"; then
    say "$buddy_cache"
    sed -i 's/IS_ERR(folio)/IS_ERR_OR_NULL(folio)/; s/PTR_ERR(folio)/(folio ? PTR_ERR(folio) : -ENOMEM)/' "$buddy_cache"
fi
