//! Files below `/workspace`, and those on the disk of a stopped workspace.

use super::{Store, text_of};
use crate::vmcell::Vmcell;

#[test]
fn files_are_described_read_up_to_a_limit_replaced_and_patched() {
    let store = Store::new();
    let id = store.create([]);
    let line = "mkdir dir; head -c 70000 /dev/zero | tr '\\0' a > large; echo old > old; \
                chmod 640 old; ln -s old link";
    store.exec(&id, line).assert_printed("");
    let content = store.json(["file", "read", &id, "large"]);
    assert_eq!(content["content"].as_str().unwrap().len(), 65_536);
    assert_eq!(
        (&content["size_bytes"], &content["max_bytes"]),
        (&70_000.into(), &65_536.into())
    );
    assert_eq!(content["truncated"], true);
    let all = store.json(["file", "read", &id, "large", "--max-bytes", "70000"]);
    assert_eq!(all["truncated"], false);
    let read = store.cli(["file", "read", &id, "dir"]).finish();
    read.assert_failed(125, "it is a directory");

    // One path, or all below it.
    let list = store.json(["file", "list", &id, "old"]);
    let entry = &list["entries"][0];
    assert_eq!(entry["path"], "/workspace/old", "{list}");
    assert_eq!(
        (&entry["type"], &entry["size"]),
        (&"file".into(), &4.into())
    );
    assert_eq!(entry["permissions"], "-rw-r-----");
    let list = store.json(["file", "list", &id]);
    let entries = list["entries"].as_array().unwrap().iter();
    let entries: Vec<_> = entries
        .map(|entry| (&entry["name"], &entry["type"]))
        .collect();
    let expected = [
        ("dir", "directory"),
        ("large", "file"),
        ("link", "symlink"),
        ("old", "file"),
    ];
    assert_eq!(entries.len(), expected.len());
    for (entry, (name, kind)) in entries.into_iter().zip(expected) {
        assert_eq!((entry.0, entry.1), (&name.into(), &kind.into()));
    }

    for text in ["first, and longer\n", "second\n"] {
        store.text(["file", "write", &id, "dir/a/b", "--text", text]);
        assert_eq!(store.text(["file", "read", &id, "dir/a/b"]), text);
    }
    let patch = "--- /dev/null\n+++ b/added/file\n@@ -0,0 +1 @@\n+added\n\
                 --- a/dir/a/b\n+++ b/dir/a/b\n@@ -1 +1 @@\n-second\n+third\n\
                 --- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n";
    let applied = store.text(["patch", "apply", &id, "--patch", patch]);
    assert_eq!(applied, "A added/file\nM dir/a/b\nD old\n");
    let line = "cat added/file dir/a/b; ls old 2>/dev/null; :";
    store.exec(&id, line).assert_printed("added\nthird\n");
    store.delete(&id);
    store.assert_empty();
}

#[test]
fn nothing_lists_exports_or_patches_what_is_not_below_the_workspace() {
    let store = Store::new();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("output");
    let id = store.create([]);
    store.exec(&id, "ln -s /etc etc").assert_printed("");
    for path in ["/etc", "../etc", "etc/"] {
        let list = store.cli(["file", "list", &id, path]).finish();
        assert_eq!((list.code(), list.stdout()), (125, ""), "{path}: {list:?}");
    }
    for path in ["/etc/passwd", "../etc/passwd", "etc/passwd", "etc"] {
        let export = ["export", &id, path, "--output", text_of(&output)];
        let export = store.cli(export).finish();
        assert_eq!(export.code(), 125, "{path}: {export:?}");
        assert!(output.symlink_metadata().is_err(), "{path}");
    }
    for path in ["../etc/new", "etc/new"] {
        let patch = format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n");
        let apply = ["patch", "apply", &id, "--patch", &patch];
        let applied = store.cli(apply).finish();
        assert_ne!(applied.code(), 0, "{path}: {applied:?}");
    }
    store
        .exec(&id, "ls /etc/new 2>/dev/null; :")
        .assert_printed("");
    store.delete(&id);
    store.assert_empty();
}

#[test]
fn the_disk_is_read_without_a_vm_and_only_of_a_stopped_workspace() {
    let store = Store::new();
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image.ext4");
    let id = store.create([]);
    let line = "head -c 70000 /dev/zero | tr '\\0' a > large";
    store.exec(&id, line).assert_printed("");
    let commands = [
        &["disk", "list", &id][..],
        &["disk", "read", &id, "large"],
        &["disk", "export", &id, "--output", text_of(&image)],
    ];
    for change in [None, Some("pause")] {
        if let Some(change) = change {
            store.text([change, &id]);
        }
        for command in commands {
            let ended = store.cli(command.iter().copied()).finish();
            ended.assert_failed(125, "stop it first");
        }
    }
    store.text(["stop", &id]);
    let content = store.json(commands[1].iter().copied());
    assert_eq!(content["content"].as_str().unwrap().len(), 65_536);
    assert_eq!(content["truncated"], true);
    let list = store.json(commands[0].iter().copied());
    assert_eq!(list["entries"][0]["path"], "/workspace/large", "{list}");
    let exported = store.json(commands[2].iter().copied());
    assert_eq!(exported["size"], image.metadata().unwrap().len());
    let list = Vmcell::new(["ps", "--json"]).finish().json();
    let mut vms = list["vms"].as_array().unwrap().iter();
    assert!(vms.all(|vm| vm["id"] != *id), "{list}");
    assert_eq!(store.json(["status", &id])["state"], "stopped");
    store.text(["delete", &id]);
    store.assert_empty();
}
