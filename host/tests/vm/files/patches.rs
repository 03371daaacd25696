//! Patches and diffs.

use std::path::Path;

use vmcell::{
    Error, Vm,
    diff::{Diff, Manifest},
    files::{Files, ManifestOptions, PatchOptions},
    patch::FilePatchKind,
};

use crate::start;

async fn shell(vm: &Vm, line: &str) -> String {
    let output = vm.exec(["sh", "-c", line]).await.unwrap();
    assert!(output.success(), "{line}: {}", output.stderr_text());
    output.stdout_text()
}

fn patch_of(diff: &Diff) -> Vec<u8> {
    let mut patch = Vec::new();
    diff.write_patch(&mut patch).unwrap();
    patch
}

/// Describes everything below a directory.
async fn state(files: &Files, directory: &str) -> Vec<String> {
    let manifest = files.manifest(directory, ManifestOptions::new()).await;
    let manifest = manifest.unwrap();
    manifest.iter().map(|entry| format!("{entry:?}")).collect()
}

#[tokio::test]
async fn a_patch_is_applied_wholly_or_not_at_all() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    shell(
        &vm,
        "cd /workspace && seq 20 > numbers && printf 'a\\r\\nb\\r\\n' > dos && mkdir d && echo gone > d/gone && printf 'no newline' > bare",
    )
    .await;
    let patch = "\
diff --git a/numbers b/numbers
--- a/numbers
+++ b/numbers
@@ -9,3 +9,4 @@
 9
-10
+ten
+and more
 11
diff --git a/new/file b/new/file
new file mode 100755
--- /dev/null
+++ b/new/file
@@ -0,0 +1 @@
+#!/bin/sh
diff --git a/d/gone b/d/gone
deleted file mode 100644
--- a/d/gone
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/bare b/moved
rename from bare
rename to moved
--- a/bare
+++ b/moved
@@ -1 +1 @@
-no newline
\\ No newline at end of file
+a newline
--- a/dos
+++ b/dos
@@ -1,2 +1,2 @@
 a\r
-b\r
+c\r
";
    let before = state(&files, "").await;
    // The patch of the last file does not apply: nothing at all is changed.
    let broken = patch.replace("-b\r", "-x\r");
    let error = files
        .apply_patch("", broken, PatchOptions::new())
        .await
        .unwrap_err();
    match &error {
        Error::PatchMismatch(mismatch) => assert_eq!(mismatch.path, Path::new("dos")),
        other => panic!("{other:?}"),
    }
    assert_eq!(state(&files, "").await, before);

    let applied = files.apply_patch("", patch, PatchOptions::new()).await;
    let applied = applied.unwrap();
    assert!(applied.omitted.is_empty());
    let kinds: Vec<_> = applied.files.iter().map(|file| file.kind).collect();
    let expected = [
        FilePatchKind::Modified,
        FilePatchKind::Added,
        FilePatchKind::Deleted,
        FilePatchKind::Renamed,
        FilePatchKind::Modified,
    ];
    assert_eq!(kinds, expected);
    let printed = shell(
        &vm,
        "cd /workspace && sed -n 9,12p numbers && cat moved dos && stat -c %a new/file && ls",
    )
    .await;
    assert_eq!(
        printed,
        "9\nten\nand more\n11\na newline\na\r\nc\r\n755\ndos\nmoved\nnew\nnumbers\n"
    );
    // No temporary files are left, hidden or not.
    let hidden = shell(&vm, "find /workspace -name '.*' | wc -l").await;
    assert_eq!(hidden, "0\n");

    for (garbage, code) in [
        ("no patch at all", "bad-patch"),
        (
            "--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -1 +1 @@\n-x\n+y\n",
            "bad-patch",
        ),
        (
            "--- a/numbers\n+++ b/numbers\n@@ -18446744073709551615 +1 @@\n-1\n+2\n",
            "bad-patch",
        ),
        (
            "--- a/missing\n+++ b/missing\n@@ -1 +1 @@\n-x\n+y\n",
            "patch-mismatch",
        ),
    ] {
        let error = files.apply_patch("", garbage, PatchOptions::new()).await;
        assert_eq!(error.unwrap_err().code(), code, "{garbage}");
    }
    // Nothing is patched through a symlink out of the root.
    shell(&vm, "ln -s /etc /workspace/out").await;
    let through = "--- a/out/hostname\n+++ b/out/hostname\n@@ -1 +1 @@\n-x\n+y\n";
    let error = files.apply_patch("", through, PatchOptions::new()).await;
    assert_eq!(error.unwrap_err().code(), "file");
}

