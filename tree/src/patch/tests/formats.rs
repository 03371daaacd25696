//! The formats of patches.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use super::{super::Strip, *};
use crate::patch::{FilePatchKind, LineRange};

type Summary<'a> = (FilePatchKind, Option<&'a str>, Option<&'a str>);

fn summary<'a>(patch: &'a Patch<'_>) -> Vec<Summary<'a>> {
    let text = |path: Option<&'a Path>| path.map(|path| path.to_str().unwrap());
    let files = patch.files().iter();
    files
        .map(|file| (file.kind(), text(file.old_path()), text(file.new_path())))
        .collect()
}

#[track_caller]
fn assert_summary(patch: &str, expected: &[Summary<'_>]) {
    assert_eq!(summary(&Patch::parse(patch.as_bytes()).unwrap()), expected);
}

#[test]
fn a_mail_with_several_files_is_a_patch() {
    let mail = "From 1234 Mon Sep 17 00:00:00 2001\n\
        Subject: [PATCH] Say hello\n\nA text.\n---\n src/x | 2 +-\n 1 file changed\n\n\
        diff --git a/src/x b/src/x\nindex 1111111..2222222 100755\n--- a/src/x\n+++ b/src/x\n\
        @@ -1,2 +1,2 @@ fn main() {\n a\n-b\n+c\n\
        diff --git a/y b/y\nnew file mode 100644\nindex 0000000..3333333\n--- /dev/null\n+++ b/y\n\
        @@ -0,0 +1 @@\n+new\n\
        diff --git a/z b/z\ndeleted file mode 100600\nindex 3333333..0000000\n--- a/z\n+++ /dev/null\n\
        @@ -1 +0,0 @@\n-gone\n-- \n2.47.3\n\n";
    assert_summary(
        mail,
        &[
            (FilePatchKind::Modified, Some("src/x"), Some("src/x")),
            (FilePatchKind::Added, None, Some("y")),
            (FilePatchKind::Deleted, Some("z"), None),
        ],
    );
    let patch = Patch::parse(mail.as_bytes()).unwrap();
    let modes = patch.files().iter();
    let modes: Vec<_> = modes
        .map(|file| (file.old_mode(), file.new_mode()))
        .collect();
    assert_eq!(
        modes,
        [
            (Some(0o100_755), None),
            (None, Some(0o100_644)),
            (Some(0o100_600), None)
        ]
    );
    let hunk = &patch.files()[0].hunks()[0];
    assert_eq!(hunk.patch_line(), 13);
    assert_eq!(hunk.old_lines(), LineRange { start: 1, count: 2 });
}

/// The two names stand between spaces, like those in the names.
#[test]
fn a_space_in_the_middle_of_the_names_may_belong_to_one_of_them() {
    assert_summary(
        "diff --git a/d b/ef --00377\ncopy from d\ncopy to ef --00377\n\
         diff --git a/ab b/c xyzwv\nrename from ab\nrename to c xyzwv\n",
        &[
            (FilePatchKind::Copied, Some("d"), Some("ef --00377")),
            (FilePatchKind::Renamed, Some("ab"), Some("c xyzwv")),
        ],
    );
}

#[test]
fn renames_copies_modes_and_empty_files_need_no_hunks() {
    assert_summary(
        "diff --git a/a b b/c d\nsimilarity index 100%\nrename from a b\nrename to c d\n\
         diff --git a/e b/f\nsimilarity index 90%\ncopy from e\ncopy to f\n\
         --- a/e\n+++ b/f\n@@ -1 +1 @@\n-1\n+2\n\
         diff --git a/with blank b/with blank\nold mode 100644\nnew mode 100755\n\
         diff --git a/dir/empty b/dir/empty\nnew file mode 100644\nindex 0000000..e69de29\n\
         diff --git a/gone b/gone\ndeleted file mode 100644\nindex e69de29..0000000\n",
        &[
            (FilePatchKind::Renamed, Some("a b"), Some("c d")),
            (FilePatchKind::Copied, Some("e"), Some("f")),
            (
                FilePatchKind::Modified,
                Some("with blank"),
                Some("with blank"),
            ),
            (FilePatchKind::Added, None, Some("dir/empty")),
            (FilePatchKind::Deleted, Some("gone"), None),
        ],
    );
}

#[test]
fn quoted_names_may_have_any_byte() {
    let text = b"diff --git \"a/\\377\\t\\\"\\\\\\n\" \"b/\\377\\t\\\"\\\\\\n\"\nold mode 100644\nnew mode 100755\n\
        diff --git a/\xfe b/\xfe\n--- a/\xfe\n+++ b/\xfe\n@@ -0,0 +1 @@\n+x\n";
    let patch = Patch::parse(text).unwrap();
    let names: Vec<_> = patch.files().iter().map(|file| file.path()).collect();
    assert_eq!(names[0], OsStr::from_bytes(b"\xff\t\"\\\n"));
    assert_eq!(names[1], OsStr::from_bytes(b"\xfe"));
}

#[test]
fn plain_names_lose_a_directory_only_if_it_is_not_part_of_them() {
    for (old, new, path) in [
        ("a/src/x", "b/src/x", "src/x"),
        ("old-1.0/src/x", "new-1.1/src/x", "src/x"),
        ("src/x", "src/x", "src/x"),
        ("src/x.orig", "src/x", "src/x"),
        ("x", "x.new", "x"),
        ("./x", "./x", "x"),
        ("a//x", "b//x", "x"),
        (
            "with blank\t2020-01-01 00:00:00 +0000",
            "with blank\t",
            "with blank",
        ),
    ] {
        let text = format!("Index: foo\n====\n--- {old}\n+++ {new}\n@@ -1 +1 @@\n-1\n+2\n");
        assert_summary(&text, &[(FilePatchKind::Modified, Some(path), Some(path))]);
    }
}

#[test]
fn as_many_directories_as_wanted_are_taken_off() {
    let text = b"--- 1/2/3/x\n+++ 1/2/3/x\n@@ -1 +1 @@\n-1\n+2\n";
    for (levels, path) in [(0, "1/2/3/x"), (1, "2/3/x"), (3, "x")] {
        let patch = Patch::parse_with(text, Strip::Exactly(levels)).unwrap();
        assert_eq!(patch.files()[0].path(), Path::new(path));
    }
    Patch::parse_with(text, Strip::Exactly(4)).unwrap_err();
}

#[test]
fn a_plain_patch_tells_by_the_time_that_there_is_no_file() {
    let there = "2024-05-06 07:08:09.000000000 +0200";
    for stamp in [
        "1970-01-01 00:00:00.000000000 +0000",
        "1970-01-01 02:00:00 +0200",
        "1969-12-31 19:30:00.0 -0430",
    ] {
        assert_summary(
            &format!("--- old/x\t{stamp}\n+++ new/x\t{there}\n@@ -0,0 +1 @@\n+1\n"),
            &[(FilePatchKind::Added, None, Some("x"))],
        );
        assert_summary(
            &format!("--- old/x\t{there}\n+++ new/x\t{stamp}\n@@ -1 +0,0 @@\n-1\n"),
            &[(FilePatchKind::Deleted, Some("x"), None)],
        );
    }
    for stamp in [
        there,
        "1970-01-01 00:00:00 +0100",
        "1970-01-01 00:00:01 +0000",
    ] {
        assert_summary(
            &format!("--- old/x\t{stamp}\n+++ new/x\t{there}\n@@ -0,0 +1 @@\n+1\n"),
            &[(FilePatchKind::Modified, Some("x"), Some("x"))],
        );
    }
}

#[test]
fn a_time_without_a_zone_tells_that_there_is_no_file() {
    for stamp in [
        "1970-01-01 00:00:00",
        "1970-01-01 01:00:00.000000000",
        "1969-12-31 19:00:00",
        "Thu Jan  1 05:30:00 1970",
        "Wed Dec 31 16:00:00 1969",
        "Thu Jan 01 00:00:00 1970 +0000",
    ] {
        assert_summary(
            &format!("--- x\t{stamp}\n+++ x\t2012-09-25 03:09:15\n@@ -0,0 +1 @@\n+1\n"),
            &[(FilePatchKind::Added, None, Some("x"))],
        );
        assert_summary(
            &format!("--- x\t2012-09-25 03:09:15\n+++ x\t{stamp}\n@@ -1 +0,0 @@\n-1\n"),
            &[(FilePatchKind::Deleted, Some("x"), None)],
        );
    }
    for stamp in [
        "1970-01-01 00:00:01",
        "1970-01-02 12:00:00",
        "Thu Jan  1 00:00:00 1971",
        "1970-01-01",
    ] {
        assert_summary(
            &format!("--- x\t{stamp}\n+++ x\n@@ -0,0 +1 @@\n+1\n"),
            &[(FilePatchKind::Modified, Some("x"), Some("x"))],
        );
    }
}

#[test]
fn a_file_of_that_time_that_has_lines_exists() {
    let stamp = "1970-01-01 00:00:00.000000000 +0000";
    let text = format!("--- x\t{stamp}\n+++ x\t{stamp}\n@@ -1 +1 @@\n-1\n+2\n");
    assert_summary(&text, &[(FilePatchKind::Modified, Some("x"), Some("x"))]);
}

#[test]
fn the_new_line_numbers_need_not_be_right() {
    let hunks = "@@ -1 +1 @@\n-1\n+1b\n@@ -3 +3,2 @@\n-4\n+4b\n+4b\n@@ -6 +0 @@\n-6\n+6b\n";
    let new = patched(&patch_of(hunks), b"1\n2\n3\n4\n5\n6\n7\n").unwrap();
    assert_eq!(new, b"1b\n2\n3\n4b\n4b\n5\n6b\n7\n");
}

#[test]
fn binary_files_are_left_out_of_a_patch() {
    let text = "diff --git a/dir/picture b/dir/picture\nindex 11..22 100644\nGIT binary patch\n\
        literal 1024\nScmZQz7zLvtFd70QH3R?z00031\n\nliteral 0\nHcmV?d00001\n\n\
        --- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n\
        diff --git a/old b/new\nsimilarity index 90%\nrename from old\nrename to new\n\
        Binary files a/old and b/new differ\n\
        Binary files one/a and b and two/a and b differ\n\
        Binary files /dev/null and b/added differ\n";
    let patch = Patch::parse(text.as_bytes()).unwrap();
    assert_eq!(
        summary(&patch),
        [(FilePatchKind::Modified, Some("x"), Some("x"))]
    );
    let omitted: Vec<_> = patch
        .omitted()
        .iter()
        .map(|file| (file.path.to_str().unwrap(), file.line))
        .collect();
    let expected = [
        ("dir/picture", 1),
        ("new", 15),
        ("a and b", 20),
        ("added", 21),
    ];
    assert_eq!(omitted, expected);
    assert_eq!(patch.paths().len(), 1);
}

#[test]
fn a_patch_without_times_may_make_the_file() {
    let patch = patch_of("@@ -0,0 +1 @@\n+1\n");
    let patch = Patch::parse(&patch).unwrap();
    let new = patch.files()[0].apply(None, ApplyOptions::default());
    assert_eq!(new.unwrap().unwrap(), b"1\n");
}

#[test]
fn a_change_of_mode_alone_is_found_however_many_directories_are_taken_off() {
    let patch = b"diff --git a/old/z b/z b/new/z b/z\nold mode 100644\nnew mode 100755\n";
    let patch = Patch::parse_with(patch, Strip::Exactly(2)).unwrap();
    assert_eq!(patch.files()[0].path(), Path::new("z b/z"));
}
