//! Builds a static program for guests with a separate cargo call, because it has
//! its own target and profile.

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::Command,
};

const MUSL: &str = "x86_64-unknown-linux-musl";
const GNU: &str = "x86_64-unknown-linux-gnu";

/// A program of the workspace.
pub(crate) struct Program<'a> {
    pub(crate) package: &'a str,
    pub(crate) name: &'a str,
    pub(crate) features: &'a str,
}

/// Builds a program of the workspace and returns its path.
///
/// Builds for musl if that target is installed, because the program is smaller,
/// else for glibc.
pub(crate) fn build(workspace: &Path, program: &Program<'_>) -> Result<PathBuf, Box<dyn Error>> {
    for input in ["guest-agent", "wire", "Cargo.toml", "Cargo.lock"] {
        println!(
            "cargo::rerun-if-changed={}",
            workspace.join(input).display()
        );
    }
    let target = if is_installed(MUSL) { MUSL } else { GNU };
    let target_folder = PathBuf::from(env::var("OUT_DIR")?).join("guest");
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo
        .current_dir(workspace)
        .args(["build", "--quiet", "--package", program.package])
        .args(["--bin", program.name, "--features", program.features])
        .args(["--profile", "guest", "--target", target])
        .arg("--target-dir")
        .arg(&target_folder);
    // The variables of the outer cargo apply to the host's program.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        let is_for_outer_cargo = name.starts_with("CARGO_") && name != "CARGO_HOME";
        if is_for_outer_cargo || name.starts_with("RUSTC") || name == "RUSTFLAGS" {
            cargo.env_remove(&*name);
        }
    }
    // A program at a fixed address needs no relocation, which would touch most of
    // its pages at each boot.
    cargo.env(
        "RUSTFLAGS",
        "-C target-feature=+crt-static -C relocation-model=static",
    );
    let status = cargo.status()?;
    if !status.success() {
        let name = program.name;
        return Err(format!("{name} does not build for {target}: {status}").into());
    }
    Ok(target_folder.join(target).join("guest").join(program.name))
}

/// Returns whether the standard library for `target` is installed.
fn is_installed(target: &str) -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    Command::new(rustc)
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .is_some_and(|path| Path::new(path.trim()).is_dir())
}
