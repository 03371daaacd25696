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
