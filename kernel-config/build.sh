#!/bin/bash
# build.sh [FLAVOUR]: builds the guest kernel, once per source version and config, and prints the path of
# its vmlinux. A flavour is a variant of the config for a VMM that needs one: see flavours/.
#
# Reading order: the settings, the helpers, then the script from "Which kernel?" on.
# The only line on stdout is the path; everything else goes to stderr.
#
# Environment:
#   VMCELL_KERNEL_SOURCE  a kernel tarball or an unpacked, clean tree, instead of the distribution's
#   VMCELL_KERNEL_JOBS    parallel compile jobs (default: number of CPUs)
#   XDG_CACHE_HOME        parent of the cache (default: ~/.cache)
set -euo pipefail
export LC_ALL=C

package=linux-source-6.1
installed_tarball=/usr/src/$package.tar.xz
apt_lists=/var/lib/apt/lists
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vmcell/kernel
flavour=${1:-}
current=$cache/current${flavour:+-$flavour}

# Fixed values in place of the date, user, host and build counter that a kernel otherwise records.
# Together with the arguments of make they are part of the cache key, so that a change of these lists
# causes a rebuild.
build_settings=(
    ARCH=x86_64
    KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 1970'
    KBUILD_BUILD_USER=vmcell
    KBUILD_BUILD_HOST=vmcell
    KBUILD_BUILD_VERSION=1
)
# The kernel's own flags align segments in the file to 2 MiB for the bzImage stub, which is not built here;
# with 4 KiB the file is 5 MiB smaller. Addresses in memory do not change.
make_arguments=(
    vmlinux
    LDFLAGS_vmlinux='-z max-page-size=0x1000 --build-id=sha1 --orphan-handling=warn'
)

say() { printf 'kernel: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
sha256() { sha256sum | cut -d ' ' -f 1; }

# --- Helpers: where the source comes from -----------------------------------------------------------

# Prints the version that apt would download, or nothing. apt-cache takes about a second, so the result
# is cached until the package lists change.
apt_candidate() {
    command -v apt-cache >/dev/null || return 0
    local known=$cache/apt-candidate version
    if [ "$known" -nt "$apt_lists" ]; then
        cat "$known"
        return
    fi
    version=$(apt-cache policy "$package" 2>/dev/null |
        awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }') || return 0
    [ -n "$version" ] || return 0
    echo "$version" >"$known.$$"
    mv "$known.$$" "$known"
    echo "$version"
}

# Prints one field of the file `version` next to a built kernel.
version_field() { sed -n "s/^$2=//p" "$1/version" 2>/dev/null || true; }

# Prints an identifier of the source that changes when the source does, without unpacking anything.
source_version() {
    local source=${VMCELL_KERNEL_SOURCE:-} version
    if [ -n "$source" ] && [ -d "$source" ]; then
        [ -f "$source/Kbuild" ] || die "VMCELL_KERNEL_SOURCE=$source is not a kernel tree"
        # Hashes names, sizes and times instead of the contents: reading a gigabyte takes too long.
        echo "tree $(cd "$source" && find . -type f -printf '%P %s %T@\n' | sort | sha256)"
    elif [ -n "$source" ]; then
        [ -f "$source" ] || die "VMCELL_KERNEL_SOURCE=$source does not exist"
        echo "tarball $(sha256 <"$source")"
    elif [ -f "$installed_tarball" ]; then
        version=$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null) || version=$(sha256 <"$installed_tarball")
        echo "$package $version"
    else
        version=$(apt_candidate)
        [ -z "$version" ] || echo "$package $version"
    fi
}

