//! `vmcell diff`.

use std::fs;

use serde_json::json;

use crate::{
    shared_vm::SharedVm,
    vmcell::{READY_AND_WAIT, Vmcell},
};

#[test]
fn changes_are_told_and_make_the_old_tree_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    fs::create_dir_all(project.join("src")).unwrap();
    fs::write(project.join("src/main"), "one\ntwo\nthree\n").unwrap();
    fs::write(project.join("gone"), "going\n").unwrap();
    fs::write(project.join("script"), "#!/bin/sh\n").unwrap();
    let shared = SharedVm::start_with("diff", &["--push", project.to_str().unwrap()]);
    let diff = |options: &[&'static str]| shared.cli("diff", options.iter().copied()).finish();
    let change = |script: &str| {
        shared.exec([], ["sh", "-ec", script]).assert_printed("");
    };

    // The pushed tree is the baseline.
    diff(&["--exit-code"]).assert_printed("");
    change(
        "
        cp -a /workspace /srv/old; cd /workspace
        sed -i s/two/2/ src/main; rm gone; chmod 755 script
        printf 'no newline' > 'odd \"name\"'; ln -s src/main link; mkdir empty",
    );
    let names = "\
D gone
A link
A odd \"name\"
M script (mode 0644 -> 0755)
M src/main
";
    let status = diff(&["--name-status"]);
    status.assert_printed(&format!("A empty\n{names}"));
    let patch = diff(&["--exit-code"]);
    assert_eq!((patch.code(), patch.stderr.as_str()), (1, ""), "{patch:?}");
    assert!(
        patch
            .stdout()
            .contains("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n")
    );
    let part = diff(&["src"]);
    assert!(
        part.stdout().starts_with("diff --git a/main b/main\n"),
        "{part:?}"
    );
    let parsed = diff(&["--json"]).json();
    assert_eq!(parsed["directory"], json!("/workspace"));
    let changes = parsed["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 6, "{parsed}");
    let link = changes
        .iter()
        .find(|change| change["path"] == "link")
        .unwrap();
    assert_eq!(link["change"], json!("added"));
    assert_eq!(link["new"]["target"], json!("src/main"));

    // Applied to the old tree, the patch gives the new one, except for
    // directories.
    let manifest = folder.path().join("manifest");
    let manifest = manifest.to_str().unwrap();
    shared
        .cli("diff", ["--save", manifest])
        .finish()
        .assert_printed("");
    let mut patching = shared.cli("patch", ["--directory", "/srv/old"]).start();
    let writing = patching.write_all_and_close(patch.stdout.clone());
    let patched = patching.finish();
    writing.join().unwrap();
    assert_eq!(patched.code(), 0, "{patched:?}");
    let options = ["/srv/old", "--against", manifest, "--name-status"];
    shared
        .cli("diff", options)
        .finish()
        .assert_printed("D empty\n");

    // Binary files are named in a patch, which leaves them out.
    change("head -c 100 /dev/zero > /workspace/zeros");
    let binary = shared.cli("diff", ["--against", manifest]).finish();
    assert!(
        binary
            .stdout()
            .contains("Binary files /dev/null and b/zeros differ")
    );
    assert!(binary.stderr.contains("only names"), "{binary:?}");

    for (options, words) in [
        (&["/etc"][..], "vmcell diff ID PATH --save FILE"),
        (&["../etc"], "must not contain `..`"),
        (&["src/main"], "/workspace/src/main is not a directory"),
        (&["nothing"], "/workspace/nothing"),
        (
            &["--against", "/no/such/file"],
            "manifest /no/such/file: No such file",
        ),
        (&["--against", "/etc/passwd"], "not a manifest of vmcell"),
        (
            &["--save", "/no/such/folder/file"],
            "manifest /no/such/folder/file",
        ),
    ] {
        diff(options).assert_failed(125, words);
    }
}

/// Without --id or --push, no manifest is made.
#[test]
fn a_vm_without_a_manifest_says_how_to_make_one() {
    let mut running = Vmcell::run([], READY_AND_WAIT).start();
    assert_eq!(running.line(), "ready\n");
    let list = Vmcell::new(["ps", "--json"]).finish().json();
    let mut vms = list["vms"].as_array().unwrap().iter();
    let vm = vms.find(|vm| vm["owner_pid"] == json!(running.pid()));
    let id = vm.unwrap()["id"].as_str().unwrap();
    let ended = Vmcell::new(["diff", id]).finish();
    ended.assert_failed(
        125,
        "has stored no manifest: create one with `vmcell diff ID PATH --save",
    );
}
