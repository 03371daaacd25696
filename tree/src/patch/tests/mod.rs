mod apply;
mod context;
mod display;
mod formats;
mod mismatch;
mod oracle;
mod refused;
mod size;
mod tree;

use super::{ApplyOptions, Mismatch, Patch};

/// Applies a patch for one file.
fn patched(patch: &[u8], old: &[u8]) -> Result<Vec<u8>, Mismatch> {
    patched_with(patch, old, 0)
}

fn patched_with(patch: &[u8], old: &[u8], fuzz: u32) -> Result<Vec<u8>, Mismatch> {
    let patch = Patch::parse(patch).unwrap();
    let [file] = patch.files() else {
        panic!("not one file: {patch:?}");
    };
    let new = file.apply(Some(old), ApplyOptions { fuzz })?;
    Ok(new.unwrap())
}

/// Returns a patch for the file `x` with these hunks.
fn patch_of(hunks: &str) -> Vec<u8> {
    format!("--- a/x\n+++ b/x\n{hunks}").into_bytes()
}
