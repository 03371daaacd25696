//! Differences between two trees, as text and as JSON.

use std::io;

use serde_json::{Value, json};
use vmcell::diff::{Change, ChangeKind, FileDiff, ManifestEntry, ManifestKind, PatchDetail};

use super::{SafeStdout, name, patch};

/// Prints the patch of a change. Into a pipe it goes unchanged, so that it can
/// be applied.
///
/// # Errors
/// If it cannot be written.
pub fn print_patch(file: &FileDiff, out: &mut SafeStdout) -> io::Result<()> {
    match out.is_terminal() {
        true => patch::write(file.patch(), out.is_coloured(), out),
        false => out.file_bytes(file.patch()),
    }
}

/// Prints the kind of a change, the path, a change of mode, and `more`.
///
/// # Errors
/// If it cannot be written.
pub fn print_name(change: &Change, more: &str, out: &mut SafeStdout) -> io::Result<()> {
    let letter = match change.kind() {
        ChangeKind::Added => "A ",
        ChangeKind::Removed => "D ",
        ChangeKind::TypeChanged => "T ",
        _ => "M ",
    };
    let mode = match (&change.old, &change.new) {
        (Some(old), Some(new)) if change.mode_changed() => {
            format!(" (mode {:04o} -> {:04o})", old.mode, new.mode)
        }
        _ => String::new(),
    };
    out.path_line(letter, &change.path, "", &format!("{mode}{more}"))
}

/// Returns a change with its patch as JSON.
pub fn as_json(file: &FileDiff) -> Value {
    let change = file.change();
    let mut object = json!({
        "change": match change.kind() {
            ChangeKind::Added => "added",
            ChangeKind::Removed => "removed",
            ChangeKind::TypeChanged => "type-changed",
            ChangeKind::ModeChanged => "mode-changed",
            _ => "modified",
        },
        "old": change.old.as_ref().map(side_as_json),
        "new": change.new.as_ref().map(side_as_json),
        "patch": match file.detail() {
            PatchDetail::Full => String::from_utf8_lossy(file.patch()).into(),
            _ => Value::Null,
        },
    });
    name::insert(&mut object, "path", &change.path);
    object
}

fn side_as_json(entry: &ManifestEntry) -> Value {
    let mut object = json!({ "mode": format!("{:04o}", entry.mode) });
    object["type"] = match &entry.kind {
        ManifestKind::File { size, sha256 } => {
            object["size"] = (*size).into();
            object["sha256"] = name::hex(sha256).into();
            "file".into()
        }
        ManifestKind::Directory => "directory".into(),
        ManifestKind::Symlink { target } => {
            name::insert_bytes(&mut object, "target", target);
            "symlink".into()
        }
        ManifestKind::Other => "other".into(),
    };
    object
}
