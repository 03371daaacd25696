//! Writes edits as the hunks of a unified patch.

use std::ops::Range;

use super::edits::{Edit, edits};
use crate::patch::Lines;

/// Returns the hunks that turn `old` into `new`, or `None` if one of them has
/// too many lines.
pub(super) fn hunks(old: &[u8], new: &[u8], context: usize) -> Option<Vec<u8>> {
    let (old, new) = (Lines::split(old)?, Lines::split(new)?);
    let edits = edits(&old, &new);
    let mut text = Vec::new();
    // Edits whose context would touch or overlap share a hunk.
    let is_near =
        |first: &Edit, second: &Edit| second.old.start - first.old.end <= context.saturating_mul(2);
    for group in edits.chunk_by(is_near) {
        write_hunk(&mut text, &old, &new, group, context);
    }
    Some(text)
}

fn write_hunk(
    text: &mut Vec<u8>,
    old: &Lines<'_>,
    new: &Lines<'_>,
    group: &[Edit],
    context: usize,
) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return;
    };
    // Context lines are common, so both ranges have equally many.
    let leading = first.old.start.min(context);
    let trailing = (old.len() - last.old.end).min(context);
    let old_range = first.old.start - leading..last.old.end + trailing;
    let new_range = first.new.start - leading..last.new.end + trailing;
    let (removed, added) = (range_text(&old_range), range_text(&new_range));
    text.extend_from_slice(format!("@@ -{removed} +{added} @@\n").as_bytes());
    let mut done = old_range.start;
    for edit in group {
        write_lines(text, b' ', old, done..edit.old.start);
        write_lines(text, b'-', old, edit.old.clone());
        write_lines(text, b'+', new, edit.new.clone());
        done = edit.old.end;
    }
    write_lines(text, b' ', old, done..old_range.end);
}

/// Formats a range of a hunk header: the first line and the length, or for an
/// empty range the line before it and 0.
fn range_text(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        length => format!("{},{length}", range.start + 1),
    }
}

fn write_lines(text: &mut Vec<u8>, mark: u8, lines: &Lines<'_>, range: Range<usize>) {
    for line in range.filter_map(|index| lines.get(index)) {
        text.push(mark);
        text.extend_from_slice(line.text);
        text.push(b'\n');
        if !line.has_newline {
            text.extend_from_slice(b"\\ No newline at end of file\n");
        }
    }
}
