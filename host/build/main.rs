//! Builds the programs that the library embeds from source: the guest agent, and the
//! launcher of VMMs.
//!
//! In this repository they are part of the workspace. In a package they are the packages
//! `vmcell-agent` and `vmcell-launcher` of the same version. A binary in the package would save
//! its users the time to compile it, but nobody could see what it was built from.
//! `VMCELL_AGENT` and `VMCELL_LAUNCHER` name ready-made ones instead.

mod guest_program;

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use guest_program::Program;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build");
    let agent = Program {
        package: "vmcell-agent",
        name: "vmcell-init",
        features: "init",
        inputs: &["guest-agent", "wire"],
    };
    embed(&agent, "VMCELL_AGENT", vmcell_agent::SOURCE)?;
    let launcher = Program {
        package: "vmcell-launcher",
        name: "vmcell-launcher",
        features: "program",
        inputs: &["launcher"],
    };
    embed(&launcher, "VMCELL_LAUNCHER", vmcell_launcher::SOURCE)
}

/// Builds a program, unless a variable names a ready-made one, and copies it to where the
/// library includes it from.
fn embed(program: &Program<'_>, variable: &str, source: &str) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed={variable}");
    let workspace = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("..");
    let built = if let Some(ready_made) = env::var_os(variable) {
        let ready_made = PathBuf::from(ready_made);
        println!("cargo::rerun-if-changed={}", ready_made.display());
        ready_made
    } else if workspace.join("guest-agent/Cargo.toml").exists() {
        program.build(&workspace)?
    } else {
        program.build_package(Path::new(source))?
    };
    fs::copy(
        built,
        PathBuf::from(env::var("OUT_DIR")?).join(program.package),
    )?;
    Ok(())
}
