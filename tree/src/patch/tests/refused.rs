//! Texts that are not valid patches.

use super::*;
use crate::patch::{BadName, PatchErrorKind};

#[track_caller]
fn error(patch: impl AsRef<[u8]>) -> (u64, PatchErrorKind) {
    let error = Patch::parse(patch.as_ref()).unwrap_err();
    (error.line, error.kind)
}

#[test]
fn names_that_leave_the_root_are_refused() {
    for name in ["a/../x", "a/b/../../x", "a/..", "../x"] {
        let text = format!("--- {name}\n+++ {name}\n@@ -1 +1 @@\n-1\n+2\n");
        let (line, kind) = error(text);
        assert_eq!(line, 1);
        assert!(
            matches!(kind, PatchErrorKind::BadName(BadName::ParentDir(_))),
            "{kind:?}"
        );
    }
    let git = |name: &str| format!("diff --git {name} {name}\nold mode 100644\nnew mode 100755\n");
    let quoted = "diff --git \"a/x\\000\" \"b/x\\000\"\nold mode 100644\nnew mode 100755\n";
    for (text, expected) in [
        (git("a/../x"), BadName::ParentDir("a/../x".to_owned())),
        (
            git("/etc/passwd"),
            BadName::Absolute("/etc/passwd".to_owned()),
        ),
        (
            quoted.to_owned(),
            BadName::NulByte("\"a/x\\000\"".to_owned()),
        ),
        (git("x"), BadName::TooFewDirectories("x".to_owned())),
        (git("\"a/x\\"), BadName::BadQuotes),
        (git("\"a\\9\""), BadName::BadQuotes),
        (git(&format!("a/{}", "n".repeat(256))), BadName::TooLong),
        (git(&"a/".repeat(3000)), BadName::TooLong),
    ] {
        assert_eq!(error(text), (1, PatchErrorKind::BadName(expected)));
    }
    let rename = "diff --git a/x b/y\nrename from x\nrename to ../y\n";
    let expected = BadName::ParentDir("../y".to_owned());
    assert_eq!(error(rename), (3, PatchErrorKind::BadName(expected)));
}

#[test]
fn binary_patches_are_refused_by_name() {
    let path = || "x".to_owned();
    let git = "diff --git a/x b/x\nindex 11..22 100644\n";
    for text in [
        format!("{git}GIT binary patch\nliteral 3\nabc\n"),
        format!("{git}Binary files a/x and b/x differ\n"),
    ] {
        assert_eq!(error(text), (1, PatchErrorKind::Binary { path: path() }));
    }
    let (line, kind) = error("prose\nBinary files old/x and new/x differ\n");
    assert_eq!(line, 2);
    assert!(matches!(kind, PatchErrorKind::Binary { .. }));
}

#[test]
fn text_without_a_patch_is_refused() {
    for text in ["", "hello\n", "--- a/x\n", "*** a\n--- b\n", "+++ x\n"] {
        assert_eq!(error(text), (1, PatchErrorKind::NoPatch), "{text}");
    }
    assert_eq!(
        error("\n@@ -1 +1 @@\n-1\n+2\n"),
        (2, PatchErrorKind::HunkWithoutFile)
    );
    assert_eq!(
        error("--- a\n+++ a\nend\n"),
        (3, PatchErrorKind::FileWithoutHunk)
    );
    assert_eq!(
        error("diff --git a/x b/x\n--- a/x\n+++ b/x\n"),
        (4, PatchErrorKind::FileWithoutHunk)
    );
    let (_, kind) = error("diff --git a/x b/x\nindex 11..22 100644\n");
    assert!(matches!(kind, PatchErrorKind::NoChange { .. }));
    assert_eq!(
        error("diff --git a/x b/y\nold mode 100644\nnew mode 100755\n"),
        (1, PatchErrorKind::NoName)
    );
}

#[test]
fn hunks_with_impossible_numbers_are_refused() {
    let most = u64::MAX;
    for (header, kind) in [
        (format!("@@ -{most} +1 @@"), PatchErrorKind::BadRange),
        (format!("@@ -1 +{most}0 @@"), PatchErrorKind::BadRange),
        (format!("@@ -1,{most} +1 @@"), PatchErrorKind::BadRange),
        ("@@ -0 +1 @@".to_owned(), PatchErrorKind::BadRange),
        ("@@ -0,2 +1 @@".to_owned(), PatchErrorKind::BadRange),
        ("@@ -,1 +1 @@".to_owned(), PatchErrorKind::BadHeader),
        ("@@ -1 1 @@".to_owned(), PatchErrorKind::BadHeader),
        ("@@ -1 +1".to_owned(), PatchErrorKind::BadHeader),
        ("@@ --1 +1 @@".to_owned(), PatchErrorKind::BadHeader),
    ] {
        let text = patch_of(&format!("{header}\n-1\n+2\n"));
        assert_eq!(error(text), (3, kind), "{header}");
    }
}

