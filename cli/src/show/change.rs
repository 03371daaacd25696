//! Differences between two trees, as text.

use std::io;

use vmcell::diff::{Change, ChangeKind, FileDiff};

use super::{SafeStdout, patch};

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
