//! The details of a hunk that does not match.

use super::*;
use crate::patch::{HunkMismatch, MismatchKind, MismatchReason};

fn mismatch(hunks: &str, old: &[u8]) -> HunkMismatch {
    match patched(&patch_of(hunks), old).unwrap_err().reason {
        MismatchReason::Hunk(hunk) => *hunk,
        reason => panic!("{reason}"),
    }
}

/// Returns the line number, the expected line and the found line.
fn nearest(hunks: &str, old: &[u8]) -> (u64, Option<String>, Option<String>) {
    let nearest = mismatch(hunks, old).nearest.unwrap();
    (nearest.line, nearest.expected, nearest.found)
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

const HUNK: &str = "@@ -2,4 +2,4 @@\n b\n c\n-d\n+D\n e\n";

#[test]
fn the_line_that_is_another_is_told() {
    assert_eq!(nearest(HUNK, b"a\nb\nc\nx\ne\n"), (4, some("d"), some("x")));
    assert_eq!(nearest(HUNK, b"a\nx\nc\nd\ne\n"), (2, some("b"), some("x")));
    assert_eq!(nearest(HUNK, b"a\nb\nc\nd\n"), (5, some("e"), None));
    assert_eq!(nearest(HUNK, b"c\nd\ne\n"), (1, some("b"), some("c")));
    assert_eq!(nearest(HUNK, b""), (1, some("b"), None));
    assert_eq!(nearest(HUNK, b"1\n2\n3\n4\n"), (2, some("b"), some("2")));
}

#[test]
fn the_nearest_place_may_be_far_away() {
    let mut old = b"x\n".repeat(1000);
    old.extend_from_slice(b"b\nc\nd\nE\n");
    assert_eq!(nearest(HUNK, &old), (1004, some("e"), some("E")));
    assert_eq!(mismatch(HUNK, &old).file_line, 2);
}

#[test]
fn an_end_that_is_not_there_is_told() {
    let hunks = "@@ -1,2 +1,3 @@\n a\n b\n+c\n";
    assert_eq!(nearest(hunks, b"a\nb\nx\n"), (3, None, some("x")));
    let hunks = "@@ -1,2 +1,3 @@\n+c\n a\n b\n";
    assert_eq!(nearest(hunks, b"x\na\nb\n"), (1, some("a"), some("x")));
}

#[test]
fn a_hunk_that_was_applied_already_is_told() {
    assert_eq!(
        mismatch(HUNK, b"a\nb\nc\nD\ne\n").kind,
        MismatchKind::Applied
    );
    assert_eq!(
        mismatch(HUNK, b"a\nb\nc\nX\ne\n").kind,
        MismatchKind::Differs
    );
}

#[test]
fn the_error_tells_file_hunk_and_lines() {
    let hunks = format!("@@ -1 +1 @@\n-a\n+A\n{HUNK}");
    let error = patched(&patch_of(&hunks), b"a\nb\nc\n\x1b[2J\ne\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "x: hunk 2 (line 6 of the patch) does not fit at line 2; \
         line 4 should be `d`, but is `\u{fffd}[2J`"
    );
}

#[test]
fn long_lines_are_cut() {
    let long = "l".repeat(10_000);
    let (_, expected, found) = nearest(&format!("@@ -1 +1 @@\n-{long}\n+1\n"), b"short\n");
    assert_eq!(expected, Some(format!("{}…", "l".repeat(200))));
    assert_eq!(found, some("short"));
}
