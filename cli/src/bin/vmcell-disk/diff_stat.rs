//! Counts the changed lines of each file.

use std::io::{self, Write};

use vmcell::{diff::Shown, disk::DiskDiff};
use vmcell_cli::show::{Page, name, patch};

/// The length of the bar for the file with the most changes.
const WIDTH: usize = 40;

/// Longer paths do not widen the column.
const LONGEST: usize = 60;

/// Prints the counts like `git diff --stat`.
pub(crate) fn print(diff: &DiskDiff, page: &mut Page) -> io::Result<()> {
    let files = diff.changes().iter().map(|change| &change.file);
    let files = files.filter(|file| !file.patch().is_empty());
    let rows: Vec<_> = files
        .map(|file| {
            let path = name::shown(&file.change().path);
            (path, file.shown(), patch::count(file.patch()))
        })
        .collect();
    let width = rows.iter().map(|(path, ..)| path.chars().count()).max();
    let width = width.unwrap_or(0).min(LONGEST);
    let most = rows
        .iter()
        .map(|(.., (added, removed))| added + removed)
        .max();
    let most = most.unwrap_or(0).max(1);
    let (green, red, off) = match page.is_coloured() {
        true => ("\x1b[32m", "\x1b[31m", "\x1b[0m"),
        false => ("", "", ""),
    };
    let (mut all_added, mut all_removed) = (0, 0);
    for (path, shown, (added, removed)) in &rows {
        if *shown != Shown::Whole {
            writeln!(page, " {path:width$} | Bin")?;
            continue;
        }
        let signs = |sign: &str, lines: usize| {
            let count = if most <= WIDTH {
                lines
            } else {
                (lines * WIDTH).div_ceil(most)
            };
            sign.repeat(count)
        };
        let (plus, minus) = (signs("+", *added), signs("-", *removed));
        let lines = added + removed;
        let line = format!(" {path:width$} | {lines:4} {green}{plus}{off}{red}{minus}{off}");
        writeln!(page, "{}", line.trim_end())?;
        all_added += added;
        all_removed += removed;
    }
    let files = rows.len();
    if files == 0 {
        return Ok(());
    }
    writeln!(
        page,
        " {files} files changed, {all_added} insertions(+), {all_removed} deletions(-)"
    )
}
