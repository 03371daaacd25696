//! Patches for several files.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::*;
use crate::patch::{MismatchReason, TreeFile};

fn tree(files: &[(&str, u32, &str)]) -> BTreeMap<PathBuf, TreeFile> {
    let files = files.iter();
    files
        .map(|&(path, mode, content)| (path.into(), file(mode, content)))
        .collect()
}

fn file(mode: u32, content: &str) -> TreeFile {
    TreeFile {
        mode,
        content: content.into(),
    }
}

fn apply(
    patch: &str,
    files: &[(&str, u32, &str)],
) -> Result<BTreeMap<PathBuf, Option<TreeFile>>, Mismatch> {
    let patch = Patch::parse(patch.as_bytes()).unwrap();
    patch.apply(&tree(files), ApplyOptions::default())
}

const MODIFY: &str = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n";
const SWAP: &str = "diff --git a/x b/y\nrename from x\nrename to y\n\
    diff --git a/y b/x\nrename from y\nrename to x\n";

#[test]
fn a_file_keeps_its_mode_unless_the_patch_has_another() {
    let changes = apply(MODIFY, &[("x", 0o100_750, "1\n")]).unwrap();
    assert_eq!(changes[Path::new("x")], Some(file(0o100_750, "2\n")));
    let mode = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n";
    let changes = apply(mode, &[("x", 0o100_600, "1\n")]).unwrap();
    assert_eq!(changes[Path::new("x")], Some(file(0o100_755, "1\n")));
    let add = "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+1\n";
    let changes = apply(add, &[]).unwrap();
    assert_eq!(changes[Path::new("x")], Some(file(0o100_644, "1\n")));
}

#[test]
fn two_files_can_swap_their_names() {
    let changes = apply(SWAP, &[("x", 0o100_644, "1"), ("y", 0o100_755, "2")]).unwrap();
    assert_eq!(changes[Path::new("x")], Some(file(0o100_755, "2")));
    assert_eq!(changes[Path::new("y")], Some(file(0o100_644, "1")));
}

#[test]
fn a_copy_is_one_of_the_old_file() {
    let patch = format!("{MODIFY}diff --git a/x b/y\ncopy from x\ncopy to y\n");
    let changes = apply(&patch, &[("x", 0o100_644, "1\n")]).unwrap();
    assert_eq!(changes[Path::new("x")], Some(file(0o100_644, "2\n")));
    assert_eq!(changes[Path::new("y")], Some(file(0o100_644, "1\n")));
}

/// Applies a patch and returns the content of the file `f`, if there is one.
fn content_of_f(patch: &str, files: &[(&str, u32, &str)]) -> Option<String> {
    let changes = apply(patch, files).unwrap();
    let file = changes[Path::new("f")].clone();
    file.map(|file| String::from_utf8(file.content).unwrap())
}

#[test]
fn a_file_that_is_changed_twice_is_changed_in_order() {
    let change = |from: &str, to: &str| {
        format!("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-{from}\n+{to}\n")
    };
    let add = "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+two\n";
    let delete = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n";
    let old = ("f", 0o100_644, "zero\n");
    let whole = [
        &change("zero", "one"),
        delete,
        add,
        &change("two", "three"),
        "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n",
    ]
    .concat();
    assert_eq!(content_of_f(&whole, &[old]).unwrap(), "three\n");
    let mode = apply(&whole, &[old]).unwrap()[Path::new("f")].clone();
    assert_eq!(mode.unwrap().mode, 0o100_755);
    let gone = format!("{}{delete}", change("zero", "one"));
    assert_eq!(content_of_f(&gone, &[old]), None);
    let twice = format!("{add}{}{}", change("two", "1"), change("1", "2"));
    assert_eq!(content_of_f(&twice, &[]).unwrap(), "2\n");
    // The second part does not match what the first one makes.
    let wrong = format!("{}{}", change("zero", "one"), change("zero", "two"));
    let error = apply(&wrong, &[old]).unwrap_err();
    assert!(matches!(error.reason, MismatchReason::Hunk(_)), "{error}");
    let error = apply(&format!("{add}{add}"), &[]).unwrap_err();
    assert_eq!(error.reason, MismatchReason::Exists);
}

