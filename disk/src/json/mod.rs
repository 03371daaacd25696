//! The JSON of results, with the feature `serde`: see
//! [`vmcell_tree::json`] for names, times and digests.

mod change;
mod entry;
mod file_system;
mod image;
mod problem;
mod search;

use std::{os::unix::ffi::OsStrExt as _, path::Path};

use serde::ser::SerializeMap;
use vmcell_tree::json::write_name;

/// Writes a path to a JSON object.
fn write_path<M: SerializeMap>(map: &mut M, path: &Path) -> Result<(), M::Error> {
    write_name(map, "path", path.as_os_str().as_bytes())
}
