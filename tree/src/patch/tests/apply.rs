//! Where hunks match.

use super::*;
use crate::patch::{FilePatchKind, MismatchKind, MismatchReason};

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
/// Replaces `5` with `five`.
const HUNK: &str = "@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n";

#[track_caller]
fn assert_patched(hunks: &str, old: &str, new: &str) {
    let result = patched(&patch_of(hunks), old.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(result).unwrap(), new);
}

fn state(hunks: &str, old: &str) -> MismatchKind {
    match patched(&patch_of(hunks), old.as_bytes())
        .unwrap_err()
        .reason
    {
        MismatchReason::Hunk(hunk) => hunk.kind,
        reason => panic!("{reason}"),
    }
}

#[test]
fn a_hunk_fits_where_it_says_and_where_its_lines_have_moved_to() {
    let new = LINES.replace('5', "five");
    assert_patched(HUNK, LINES, &new);
    for before in [1, 2, 63, 64, 65, 100, 5000] {
        let before = "new\n".repeat(before);
        assert_patched(HUNK, &format!("{before}{LINES}"), &format!("{before}{new}"));
    }
    assert_patched(&HUNK.replace("-4,3", "-5000,3"), LINES, &new);
    assert_patched(&HUNK.replace("-4,3", "-1,3"), LINES, &new);
}

#[test]
fn of_two_places_the_nearer_is_taken() {
    let twice = format!("{LINES}{LINES}{LINES}");
    let changed = LINES.replace('5', "five");
    for (line, new) in [
        (1, format!("{changed}{LINES}{LINES}")),
        (8, format!("{changed}{LINES}{LINES}")),
        (9, format!("{LINES}{changed}{LINES}")),
        (17, format!("{LINES}{changed}{LINES}")),
        (400, format!("{LINES}{LINES}{changed}")),
    ] {
        assert_patched(&HUNK.replace("-4,3", &format!("-{line},3")), &twice, &new);
    }
}

#[test]
fn later_hunks_move_with_the_earlier() {
    // Both would match the nearer copy, if the first had not moved.
    let hunks = "@@ -2,3 +2,3 @@\n 2\n-3\n+three\n 4\n@@ -7,3 +7,3 @@\n 7\n-8\n+eight\n 9\n";
    let old = format!("{}{LINES}{LINES}", "new\n".repeat(9)).replacen("3\n", "", 1);
    let changed = LINES.replace('3', "three").replace('8', "eight");
    let new = format!("{}{}{changed}", "new\n".repeat(9), LINES.replace("3\n", ""));
    assert_patched(hunks, &old, &new);
}

#[test]
fn a_hunk_does_not_fit_before_the_one_above_it() {
    let hunks = "@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n@@ -8,3 +8,3 @@\n 2\n-3\n+three\n 4\n";
    assert_eq!(state(hunks, LINES), MismatchKind::Differs);
}

#[test]
fn hunks_for_the_ends_of_a_file_fit_only_there() {
    let first = "@@ -1,2 +1,3 @@\n+0\n 1\n 2\n";
    let last = "@@ -8,2 +8,3 @@\n 8\n 9\n+10\n";
    assert_patched(first, LINES, &format!("0\n{LINES}"));
    assert_patched(last, LINES, &format!("{LINES}10\n"));
    assert_patched(last, &format!("new\n{LINES}"), &format!("new\n{LINES}10\n"));
    assert_eq!(
        state(first, &format!("new\n{LINES}")),
        MismatchKind::Differs
    );
    assert_eq!(state(last, &format!("{LINES}new\n")), MismatchKind::Differs);
    let both = "@@ -1,2 +1 @@\n-1\n 2\n-3\n".replace("1,2", "1,3");
    assert_patched(&both, "1\n2\n3\n", "2\n");
    // Without context only the line number counts.
    assert_patched(
        "@@ -5 +5 @@\n-5\n+five\n",
        LINES,
        &LINES.replace('5', "five"),
    );
    assert_patched(
        "@@ -5,0 +6 @@\n+new\n",
        LINES,
        &LINES.replace("5\n", "5\nnew\n"),
    );
    assert_patched("@@ -9,0 +10 @@\n+new\n", LINES, &format!("{LINES}new\n"));
    assert_eq!(
        state("@@ -10,0 +11 @@\n+new\n", LINES),
        MismatchKind::Differs
    );
    assert_eq!(state("@@ -1,0 +2 @@\n+new\n", "1"), MismatchKind::Differs);
}

