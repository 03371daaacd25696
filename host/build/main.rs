//! Builds the guest agent, so that it can be embedded in the library.
//! If `VMCELL_AGENT` is set, that prebuilt agent is embedded instead.

mod guest_program;

use guest_program::Program;
use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=VMCELL_AGENT");
    println!("cargo::rerun-if-changed=build");
    let agent = match env::var_os("VMCELL_AGENT") {
        Some(ready_made) => {
            println!(
                "cargo::rerun-if-changed={}",
                Path::new(&ready_made).display()
            );
            PathBuf::from(ready_made)
        }
        None => {
            let workspace = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("..");
            let init = Program {
                package: "vmcell-agent",
                name: "vmcell-init",
                features: "init",
            };
            guest_program::build(&workspace, &init)?
        }
    };
    let embedded = PathBuf::from(env::var("OUT_DIR")?).join("vmcell-agent");
    std::fs::copy(agent, embedded)?;
    Ok(())
}