#[test]
fn hunks_must_have_the_lines_that_they_tell_of() {
    for (hunks, line, kind) in [
        ("@@ -1,2 +1,2 @@\n-1\n+2\n", 6, PatchErrorKind::HunkTooShort),
        (
            "@@ -1,2 +1,2 @@\n-1\n+2\nend\n",
            6,
            PatchErrorKind::HunkTooShort,
        ),
        (
            "@@ -1,4000000000 +1 @@\n-1\n+2\n",
            6,
            PatchErrorKind::HunkTooShort,
        ),
        ("@@ -1 +1 @@\n-1\n+2\n+3\n", 6, PatchErrorKind::HunkTooLong),
        ("@@ -1 +1 @@\n-1\n+2\n 3\n", 6, PatchErrorKind::HunkTooLong),
        (
            "@@ -1 +1,2 @@\n-1\n-2\n+3\n+4\n",
            5,
            PatchErrorKind::HunkTooLong,
        ),
        (
            "@@ -5 +5 @@\n-1\n+2\n@@ -5 +5 @@\n-1\n+2\n",
            6,
            PatchErrorKind::OutOfOrder,
        ),
        (
            "@@ -5 +5 @@\n-1\n+2\n@@ -1 +1 @@\n-1\n+2\n",
            6,
            PatchErrorKind::OutOfOrder,
        ),
    ] {
        assert_eq!(error(patch_of(hunks)), (line, kind), "{hunks}");
    }
}

#[test]
fn only_the_last_line_can_lack_its_newline() {
    let missing = "\\ No newline at end of file\n";
    for hunks in [
        format!("@@ -1 +1,2 @@\n-1\n+2\n{missing}+3\n"),
        format!("@@ -1,2 +1,2 @@\n 1\n{missing}-2\n+3\n"),
        format!("@@ -1 +1 @@\n-1\n+2\n{missing}@@ -5 +5 @@\n-1\n+2\n"),
    ] {
        let (_, kind) = error(patch_of(&hunks));
        assert_eq!(kind, PatchErrorKind::NoNewline, "{hunks}");
    }
}

#[test]
fn a_file_that_is_not_there_has_no_lines() {
    for text in [
        "--- /dev/null\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n",
        "--- a/x\n+++ /dev/null\n@@ -1 +1 @@\n-1\n+2\n",
        "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n",
    ] {
        assert_eq!(error(text).1, PatchErrorKind::LinesInMissingFile, "{text}");
    }
}

#[test]
fn lines_that_contradict_each_other_are_refused() {
    for text in [
        "diff --git a/x b/x\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n",
        "diff --git a/x b/y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n",
        "diff --git a/x b/y\nrename from x\nrename to y\n--- a/x\n+++ b/z\n@@ -1 +1 @@\n-1\n+2\n",
        "--- one\n+++ other\n@@ -1 +1 @@\n-1\n+2\n",
    ] {
        let (_, kind) = error(text);
        assert!(
            matches!(kind, PatchErrorKind::NamesDiffer { .. }),
            "{text}{kind:?}"
        );
    }
}

#[test]
fn only_files_and_symlinks_have_modes() {
    for mode in [
        "160000",
        "040000",
        "100644x",
        "-1",
        "",
        "7777777777777",
        "1100644",
    ] {
        let text = format!("diff --git a/x b/x\nnew file mode {mode}\n");
        assert_eq!(error(text), (2, PatchErrorKind::BadMode), "{mode}");
    }
}

#[test]
fn no_file_is_renamed_to_itself_or_below_another() {
    let (_, kind) = error("diff --git a/x b/x\nrename from x\nrename to x\n");
    assert!(matches!(kind, PatchErrorKind::SamePath { .. }), "{kind:?}");
    let add = "diff --git a/x b/x\nnew file mode 100644\n";
    let (_, kind) = error(format!("{add}{}", add.replace("/x", "/x/y")));
    assert!(
        matches!(kind, PatchErrorKind::PathBelowFile { .. }),
        "{kind:?}"
    );
}

#[test]
fn halves_of_a_context_diff_must_belong_together() {
    for (hunk, kind) in [
        (
            "*** 405,409 ****\n--- 405,407 ----\n  a\n  b\n  c\n+ d\n",
            PatchErrorKind::BadRange,
        ),
        (
            "*** 1 ****\n! a\n--- 1 ----\n! b\n+ c\n",
            PatchErrorKind::HunkTooLong,
        ),
        (
            "*** 1,2 ****\n  a\n- b\n--- 1,2 ----\n  A\n+ b\n",
            PatchErrorKind::HalvesDiffer,
        ),
        (
            "*** 1,2 ****\n  a\n- b\n--- 1,2 ----\n  a\n",
            PatchErrorKind::HunkTooShort,
        ),
        (
            "*** 1,3 ****\n  a\n- b\n--- 1 ----\n  a\n",
            PatchErrorKind::HunkTooShort,
        ),
        (
            "*** 1,99999999999 ****\n--- 1 ----\n  a\n",
            PatchErrorKind::BadRange,
        ),
        ("*** 2,1 ****\n--- 1 ----\n  a\n", PatchErrorKind::BadRange),
        ("*** x ****\n", PatchErrorKind::BadContextHeader),
        ("*** 1 ****\n! a\n", PatchErrorKind::BadContextHeader),
        (
            "*** 1 ****\n! a\n--- 1,2 ----\n! b\n\\ No newline\n+ c\n",
            PatchErrorKind::NoNewline,
        ),
    ] {
        let text = format!("*** a/x\n--- b/x\n***************\n{hunk}");
        assert_eq!(error(text).1, kind, "{hunk}");
    }
}

#[test]
fn errors_tell_the_line_and_are_safe_to_print() {
    let text = "\n--- a/\u{1b}[2J/../x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n";
    let error = Patch::parse(text.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2 of the patch: the name \"a/\\033[2J/../x\" contains `..`: \
         only names below the root are allowed"
    );
}
