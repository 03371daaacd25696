#!/bin/bash
# package.sh: makes the packages that users depend on, then builds and runs two programs outside of this
# repository that have nothing but those packages and the third-party crates, without network.
#
# All crates lie in one folder then, which cargo takes for the registry (a "directory source").
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(vmcell-wire vmcell-agent vmcell-launcher vmcell-archive vmcell-tree vmcell-disk vmcell-rootfs vmcell vmcell-dockerfile vmcell-mcp)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
registry=$work/registry
crates=$work/target/package

options=()
for package in "${packages[@]}"; do
    options+=(--package "$package")
done
# Unverified: what is built below has every package in it.
cargo package --quiet --no-verify --allow-dirty --target-dir "$work/target" "${options[@]}"
cargo vendor --quiet --locked --versioned-dirs "$registry" >/dev/null
for crate in "$crates"/*.crate; do
    tar --extract --gzip --directory "$registry" --file "$crate"
    checksum=$(sha256sum "$crate" | cut --delimiter=' ' --fields=1)
    echo "{\"files\":{},\"package\":\"$checksum\"}" >"$registry/$(basename "$crate" .crate)/.cargo-checksum.json"
done
mkdir "$work/.cargo"
cat >"$work/.cargo/config.toml" <<END
[net]
offline = true

[source.crates-io]
replace-with = "packages"

[source.packages]
directory = "$registry"
END

# program NAME DEPENDENCIES: makes a program of the Rust source on standard input.
program() {
    mkdir -p "$work/$1/src"
    printf '[package]\nname = "%s"\nversion = "0.0.0"\nedition = "2024"\n\n[dependencies]\n%s\n' "$1" "$2" \
        >"$work/$1/Cargo.toml"
    cat >"$work/$1/src/main.rs"
}

program reads-a-disk 'vmcell-disk = "*"' <<'END'
use vmcell_disk::{Disk, WalkOptions, printable};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let image = std::env::args().nth(1).ok_or("usage: reads-a-disk IMAGE")?;
    let disk = Disk::open(image)?;
    let entries = disk.walk("/", WalkOptions::new())?.count();
    print!("{entries} entries, and the users are\n{}", printable(&disk.read("etc/passwd")?));
    Ok(())
}
END

program runs-a-command 'vmcell = "*"
vmcell-rootfs = "*"
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }' <<'END'
use vmcell::Vm;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let image = vmcell_rootfs::recipe::base().cached()?;
    let vm = Vm::builder().image(&image.path).start().await?;
    let output = vm.exec(["uname", "-sm"]).await?;
    print!("{}", output.stdout_text());
    println!("{}", image.path.display());
    vm.stop().await?;
    Ok(())
}
END

# build NAME: builds a program. Prints what it was built of, and in how many seconds.
build() {
    local started=$SECONDS
    (cd "$work/$1" && cargo build --quiet)
    echo "$1: $(cd "$work/$1" && cargo tree --prefix none --edges normal | sort --unique | wc --lines) crates," \
        "built in $((SECONDS - started)) s"
}

build reads-a-disk
! (cd "$work/reads-a-disk" && cargo tree --edges normal) | grep -Ew 'tokio|vmcell-agent' || {
    echo "vmcell-disk must need neither tokio nor the agent" >&2
    exit 1
}
build runs-a-command
output=$("$work/runs-a-command/target/debug/runs-a-command")
echo "$output"
[ "$(head -n 1 <<<"$output")" = "Linux x86_64" ]
"$work/reads-a-disk/target/debug/reads-a-disk" "$(tail -n 1 <<<"$output")" | tee "$work/listed"
grep -q '^root:' "$work/listed"
