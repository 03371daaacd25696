//! Counts the changed lines of each file.

use std::io::{self, Write};

use vmcell::{diff::PatchDetail, disk::DiskDiff};
use vmcell_cli::show::{SafeStdout, name, patch};

/// The length of the bar for the file with the most changes.
const MAX_BAR_WIDTH: usize = 40;

/// Longer paths do not widen the column.
const MAX_PATH_WIDTH: usize = 60;

/// Prints the counts like `git diff --stat`.
pub(crate) fn print(diff: &DiskDiff, out: &mut SafeStdout) -> io::Result<()> {
    let files = diff.changes().iter().map(|change| &change.file);
    let files = files.filter(|file| !file.patch().is_empty());
    let rows: Vec<_> = files
        .map(|file| {
            let path = name::printable(&file.change().path);
            (path, file.detail(), patch::count(file.patch()))
        })
        .collect();
    let width = rows.iter().map(|(path, ..)| path.chars().count()).max();
    let width = width.unwrap_or(0).min(MAX_PATH_WIDTH);
    let max_changed = rows
        .iter()
        .map(|(.., (added, removed))| added + removed)
        .max();
    let max_changed = max_changed.unwrap_or(0).max(1);
    let (green, red, reset) = match out.is_coloured() {
        true => ("\x1b[32m", "\x1b[31m", "\x1b[0m"),
        false => ("", "", ""),
    };
    let (mut all_added, mut all_removed) = (0, 0);
    for (path, shown, (added, removed)) in &rows {
        if *shown != PatchDetail::Full {
            writeln!(out, " {path:width$} | Bin")?;
            continue;
        }
        let bar = |symbol: &str, lines: usize| {
            let count = if max_changed <= MAX_BAR_WIDTH {
                lines
            } else {
                (lines * MAX_BAR_WIDTH).div_ceil(max_changed)
            };
            symbol.repeat(count)
        };
        let (plus, minus) = (bar("+", *added), bar("-", *removed));
        let lines = added + removed;
        let line = format!(" {path:width$} | {lines:4} {green}{plus}{reset}{red}{minus}{reset}");
        writeln!(out, "{}", line.trim_end())?;
        all_added += added;
        all_removed += removed;
    }
    let files = rows.len();
    if files == 0 {
        return Ok(());
    }
    writeln!(
        out,
        " {files} files changed, {all_added} insertions(+), {all_removed} deletions(-)"
    )
}
