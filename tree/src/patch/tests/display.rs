//! Patches as text.

use super::*;

/// Prints a patch, and checks that the result is the same patch.
#[track_caller]
fn printed(text: &str) -> String {
    let patch = Patch::parse(text.as_bytes()).unwrap();
    let printed = patch.to_string();
    let again = Patch::parse(printed.as_bytes()).unwrap();
    assert_eq!(again.to_string(), printed);
    let mut written = Vec::new();
    patch.write_patch(&mut written).unwrap();
    assert_eq!(written, printed.as_bytes());
    printed
}

#[test]
fn a_patch_of_gits_is_printed_as_it_was() {
    let text = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n\
        --- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n\
        diff --git a/with blank b/with blank\nnew file mode 100644\n\
        --- /dev/null\n+++ b/with blank\t\n@@ -0,0 +1 @@\n+new\n\
        diff --git a/z b/z\ndeleted file mode 120000\n\
        --- a/z\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n\\ No newline at end of file\n\
        diff --git \"a/\\303\\274\" b/y\nrename from \"\\303\\274\"\nrename to y\n\
        diff --git a/e b/f\ncopy from e\ncopy to f\n--- a/e\n+++ b/f\n@@ -1 +1 @@\n-1\n+2\n\
        diff --git a/l b/l\nindex 0000000..0000000 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-1\n+2\n";
    assert_eq!(printed(text), text);
}

#[test]
fn other_patches_are_printed_in_gits_format() {
    let context = "*** old/x\tFri Mar 27 23:32:33 2009\n--- new/x\tFri Mar 27 23:32:40 2009\n\
        ***************\n*** 1,2 ****\n  a\n! b\n--- 1,2 ----\n  a\n! c\n";
    let text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n";
    assert_eq!(printed(context), text);
    // A plain patch that may create the file stays one.
    let plain = "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+1\n";
    let rename = "diff --git a/y b/z\nrename from y\nrename to z\n";
    let text = format!("{rename}diff -u a/x b/x\n{plain}");
    assert_eq!(printed(&text), text);
    assert_eq!(printed(plain), format!("diff -u a/x b/x\n{plain}"));
    let deleted = "--- x\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n";
    assert!(printed(deleted).starts_with("diff --git a/x b/x\ndeleted file mode 100644\n"));
}

#[test]
fn carriage_returns_stay_those_of_the_patch() {
    let text = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n".replace('\n', "\r\n");
    let printed = printed(&text);
    for (old, new) in [("1\n", "2\n"), ("1\r\n", "2\r\n")] {
        let made = patched(printed.as_bytes(), old.as_bytes()).unwrap();
        assert_eq!(made, new.as_bytes());
    }
}
