//! The record of a workspace, changed by hand.

use std::{fs, path::Path};

use serde_json::Value;

/// Returns the JSON of the workspace in a folder.
pub(crate) fn read(folder: &Path) -> Value {
    let json = fs::read(folder.join("workspace.json")).unwrap();
    serde_json::from_slice(&json).unwrap()
}

/// Changes the record of the workspace in a folder at once, so that no program that reads it
/// meanwhile finds half of it.
pub(crate) fn change(folder: &Path, change: impl FnOnce(&mut Value)) {
    let mut record = read(folder);
    change(&mut record);
    let changed = folder.join("changed");
    fs::write(&changed, record.to_string()).unwrap();
    fs::rename(changed, folder.join("workspace.json")).unwrap();
}