#[test]
fn a_file_that_was_changed_or_made_can_be_renamed() {
    let rename = |from: &str, to: &str| {
        format!("diff --git a/{from} b/{to}\nrename from {from}\nrename to {to}\n")
    };
    let old = ("x", 0o100_644, "1\n");
    let changed = format!("{MODIFY}{}{}", rename("x", "y"), rename("y", "f"));
    assert_eq!(content_of_f(&changed, &[old]).unwrap(), "2\n");
    let changes = apply(&changed, &[old]).unwrap();
    assert_eq!(changes[Path::new("x")], None);
    assert_eq!(changes[Path::new("y")], None);
    let onto_another = format!("{}{}", rename("x", "f"), rename("y", "f"));
    let error = apply(&onto_another, &[old, ("y", 0o100_644, "")]).unwrap_err();
    assert_eq!(error.reason, MismatchReason::Exists);
}

#[test]
fn a_file_that_has_its_new_name_already_is_not_renamed_again() {
    let rename = "diff --git a/x b/f\nrename from x\nrename to f\n";
    let edit = "--- a/x\n+++ b/f\n@@ -1 +1 @@\n-old\n+new\n";
    let renamed = ("f", 0o100_755, "old\n");
    let both = format!("{rename}{edit}");
    assert_eq!(content_of_f(&both, &[renamed]).unwrap(), "new\n");
    assert_eq!(content_of_f(rename, &[renamed]).unwrap(), "old\n");
    assert!(
        !apply(rename, &[renamed])
            .unwrap()
            .contains_key(Path::new("x"))
    );
    let error = apply(rename, &[]).unwrap_err();
    assert_eq!(error.reason, MismatchReason::Missing);
    // Of two files, it is not known which one is meant.
    let error = apply(rename, &[renamed, ("x", 0o100_644, "old\n")]).unwrap_err();
    assert_eq!(error.reason, MismatchReason::Exists);
}

#[test]
fn copies_cannot_fill_the_memory() {
    let copies: String = (0..50)
        .map(|number| format!("diff --git a/x b/{number}\ncopy from x\ncopy to {number}\n"))
        .collect();
    let large = "l".repeat(64 << 20);
    let error = apply(&copies, &[("x", 0o100_644, &large)]).unwrap_err();
    assert_eq!(error.reason, MismatchReason::TooManyBytes);
}

#[test]
fn a_file_can_become_a_symlink() {
    let patch = "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n\
        @@ -1 +0,0 @@\n-1\n\
        diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n\
        @@ -0,0 +1 @@\n+target\n\\ No newline at end of file\n";
    let changes = apply(patch, &[("x", 0o100_644, "1\n")]).unwrap();
    assert_eq!(changes[Path::new("x")], Some(file(0o120_000, "target")));
}

#[test]
fn nothing_is_said_of_a_tree_that_does_not_fit() {
    let reason = |patch: &str, files: &[_]| apply(patch, files).unwrap_err().reason;
    let added = format!("{MODIFY}diff --git a/y b/y\nnew file mode 100644\n");
    let old = ("x", 0o100_644, "1\n");
    let other = ("y", 0o100_644, "");
    assert_eq!(reason(&added, &[old, other]), MismatchReason::Exists);
    assert_eq!(reason(&added, &[]), MismatchReason::Missing);
    let link = ("x", 0o120_777, "1\n");
    assert_eq!(reason(MODIFY, &[link]), MismatchReason::OtherType);
    let rename = "diff --git a/x b/y\nrename from x\nrename to y\n";
    assert_eq!(reason(rename, &[old, other]), MismatchReason::Exists);
}

#[test]
fn every_path_is_told_before() {
    let patch = Patch::parse(SWAP.as_bytes()).unwrap();
    let paths: Vec<_> = patch.paths().into_iter().collect();
    assert_eq!(paths, [Path::new("x"), Path::new("y")]);
}
