//! `vmcell patch`.

use std::fs;

use serde_json::json;

use crate::{shared_vm::SharedVm, vmcell::Ended};

const PATCH: &str = "\
diff --git a/greeting b/greeting
--- a/greeting
+++ b/greeting
@@ -1,3 +1,3 @@
 hello
-world
+vmcell
 end
diff --git a/old b/old
deleted file mode 100644
--- a/old
+++ /dev/null
@@ -1 +0,0 @@
-old
diff --git a/from b/to
rename from from
rename to to
diff --git a/new/file b/new/file
new file mode 100755
--- /dev/null
+++ b/new/file
@@ -0,0 +1 @@
+new
";

impl SharedVm {
    /// Applies a patch from standard input.
    fn patch(&self, options: &[&str], patch: &str) -> Ended {
        let mut running = self.cli("patch", options.iter().copied()).start();
        let writing = running.write_all_and_close(patch.as_bytes().to_vec());
        let ended = running.finish();
        writing.join().unwrap();
        ended
    }

    #[track_caller]
    fn shell(&self, script: &str, printed: &str) {
        self.exec([], ["sh", "-ec", script]).assert_printed(printed);
    }
}

#[test]
fn a_patch_is_applied_as_a_whole_or_not_at_all() {
    let shared = SharedVm::start("patch");
    let prepare = "
        mkdir -p /srv/other; cd /workspace
        printf 'hello\\nworld\\nend\\n' | tee greeting > /srv/other/greeting
        echo old > old; echo from > from";
    shared.shell(prepare, "");
    let all = "cd /workspace; find . -type f | sort; cat greeting";

    // The first file matches, the second does not.
    shared.shell("echo more >> /workspace/old", "");
    let ended = shared.patch(&[], PATCH);
    ended.assert_failed(1, "old");
    let before = "./from\n./greeting\n./old\nhello\nworld\nend\n";
    shared.shell(all, before);
    shared.shell("echo old > /workspace/old", "");

    shared
        .patch(&[], PATCH)
        .assert_printed("M greeting\nD old\nR to\nA new/file\n");
    let after = "./greeting\n./new/file\n./to\nhello\nvmcell\nend\n";
    shared.shell(all, after);
    shared.shell("test -x /workspace/new/file; cat /workspace/to", "from\n");

    // A second time it does not match, and the message says where.
    let ended = shared.patch(&[], &PATCH[..PATCH.find("diff --git a/old").unwrap()]);
    for words in ["greeting", "line 2 should be `world`, but is `vmcell`"] {
        ended.assert_failed(1, words);
    }
    let ended = shared.patch(&["--json"], PATCH);
    assert_eq!(ended.json()["error"]["code"], json!("patch-mismatch"));
    assert_eq!((ended.code(), ended.stderr.as_str()), (1, ""));
    shared.shell(all, after);

    // A patch from a file, in another directory, with -p and --fuzz.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("patch");
    let plain =
        "--- x/y/greeting\n+++ x/y/greeting\n@@ -1,3 +1,3 @@\n hallo\n-world\n+earth\n end\n";
    fs::write(&file, plain).unwrap();
    let options = ["--directory", "/srv/other", "-p", "2"];
    shared.patch(&options, plain).assert_failed(1, "hallo");
    let path = file.to_str().unwrap();
    let options = [
        path,
        "--directory",
        "/srv/other",
        "-p",
        "2",
        "--fuzz",
        "1",
        "--json",
    ];
    let ended = shared.cli("patch", options).finish();
    let expected = json!([{ "change": "modified", "path": "greeting" }]);
    assert_eq!(ended.json()["files"], expected, "{ended:?}");
    shared.shell("sed -n 2p /srv/other/greeting", "earth\n");

    // Binary files are left out.
    let binary = "diff --git a/b b/b\nBinary files a/b and b/b differ\n";
    let patch = format!("{binary}--- a/to\n+++ b/to\n@@ -1 +1 @@\n-from\n+to\n");
    let ended = shared.patch(&["--json"], &patch);
    assert_eq!(ended.json()["omitted"], json!([{ "path": "b" }]));
    assert_eq!(ended.code(), 1);
    shared.shell("cat /workspace/to; echo from > /workspace/to", "to\n");
    let ended = shared.patch(&[], &patch);
    assert_eq!((ended.code(), ended.stdout()), (1, "M to\n"));
    let words = "left out, so copy them instead: b";
    assert!(ended.stderr.contains(words), "{ended:?}");

    for (patch, words) in [
        ("", "there is no patch"),
        ("no patch at all\n", "there is no patch"),
        (
            "--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -0,0 +1 @@\n+x\n",
            "line 1",
        ),
        (
            "--- a/greeting\n+++ b/greeting\n@@ -99999999999999999999 +1 @@\n-x\n+y\n",
            "line 3",
        ),
        (
            "diff --git a/b b/b\nBinary files a/b and b/b differ\n",
            "binary",
        ),
    ] {
        shared.patch(&[], patch).assert_failed(125, words);
    }
    let ended = shared.cli("patch", ["/no/such/patch"]).finish();
    ended.assert_failed(125, "patch /no/such/patch: No such file");
    shared.shell(all, after);
}
