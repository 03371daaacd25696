//! Context diffs.

use super::*;
use crate::patch::FilePatchKind;

/// Returns a context diff for the file `x` with these hunks.
fn context_of(hunks: &[&str]) -> Vec<u8> {
    let mut text = "*** a/x\t2009-03-27 23:32:33\n--- b/x\t2009-03-27 23:32:40\n".to_owned();
    for hunk in hunks {
        text.push_str(&format!("***************\n{hunk}"));
    }
    text.into_bytes()
}

#[track_caller]
fn assert_patched(hunks: &[&str], old: &str, new: &str) {
    let result = patched(&context_of(hunks), old.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(result).unwrap(), new);
}

#[test]
fn both_halves_make_one_hunk() {
    let first = "*** 1,5 ****\n  a\n! b\n! c\n  d\n  5\n\
                 --- 1,6 ----\n  a\n! B\n  d\n+ e\n+ f\n  5\n";
    let second = "*** 8,9 ****\n- x\n  y\n--- 9 ----\n  y\n";
    assert_patched(
        &[first, second],
        "a\nb\nc\nd\n5\n6\n7\nx\ny\n",
        "a\nB\nd\ne\nf\n5\n6\n7\ny\n",
    );
}

#[test]
fn a_half_without_changes_may_be_missing() {
    let text = "a\na\na\na\na\nb\na\n";
    let removed = "*** 6 ****\n- b\n--- 5 ----\n";
    assert_patched(&[removed], text, "a\na\na\na\na\na\n");
    let added = "*** 1,2 ****\n--- 1,3 ----\n  one\n+ two\n  three\n";
    assert_patched(&[added], "one\nthree\n", "one\ntwo\nthree\n");
    let both = "*** 1,2 ****\n- one\n  two\n--- 1 ----\n";
    assert_patched(
        &[both, "*** 9 ****\n! 9\n--- 8 ----\n! nine\n"],
        "one\ntwo\n3\n4\n5\n6\n7\n8\n9\n",
        "two\n3\n4\n5\n6\n7\n8\nnine\n",
    );
}

#[test]
fn blanks_may_be_lost_and_carriage_returns_added() {
    let munged = "*** 1,2 ****\n--- 1,3 ----\n one\n+ two\n\n";
    assert_patched(&[munged], "one\n\n", "one\ntwo\n\n");
    let hunk = "*** 1 ****\n! 1\n--- 1 ----\n! 1b\n";
    let text = String::from_utf8(context_of(&[hunk])).unwrap();
    let text = text.replace('\n', "\r\n").into_bytes();
    assert_eq!(patched(&text, b"1\n").unwrap(), b"1b\n");
    assert_eq!(patched(&text, b"1\r\n").unwrap(), b"1b\r\n");
}

#[test]
fn the_last_line_may_lack_its_newline() {
    let missing = "\\ No newline at end of file\n";
    let hunk = format!("*** 1,2 ****\n  a\n! b\n{missing}--- 1,2 ----\n  a\n! c\n");
    assert_patched(&[&hunk], "a\nb", "a\nc\n");
    let hunk = format!("*** 1 ****\n--- 1,2 ----\n+ 0\n  a\n{missing}");
    assert_patched(&[&hunk], "a", "0\na");
}

#[test]
fn files_are_made_and_removed() {
    let gone = "Thu Jan  1 01:00:00 1970";
    let there = "Fri Mar 27 23:32:33 2009";
    for (old, new, hunk, kind) in [
        (
            "/dev/null",
            "b/x",
            "*** 0 ****\n--- 1 ----\n+ one\n",
            FilePatchKind::Added,
        ),
        (
            &format!("a/x\t{gone}"),
            &format!("b/x\t{there}"),
            "*** 0 ****\n--- 1,2 ----\n+ one\n+ two\n",
            FilePatchKind::Added,
        ),
        (
            &format!("a/x\t{there}"),
            &format!("b/x\t{gone}"),
            "*** 1,2 ****\n- one\n- two\n--- 0 ----\n",
            FilePatchKind::Deleted,
        ),
    ] {
        let text = format!("*** {old}\n--- {new}\n***************\n{hunk}");
        let patch = Patch::parse(text.as_bytes()).unwrap();
        assert_eq!(patch.files()[0].kind(), kind, "{text}");
        assert_eq!(patch.files()[0].path(), std::path::Path::new("x"));
    }
}

#[test]
fn several_files_and_text_between_them_are_read() {
    let hunk = "*** 1 ****\n- 1\n--- 0 ----\n";
    let text = [
        b"diff -c a/x b/x\n".to_vec(),
        context_of(&[hunk]),
        b"\nOnly in b: z\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n".to_vec(),
        String::from_utf8(context_of(&[hunk]))
            .unwrap()
            .replace("/x", "/z")
            .into_bytes(),
    ]
    .concat();
    let patch = Patch::parse(&text).unwrap();
    let paths: Vec<_> = patch.files().iter().map(|file| file.path()).collect();
    assert_eq!(paths, ["x", "y", "z"].map(std::path::Path::new));
}
