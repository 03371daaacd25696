//! Builds the guest agent, which the library embeds, from source.
//!
//! In this repository it is part of the workspace. In a package it is the package
//! `vmcell-agent` of the same version. A binary in the package would save its
//! users the time to compile it, but nobody could see what it was built from.
//! `VMCELL_AGENT` names a ready-made agent instead.

mod guest_program;

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use guest_program::Program;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=VMCELL_AGENT");
    println!("cargo::rerun-if-changed=build");
    let init = Program {
        package: "vmcell-agent",
        name: "vmcell-init",
        features: "init",
    };
    let workspace = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("..");
    let agent = if let Some(ready_made) = env::var_os("VMCELL_AGENT") {
        let ready_made = PathBuf::from(ready_made);
        println!("cargo::rerun-if-changed={}", ready_made.display());
        ready_made
    } else if workspace.join("guest-agent/Cargo.toml").exists() {
        init.build(&workspace)?
    } else {
        init.build_package(Path::new(vmcell_agent::SOURCE))?
    };
    let embedded = PathBuf::from(env::var("OUT_DIR")?).join("vmcell-agent");
    fs::copy(agent, embedded)?;
    Ok(())
}
