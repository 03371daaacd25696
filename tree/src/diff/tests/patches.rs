use super::*;
use crate::diff::{Diff, PatchDetail};

fn shown(
    old: Option<(ManifestEntry, &[u8])>,
    new: Option<(ManifestEntry, &[u8])>,
    path: &str,
) -> (PatchDetail, String) {
    let side = |side: &Option<(ManifestEntry, &[u8])>| {
        manifest(side.iter().map(|(entry, _)| (path, entry.clone())))
    };
    let change = Manifest::compare(&side(&old), &side(&new)).remove(0);
    let content = |side: Option<(ManifestEntry, _)>| side.map(|(_, content)| content);
    let diff = FileDiff::new(change, content(old), content(new), DiffOptions::default());
    let patch = String::from_utf8(diff.patch().to_vec()).unwrap();
    (diff.detail(), patch)
}

fn both(mode: u32, content: &[u8]) -> Option<(ManifestEntry, &[u8])> {
    Some((file(mode, content), content))
}

#[test]
fn a_patch_looks_as_git_writes_it() {
    let old = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15";
    let new = b"1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\nend\n";
    assert_eq!(
        shown(both(0o644, old), both(0o640, new), "dir/x y"),
        (
            PatchDetail::Full,
            "diff --git a/dir/x y b/dir/x y\nold mode 100644\nnew mode 100640\n\
             --- a/dir/x y\t\n+++ b/dir/x y\t\n\
             @@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n\
             @@ -12,4 +12,4 @@\n 12\n 13\n 14\n-15\n\\ No newline at end of file\n+end\n"
                .to_owned()
        )
    );
}

#[test]
fn files_that_come_and_go_tell_their_mode() {
    assert_eq!(
        shown(None, both(0o600, b"1\n"), "\n\"x").1,
        "diff --git \"a/\\n\\\"x\" \"b/\\n\\\"x\"\nnew file mode 100600\n\
         --- /dev/null\n+++ \"b/\\n\\\"x\"\n@@ -0,0 +1 @@\n+1\n"
    );
    assert_eq!(
        shown(both(0o4755, b""), None, "x").1,
        "diff --git a/x b/x\ndeleted file mode 104755\n"
    );
}

#[test]
fn a_symlink_is_its_target() {
    let link = Some((symlink(b"target"), &b""[..]));
    assert_eq!(
        shown(both(0o644, b""), link, "x").1,
        "diff --git a/x b/x\ndeleted file mode 100644\n\
         diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n\
         @@ -0,0 +1 @@\n+target\n\\ No newline at end of file\n"
    );
}

#[test]
fn binary_files_are_named() {
    let (shown_as, patch) = shown(both(0o644, b"a\0"), both(0o644, b"b"), "x");
    assert_eq!(shown_as, PatchDetail::NameOnly);
    assert_eq!(
        patch,
        "diff --git a/x b/x\nBinary files a/x and b/x differ\n"
    );
    // Git checks only the first 8000 bytes.
    let mut late = b"a\n".repeat(4000);
    late.push(0);
    assert_eq!(shown(None, both(0o644, &late), "x").0, PatchDetail::Full);
    late[7999] = 0;
    assert_eq!(
        shown(None, both(0o644, &late), "x").0,
        PatchDetail::NameOnly
    );
}

#[test]
fn contents_that_are_not_known_are_named_unless_they_are_the_same() {
    let change = |old, new| {
        let (old, new) = (manifest([("x", old)]), manifest([("x", new)]));
        Manifest::compare(&old, &new).remove(0)
    };
    let diff = |change| FileDiff::new(change, None, None, DiffOptions::default());
    assert_eq!(
        diff(change(file(0o644, b"1"), file(0o644, b"2"))).detail(),
        PatchDetail::NameOnly
    );
    let mode = diff(change(file(0o644, b"1"), file(0o600, b"1")));
    assert_eq!(mode.detail(), PatchDetail::Full);
    assert!(
        mode.patch()
            .ends_with(b"old mode 100644\nnew mode 100600\n")
    );
}

#[test]
fn large_files_are_named() {
    let old = manifest([]);
    let new = manifest([("x", file(0o644, b"12345"))]);
    let change = Manifest::compare(&old, &new).remove(0);
    let options = DiffOptions {
        max_size: 4,
        ..DiffOptions::default()
    };
    let diff = FileDiff::new(change, None, Some(b"12345"), options);
    assert_eq!(diff.detail(), PatchDetail::NameOnly);
}

#[test]
fn directories_are_not_in_a_patch() {
    let directory = || Some((entry(ManifestKind::Directory, 0o755), &b""[..]));
    assert_eq!(
        shown(None, directory(), "x"),
        (PatchDetail::None, String::new())
    );
    // A file that a directory replaces is in it, though.
    let (_, patch) = shown(both(0o644, b""), directory(), "x");
    assert_eq!(patch, "diff --git a/x b/x\ndeleted file mode 100644\n");
}

#[test]
fn a_diff_is_sorted_and_written_as_one_patch() {
    let new = manifest([("b", file(0o644, b"")), ("a", file(0o644, b""))]);
    let changes = Manifest::compare(&Manifest::new(), &new);
    let files = changes.into_iter().rev();
    let diff: Diff = files
        .map(|change| FileDiff::new(change, None, Some(b""), DiffOptions::default()))
        .collect();
    let mut patch = Vec::new();
    diff.write_patch(&mut patch).unwrap();
    assert_eq!(
        String::from_utf8(patch).unwrap(),
        "diff --git a/a b/a\nnew file mode 100644\ndiff --git a/b b/b\nnew file mode 100644\n"
    );
}