# Puts the source at $1, as a folder or a link to one.
fetch_source() {
    local tree=$1 tarball=${VMCELL_KERNEL_SOURCE:-}
    if [ -n "$tarball" ] && [ -d "$tarball" ]; then
        ln -s "$(cd "$tarball" && pwd)" "$tree"
        return
    fi
    if [ -z "$tarball" ] && [ -f "$installed_tarball" ]; then
        tarball=$installed_tarball
    elif [ -z "$tarball" ]; then
        # The download is cached: most rebuilds are caused by a changed fragment, not a changed source.
        tarball=$cache/source/${source_id#* }.tar.xz
        [ -f "$tarball" ] || download "${source_id#* }" "$tarball" || return 1
    fi
    say "unpacking $(basename "$tarball")"
    mkdir "$tree" && tar -xf "$tarball" -C "$tree" --strip-components=1
}

download() {
    local version=$1 tarball=$2 work=$build/download
    require apt-get:apt dpkg-deb:dpkg
    say "downloading $package $version"
    # Joined with && because set -e is off in a function whose failure the caller handles.
    mkdir "$work" &&
        (cd "$work" && apt-get -qq download "$package=$version") >>"$log" 2>&1 &&
        dpkg-deb -x "$work"/*.deb "$work/unpacked" &&
        rm -rf "$cache/source" &&
        mkdir "$cache/source" &&
        mv "$work/unpacked/usr/src/$package.tar.xz" "$tarball" &&
        rm -rf "$work"
}

# --- Helpers: building ------------------------------------------------------------------------------

# require TOOL:PACKAGE...: fails with a list of all missing tools and the command that installs them.
require() {
    local pair missing=() packages=()
    for pair; do
        command -v "${pair%%:*}" >/dev/null && continue
        missing+=("${pair%%:*}")
        packages+=("${pair#*:}")
    done
    if [[ " $* " == *" gcc:"* ]] && command -v gcc >/dev/null &&
        ! echo '#include <gelf.h>' | gcc -E - >/dev/null 2>&1; then
        missing+=(gelf.h)
        packages+=(libelf-dev)
    fi
    [ ${#missing[@]} -eq 0 ] || die "missing: ${missing[*]}; try: apt-get install ${packages[*]}"
}

# Runs make with a clean environment: flags of an outer make or CROSS_COMPILE would change the result.
kernel_make() {
    env -i PATH="$PATH" HOME="$HOME" LC_ALL=C KCONFIG_ALLCONFIG="$build/allconfig" "${build_settings[@]}" \
        make -C "$build/source/" O="$build/out" "$@" 2>&1
}

# Copies make's output to the log; on a terminal it also shows a counter.
progress() {
    if [ -t 2 ]; then
        tee -a "$log" | awk '
            { printf "\rkernel: %d build steps", NR > "/dev/stderr" }
            END { printf "\r\033[K" > "/dev/stderr" }'
    else
        cat >>"$log"
    fi
}

# Compiles in a background job with its own process group: bash runs no trap while it waits for a foreground
# command, so a TERM would take effect only after the compilation. The job does not inherit the lock: if this
# script is killed with KILL, the next one does not wait for orphans, and removes their folder.
compile() {
    set -m
    (kernel_make -j"${VMCELL_KERNEL_JOBS:-$(nproc)}" "${make_arguments[@]}" | progress) 9>&- &
    job=$!
    set +m
    wait "$job" || return 1
    job=
}

clean_up() {
    if [ -n "$job" ]; then
        kill -- "-$job" 2>/dev/null || true
        wait
    fi
    rm -rf "$build"
}

failed() {
    say "$1; the log is $log, its last lines are:"
    tail -n 25 "$log" >&2
    exit 1
}

# Points the link `current` (or that of the flavour) to the kernel, and ends the script. rename(2) replaces
# the old link atomically, so that a reader always finds a kernel.
finish() {
    local name
    name=$(basename "$1")
    if [ "$(readlink "$current" || true)" != "$name" ]; then
        ln -sfn "$name" "$current.$$"
        mv -T "$current.$$" "$current"
    fi
    echo "$1/vmlinux"
    exit 0
}

# --- Which kernel? ----------------------------------------------------------------------------------

[ "$(uname -m)" = x86_64 ] || die "the guest kernel is x86_64 and this machine is $(uname -m)"
mkdir -p "$cache"
settings=$("$here/merge.sh" ${flavour:+"$flavour"}) || die "a fragment is wrong"
repairs=$(sha256 <"$here/repair.sh")
fragments=$(printf '%s\n' "$settings" "$repairs" | sha256)
source_id=$(source_version)

# Without package lists (offline, lists removed), a cached kernel with these fragments is used, whatever its
# version; if the fragments changed, the last downloaded source is used.
if [ -z "$source_id" ]; then
    [ "$(version_field "$current" fragments)" != "$fragments" ] || finish "$(realpath "$current")"
    cached=$(find "$cache/source" -name '*.tar.xz' 2>/dev/null | sort | tail -n 1) || true
    [ -n "$cached" ] || die "apt knows no $package: run apt-get update, or set VMCELL_KERNEL_SOURCE"
    source_id="$package $(basename "$cached" .tar.xz)"
fi

key=$(printf '%s\n' "$source_id" "$settings" "${build_settings[@]}" "${make_arguments[@]}" "$repairs" | sha256 | cut -c 1-16)
kernel=$cache/$key
[ ! -f "$kernel/vmlinux" ] || finish "$kernel"

# --- Build it ---------------------------------------------------------------------------------------

require make:make gcc:gcc ld:binutils flex:flex bison:bison bc:bc xz:xz-utils tar:tar flock:util-linux

# One build at a time: a second caller waits, and then usually finds its kernel in the cache.
exec 9>"$cache/lock"
flock -n 9 || { say "waiting for another build"; flock 9; }
[ ! -f "$kernel/vmlinux" ] || finish "$kernel"

# The build happens in a temporary folder. While we hold the lock, other such folders are left over from
# builds that were killed.
rm -rf "$cache"/.build-*
build=$(mktemp -d "$cache/.build-XXXXXX")
job=
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
log=$cache/build.log
: >"$log"

if ! fetch_source "$build/source"; then
    # Fails if the caller chose the source. Otherwise a newer source exists but cannot be downloaded, and
    # an older kernel with the same config is used.
    [ -z "${VMCELL_KERNEL_SOURCE:-}" ] || die "cannot unpack $VMCELL_KERNEL_SOURCE"
    [ "$(version_field "$current" fragments)" = "$fragments" ] ||
        failed "cannot get $source_id (apt-get update may help)"
    say "cannot get $source_id; using $(version_field "$current" source)"
    finish "$(realpath "$current")"
fi

# A tree of the caller is used as it is.
[ -L "$build/source" ] || "$here/repair.sh" "$build/source" || failed "repairing the source failed"

# allnoconfig instead of olddefconfig: symbols that no fragment sets stay off, even if their default is on.
mkdir "$build/out" "$build/result"
printf '%s\n' "$settings" >"$build/allconfig"
kernel_make allnoconfig >>"$log" || failed "configuring failed"
"$here/check.sh" "$build/out/.config" ${flavour:+"$flavour"} >&2 || die "the source does not accept these fragments"

say "compiling $source_id (some minutes)"
SECONDS=0
compile || failed "compiling failed"
strip --strip-all -o "$build/result/vmlinux" "$build/out/vmlinux"
# The PVH note contains the entry point for direct boot; without it the kernel does not boot.
readelf -n "$build/result/vmlinux" | grep Xen >/dev/null || failed "vmlinux has no PVH note"
cp "$build/out/.config" "$build/result/config"
cat >"$build/result/version" <<EOF
release=$(cat "$build/out/include/config/kernel.release")
source=$source_id
fragments=$fragments
compiler=$(gcc --version | head -n 1)
EOF

chmod 755 "$build/result"
mv -T "$build/result" "$kernel"
say "built $(version_field "$kernel" release) in $SECONDS s, $(stat -c %s "$kernel/vmlinux") bytes"
finish "$kernel"
