//! Builds the guest agent, so that it can be embedded in the library.
//!
//! The agent is a static program of its own, with its own target and profile,
//! hence a cargo call of its own with its own target folder. `VMCELL_AGENT`
//! names a ready-made agent instead.

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::Command,
};

const MUSL: &str = "x86_64-unknown-linux-musl";
const GNU: &str = "x86_64-unknown-linux-gnu";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let embedded = out.join("vmcell-agent");
    println!("cargo::rerun-if-env-changed=VMCELL_AGENT");
    if let Some(ready_made) = env::var_os("VMCELL_AGENT") {
        println!(
            "cargo::rerun-if-changed={}",
            Path::new(&ready_made).display()
        );
        std::fs::copy(ready_made, embedded)?;
        return Ok(());
    }
    let workspace = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("..");
    for input in ["guest-agent", "wire", "Cargo.toml", "Cargo.lock"] {
        println!(
            "cargo::rerun-if-changed={}",
            workspace.join(input).display()
        );
    }
    std::fs::copy(build_agent(&workspace, &out.join("agent"))?, embedded)?;
    Ok(())
}

fn build_agent(workspace: &Path, target_folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let target = if is_installed(MUSL) { MUSL } else { GNU };
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo
        .current_dir(workspace)
        .args(["build", "--quiet", "--package", "vmcell-agent"])
        .args(["--profile", "guest", "--target", target])
        .arg("--target-dir")
        .arg(target_folder);
    // What the outer cargo was told is about the host's program.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        let told_to_us = name.starts_with("CARGO_") && name != "CARGO_HOME";
        if told_to_us || name.starts_with("RUSTC") || name == "RUSTFLAGS" {
            cargo.env_remove(&*name);
        }
    }
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("the guest agent does not build for {target}: {status}").into());
    }
    Ok(target_folder
        .join(target)
        .join("guest")
        .join("vmcell-agent"))
}

/// Whether the standard library for `target` is there.
fn is_installed(target: &str) -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    Command::new(rustc)
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .is_some_and(|path| Path::new(path.trim()).is_dir())
}