#[test]
fn fuzz_lets_context_differ_but_nothing_else() {
    let hunks = "@@ -3,5 +3,5 @@\n 3\n 4\n-5\n+five\n 6\n 7\n";
    let patch = patch_of(hunks);
    let other = LINES.replace('3', "three").replace('7', "seven");
    patched_with(&patch, other.as_bytes(), 0).unwrap_err();
    let new = patched_with(&patch, other.as_bytes(), 1).unwrap();
    assert_eq!(new, other.replace('5', "five").as_bytes());
    let more = other.replace('4', "four").replace('6', "six");
    patched_with(&patch, more.as_bytes(), 1).unwrap_err();
    let new = patched_with(&patch, more.as_bytes(), 2).unwrap();
    assert_eq!(new, more.replace('5', "five").as_bytes());
    patched_with(&patch, more.replace('5', "V").as_bytes(), u32::MAX).unwrap_err();
    // A hunk that only adds lines still needs some matching context.
    let adds = patch_of("@@ -1,2 +1,3 @@\n 1\n+new\n 2\n");
    patched_with(&adds, b"a\nb\n", u32::MAX).unwrap_err();
}

#[test]
fn the_end_of_a_file_may_lack_its_newline() {
    let missing = "\\ No newline at end of file\n";
    assert_patched(&format!("@@ -1 +1 @@\n-1\n{missing}+2\n"), "1", "2\n");
    assert_patched(&format!("@@ -1 +1 @@\n-1\n+2\n{missing}"), "1\n", "2");
    assert_patched(
        &format!("@@ -1 +1 @@\n-1\n{missing}+2\n{missing}"),
        "1",
        "2",
    );
    assert_patched(
        &format!("@@ -1,2 +1,2 @@\n-0\n+1\n 2\n{missing}"),
        "0\n2",
        "1\n2",
    );
    let ends = format!("@@ -1 +1 @@\n-1\n+2\n{missing}");
    assert_eq!(state(&ends, "1\nmore\n"), MismatchKind::Differs);
    assert_eq!(
        state("@@ -1 +1 @@\n-1\n+2\n", "1"),
        MismatchKind::LineEndings
    );
    // The patch itself may lack its last newline.
    assert_patched("@@ -1 +1 @@\n-1\n+2", "1\n", "2\n");
}

#[test]
fn empty_lines_may_have_lost_their_blank() {
    assert_patched("@@ -1,3 +1,3 @@\n\n-1\n+2\n\n", "\n1\n\n", "\n2\n\n");
}

#[test]
fn carriage_returns_are_part_of_the_lines_of_a_file() {
    let hunks = "@@ -1,2 +1,2 @@\n 1\r\n-2\r\n+3\r\n";
    assert_patched(hunks, "1\r\n2\r\n", "1\r\n3\r\n");
    assert_eq!(state(hunks, "1\n2\n"), MismatchKind::LineEndings);
    assert_eq!(
        state(&hunks.replace('\r', ""), "1\r\n2\r\n"),
        MismatchKind::LineEndings
    );
}

#[test]
fn carriage_returns_that_the_patch_got_are_not() {
    let missing = "\\ No newline at end of file\n";
    for patch in [
        format!("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n 1\n\n-2\n+3\n{missing}"),
        format!("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n 1\n\n-2\n+3\n{missing}"),
    ] {
        let patch = patch.replace('\n', "\r\n").into_bytes();
        assert_eq!(patched(&patch, b"1\n\n2\n").unwrap(), b"1\n\n3");
        assert_eq!(patched(&patch, b"1\r\n\r\n2\r\n").unwrap(), b"1\r\n\r\n3");
    }
    let added = b"--- /dev/null\r\n+++ b/x\r\n@@ -0,0 +1 @@\r\n+1\r\n";
    let patch = Patch::parse(added).unwrap();
    let new = patch.files()[0].apply(None, ApplyOptions::default());
    assert_eq!(new.unwrap().unwrap(), b"1\n");
}

#[test]
fn files_are_made_and_removed_only_if_they_are_as_told() {
    let options = ApplyOptions::default();
    let text = b"--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+1\n";
    let patch = Patch::parse(text).unwrap();
    let file = &patch.files()[0];
    assert_eq!(file.apply(None, options).unwrap().unwrap(), b"1\n");
    for old in [&b""[..], b"1\n"] {
        let error = file.apply(Some(old), options).unwrap_err();
        assert_eq!(error.reason, MismatchReason::Exists);
    }

    let text = b"--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n";
    let patch = Patch::parse(text).unwrap();
    let file = &patch.files()[0];
    assert_eq!(file.kind(), FilePatchKind::Deleted);
    assert_eq!(file.apply(Some(b"1\n"), options).unwrap(), None);
    let error = file.apply(Some(b"1\n2\n"), options).unwrap_err();
    assert_eq!(error.reason, MismatchReason::ExtraContent);
    let error = file.apply(Some(b"2\n"), options).unwrap_err();
    assert!(matches!(error.reason, MismatchReason::Hunk(_)));
    let error = file.apply(None, options).unwrap_err();
    assert_eq!(error.reason, MismatchReason::Missing);
}
