#!/bin/bash
# setup.sh [test | fuzz | deny]: installs missing dependencies for building and running vmcell.
#
# It checks for programs rather than packages, so that it is fast when nothing is missing and accepts
# programs from any source. If it cannot install something, it reports that and continues: not every later
# step needs everything, and a step that does fails with its own message.
set -euo pipefail

# e2fsprogs is not in the PATH of ordinary users.
PATH=$PATH:/usr/sbin:/sbin
musl=x86_64-unknown-linux-musl
kernel_source=linux-source-6.1
vhost_device_vsock=0.3.0
mcp_client=2.3.0
cargo_fuzz=0.13.2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vmcell

say() { printf 'setup: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null; }

# --- Find missing packages --------------------------------------------------------------------------

packages=()
# need PACKAGE CHECK...: adds the package to the list if the check fails.
need() {
    local package=$1
    shift
    "$@" || packages+=("$package")
}

has_header() { echo "#include <$1>" | gcc -E - >/dev/null 2>&1; }

# The package `busybox` contains a dynamically linked one.
has_static_busybox() {
    local busybox=${VMCELL_BUSYBOX:-$(command -v busybox)}
    [ -n "$busybox" ] && ! readelf --program-headers "$busybox" 2>/dev/null | grep -q INTERP
}

has_debian_keys() { compgen -G '/usr/share/keyrings/debian-archive-keyring.*' >/dev/null; }

has_pip() { python3 -m pip --version >/dev/null 2>&1; }

has_kernel() { [ -e "$cache/kernel/current/vmlinux" ]; }
has_kernel_source() {
    [ -n "${VMCELL_KERNEL_SOURCE:-}" ] || [ -e "/usr/src/$kernel_source.tar.xz" ] ||
        apt-cache show "$kernel_source" >/dev/null 2>&1
}

find_missing() {
    # For building Rust programs and the guest kernel (see kernel-config/build.sh).
    need gcc have gcc
    need libc6-dev has_header stdlib.h
    need bc have bc
    need bison have bison
    need flex have flex
    need libelf-dev has_header gelf.h
    need make have make
    need xz-utils have xz
    # For building images.
    need busybox-static has_static_busybox
    need e2fsprogs have debugfs
    # For building the image `debian`, with or without root.
    need mmdebstrap have mmdebstrap
    need uidmap have newuidmap
    need debian-archive-keyring has_debian_keys
    # For running VMs.
    need qemu-system-x86 have "${VMCELL_QEMU:-qemu-system-x86_64}"
    # For tests of disks, which create overlays and partitions, and apply patches.
    need qemu-utils have qemu-io
    need fdisk have sfdisk
    need patch have patch
    need git have git
    # For a benchmark, as a baseline for reading disks.
    need p7zip-full have 7z
    # For a test that unpacks our initramfs.
    need cpio have cpio
    # For a test of the protocol's client in another language.
    need python3 have python3
    # For tests with a client of MCP, and with images of containers.
    [ "${1:-}" != test ] || need python3-pip has_pip
    [ "${1:-}" != test ] || need umoci have umoci
    [ "${1:-}" != test ] || need skopeo have skopeo
    # For libFuzzer, which is written in C++.
    [ "${1:-}" != fuzz ] || need g++ have g++
}

# --- Install it -------------------------------------------------------------------------------------

apt_get() {
    local root=()
    if [ "$(id -u)" -ne 0 ]; then
        have sudo || return 1
        root=(sudo)
    fi
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >/dev/null
}

install_packages() {
    # kernel-config/build.sh downloads the kernel's source with apt, which needs package lists.
    local lists=current
    if have apt-cache && ! has_kernel && ! has_kernel_source; then
        lists=missing
    fi
    if [ ${#packages[@]} -eq 0 ] && [ $lists = current ]; then
        return
    fi
    if ! have apt-get; then
        say "there is no apt-get; install the equivalent of these Debian packages: ${packages[*]}"
        return
    fi
    say "updating the package lists"
    apt_get update || say "failed; try: apt-get update"
    if [ ${#packages[@]} -ne 0 ]; then
        say "installing ${packages[*]}"
        apt_get install --yes --no-install-recommends "${packages[@]}" ||
            say "failed; try: apt-get install ${packages[*]}"
    fi
}

# The guest's programs are built with musl, which makes them smaller, or else with glibc.
add_musl() {
    local libraries
    libraries=$(rustc --print target-libdir --target "$musl" 2>/dev/null) || true
    if [ -d "$libraries" ] || ! have rustup; then
        return
    fi
    say "adding the Rust target $musl"
    timeout 300 rustup --quiet target add "$musl" ||
        say "failed; the guest's programs will be built with glibc and be larger"
}

add_rust_components() {
    local missing=()
    cargo fmt --version >/dev/null 2>&1 || missing+=(rustfmt)
    cargo clippy --version >/dev/null 2>&1 || missing+=(clippy)
    if [ ${#missing[@]} -eq 0 ] || ! have rustup; then
        return
    fi
    say "adding ${missing[*]}"
    timeout 300 rustup --quiet component add "${missing[@]}" || say "failed; \`make lint\` needs them"
}

# Provides vsock devices for QEMU without kernel support. Tests use it.
add_vhost_device_vsock() {
    if [ -n "${VMCELL_VHOST_DEVICE_VSOCK:-}" ] || have vhost-device-vsock ||
        [ -e "$cache/tools/bin/vhost-device-vsock" ]; then
        return
    fi
    say "building vhost-device-vsock $vhost_device_vsock"
    timeout 600 cargo install --quiet --locked --root "$cache/tools" \
        vhost-device-vsock --version "=$vhost_device_vsock" ||
        say "failed; the link \`hybrid-vsock\` of QEMU and the tests need it"
}

# The official client of the Model Context Protocol. A test drives our server with it.
add_mcp_client() {
    local client=$cache/tools/mcp-client-$mcp_client
    [ ! -e "$client" ] || return 0
    say "installing the client of MCP $mcp_client"
    mkdir -p "$cache/tools"
    local new
    new=$(mktemp -d "$cache/tools/mcp-client.XXXXXX")
    if timeout 300 python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --root-user-action=ignore \
        --target "$new" "mcp==$mcp_client"; then
        mv --no-target-directory "$new" "$client"
    else
        rm -rf "$new"
        say "failed; a test of \`vmcell mcp\` needs it"
    fi
}

# A registry of images, for tests. Its package is only unpacked: to install it would start a service.
add_docker_registry() {
    if have docker-registry || [ -e "$cache/tools/bin/docker-registry" ]; then
        return
    fi
    say "fetching docker-registry"
    local folder
    folder=$(mktemp -d)
    if (cd "$folder" && fetch_package docker-registry && dpkg-deb --extract docker-registry_*.deb .); then
        install -D "$folder/usr/bin/docker-registry" "$cache/tools/bin/docker-registry"
    else
        say "failed; tests of registries need it"
    fi
    rm -rf "$folder"
}

fetch_package() {
    local fetch=(apt-get -qq -o APT::Sandbox::User=root download "$1")
    "${fetch[@]}" 2>/dev/null || { apt_get update && "${fetch[@]}"; }
}

add_cargo_fuzz() {
    have cargo-fuzz && return
    say "building cargo-fuzz $cargo_fuzz"
    cargo install --quiet --locked cargo-fuzz --version "=$cargo_fuzz"
}

add_cargo_deny() {
    have cargo-deny && return
    say "building cargo-deny"
    cargo install --quiet --locked cargo-deny
}

have cargo || { say "Rust is missing: install it with rustup"; exit 1; }
find_missing "${1:-}"
install_packages
add_musl
add_rust_components
[ "${1:-}" != test ] || add_vhost_device_vsock
[ "${1:-}" != test ] || add_mcp_client
[ "${1:-}" != test ] || add_docker_registry
[ "${1:-}" != fuzz ] || add_cargo_fuzz
[ "${1:-}" != deny ] || add_cargo_deny