#[tokio::test]
async fn a_patch_leaves_binary_files_out_and_follows_links_in_the_tree() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    let prepare = "mkdir -p /workspace/t/d && cd /workspace/t && echo 1 > d/x && ln -s d link && \
                   printf '\\0' > picture";
    shell(&vm, prepare).await;
    let patch = "\
diff --git a/picture b/picture
Binary files a/picture and b/picture differ
--- a/link/x
+++ b/link/x
@@ -1 +1 @@
-1
+2
*** a/link/x
--- b/link/x
***************
*** 1 ****
! 2
--- 1 ----
! 3
--- /dev/null
+++ b/link/new/y
@@ -0,0 +1 @@
+y
";
    let applied = files.apply_patch("t", patch, PatchOptions::new()).await;
    let applied = applied.unwrap();
    assert_eq!(applied.omitted, [Path::new("picture")]);
    assert_eq!(applied.files.len(), 3);
    let printed = shell(&vm, "cd /workspace/t && cat d/x d/new/y && readlink link").await;
    assert_eq!(printed, "3\ny\nd\n");
    // Nothing is patched through a link to another directory of the root.
    shell(&vm, "cd /workspace && echo 1 > outer && ln -s .. t/up").await;
    let through = "--- a/up/outer\n+++ b/up/outer\n@@ -1 +1 @@\n-1\n+2\n";
    let error = files.apply_patch("t", through, PatchOptions::new()).await;
    assert_eq!(error.unwrap_err().code(), "file");
    assert_eq!(shell(&vm, "cat /workspace/outer").await, "1\n");
}

#[tokio::test]
async fn a_diff_makes_the_old_tree_the_new_one() {
    let vm = start().await;
    let files = vm.files().at("/workspace");
    shell(
        &vm,
        "mkdir -p /workspace/w/sub && cd /workspace/w && seq 100 > numbers && echo same > same && \
         echo old > sub/old && ln -s numbers link && printf '\\0\\1' > binary && echo run > run && \
         cp -a /workspace/w /workspace/old",
    )
    .await;
    let options = ManifestOptions::new().keep_texts(1 << 20);
    let before = files.manifest("w", options.clone()).await.unwrap();
    let kept = before.to_bytes().unwrap();
    let before = Manifest::from_bytes(&kept).unwrap();
    assert!(
        files
            .diff("w", &before, options.clone())
            .await
            .unwrap()
            .is_empty()
    );
    shell(
        &vm,
        "cd /workspace/w && sed -i 's/^50$/fifty/' numbers && rm -r sub && mkdir -p a/b && \
         printf 'new, no newline' > a/b/new && ln -sf same link && chmod 755 run && touch same",
    )
    .await;
    let diff = files.diff("w", &before, options.clone()).await.unwrap();
    let changed: Vec<_> = diff
        .files()
        .iter()
        .map(|file| file.change().path.to_str().unwrap().to_owned())
        .collect();
    let expected = [
        "a", "a/b", "a/b/new", "link", "numbers", "run", "sub", "sub/old",
    ];
    assert_eq!(changed, expected);
    let patch = patch_of(&diff);
    files
        .apply_patch("old", patch, PatchOptions::new())
        .await
        .unwrap();
    assert_eq!(state(&files, "old").await, state(&files, "w").await);

    // A binary file is named, not printed.
    shell(&vm, "printf '\\0\\2' > /workspace/w/binary").await;
    let diff = files.diff("w", &before, options.clone()).await.unwrap();
    let text = String::from_utf8(patch_of(&diff)).unwrap();
    assert!(
        text.contains("Binary files a/binary and b/binary differ\n"),
        "{text}"
    );

    // Other programs can read the owner's baseline.
    vm.set_baseline(&before).unwrap();
    let client = Vm::attach(vm.id()).await.unwrap();
    let baseline = client.baseline().await.unwrap().unwrap();
    assert_eq!(baseline, before);
}
