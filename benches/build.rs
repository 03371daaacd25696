//! Builds the guest program of the baselines.

#[path = "../host/build/guest_program.rs"]
mod guest_program;

use std::{env, error::Error, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed=guest");
    let guest = guest_program::Program {
        package: "vmcell-bench-guest",
        name: "vmcell-bench-guest",
        features: "",
        inputs: &["benches/guest"],
    };
    let program = guest.build(&here.join(".."))?;
    println!("cargo::rustc-env=BENCH_GUEST={}", program.display());
    Ok(())
}
