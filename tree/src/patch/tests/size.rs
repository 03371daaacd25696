//! Large inputs, and inputs that are made to be slow. With a quadratic
//! algorithm these tests would take hours.

use super::*;
use crate::patch::{MismatchKind, MismatchReason, PatchErrorKind};

fn state(patch: &[u8], old: &[u8], fuzz: u32) -> MismatchKind {
    match patched_with(patch, old, fuzz).unwrap_err().reason {
        MismatchReason::Hunk(hunk) => hunk.kind,
        reason => panic!("{reason}"),
    }
}

#[test]
fn a_line_of_100_mb_is_patched() {
    let mut patch = patch_of("@@ -1,2 +1,2 @@\n 1\n-");
    let line = vec![b'l'; 100_000_000];
    patch.extend_from_slice(&line);
    patch.extend_from_slice(b"\n+2\n");
    let mut old = b"1\n".to_vec();
    old.extend_from_slice(&line);
    old.push(b'\n');
    assert_eq!(patched(&patch, &old).unwrap(), b"1\n2\n");
    old[1000] = b'L';
    assert_eq!(state(&patch, &old, 0), MismatchKind::Differs);
}

#[test]
fn a_million_equal_lines_do_not_slow_the_search() {
    // The new lines of the hunks exist, so they seem to be applied already.
    let old = b"same\n".repeat(1_000_000);
    let half = " same\n".repeat(500_000);
    let hunks = format!("@@ -1,1000001 +1,1000000 @@\n{half}-other\n{half}");
    assert_eq!(state(&patch_of(&hunks), &old, 0), MismatchKind::Applied);
    let hunks = format!("@@ -1,500001 +1,500000 @@\n{half}-other\n");
    assert_eq!(state(&patch_of(&hunks), &old, 0), MismatchKind::Applied);
    // Retrying for each line of context exceeds the limit, though.
    let few = " same\n".repeat(100);
    let hunks = format!("@@ -700000,201 +1,200 @@\n{few}-other\n{few}");
    assert_eq!(state(&patch_of(&hunks), &old, 2), MismatchKind::Applied);
    assert_eq!(state(&patch_of(&hunks), &old, 100), MismatchKind::TooSlow);
}

#[test]
fn hunks_that_are_all_far_away_end_the_search() {
    // Each hunk states a line beyond the end, and matches at the next line.
    let lines: Vec<String> = (0..100_000).map(|line| format!("{line}\n")).collect();
    let old = lines.concat();
    let mut hunks = String::new();
    for (index, line) in lines.iter().enumerate() {
        let start = (index + 1) * 40_000;
        hunks.push_str(&format!("@@ -{start} +{start} @@\n-{line}+x\n"));
    }
    assert_eq!(
        state(&patch_of(&hunks), old.as_bytes(), 0),
        MismatchKind::TooSlow
    );
}

#[test]
fn too_many_lines_are_refused() {
    let error = Patch::parse(&b"\n".repeat(5_000_000)).unwrap_err();
    assert!(matches!(error.kind, PatchErrorKind::TooLong { .. }));
    let old = b"\n".repeat(20_000_000);
    let error = patched(&patch_of("@@ -1 +1 @@\n-1\n+2\n"), &old).unwrap_err();
    assert_eq!(error.reason, MismatchReason::TooLarge);
}
