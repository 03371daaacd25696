//! `vmcell ls`, `cat` and `stat`.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use serde_json::{Value, json};

use crate::{
    shared_vm::SharedVm,
    tree::{ODD_NAME, create_tree},
    vmcell::Vmcell,
};

#[test]
fn files_are_listed_read_and_described() {
    let shared = SharedVm::start("look");
    let folder = tempfile::tempdir().unwrap();
    create_tree(folder.path());
    let source = folder.path().join(".");
    let destination = format!("{}:", shared.id);
    let ended = Vmcell::new(["cp".as_ref(), source.as_os_str(), destination.as_ref()]).finish();
    ended.assert_printed("");

    let list = |arguments: &[&'static str]| {
        let ended = shared.cli("ls", arguments.iter().copied()).finish();
        assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""), "{ended:?}");
        ended
    };
    assert_eq!(
        list(&["src", "-R"]).stdout(),
        "deep\ndeep/large\ndeep/none\nlink\nnotes\nrun.sh\n"
    );
    assert_eq!(
        list(&["src", "--depth", "1"]).stdout(),
        "deep\nlink\nnotes\nrun.sh\n"
    );
    assert_eq!(
        list(&["--glob", "**/n*"]).stdout(),
        "notes\nsrc/deep/none\nsrc/notes\n"
    );
    assert_eq!(list(&["notes"]).stdout(), "/workspace/notes\n");
    assert_eq!(list(&["empty"]).stdout(), "");
    // Into a pipe, names go unchanged.
    let names = list(&[]).stdout;
    assert!(names.windows(ODD_NAME.len()).any(|name| name == ODD_NAME));

    let long = list(&["-l"]);
    let rows: Vec<_> = long.stdout().lines().collect();
    assert_eq!(rows.len(), 1 + 5, "{long:?}");
    let notes = rows.iter().find(|row| row.ends_with("  notes")).unwrap();
    assert!(
        notes.starts_with("-rw-r-----  2      cell   cell   14 "),
        "{notes}"
    );
    assert!(notes.contains("2001-09-09 01:46:40"), "{notes}");
    assert!(rows.iter().any(|row| row.ends_with("broken -> nowhere")));
    assert!(!long.stdout().contains('\x1b'), "{long:?}");

    let parsed = list(&["--json"]).json();
    assert_eq!(parsed["sandbox_id"], json!(shared.id));
    assert_eq!(
        (&parsed["path"], &parsed["problem_count"]),
        (&json!("/workspace"), &json!(0))
    );
    let entries = parsed["entries"].as_array().unwrap();
    let find = |name: &str| entries.iter().find(|entry| entry["name"] == name).unwrap();
    let notes = find("notes");
    for (key, value) in [
        ("path", json!("/workspace/notes")),
        ("type", json!("file")),
        ("size", json!(14)),
        ("mode", json!("0640")),
        ("permissions", json!("-rw-r-----")),
        ("uid", json!(1000)),
        ("owner", json!("cell")),
        ("links", json!(2)),
        ("modified", json!("2001-09-09T01:46:40.123000000Z")),
        ("target", Value::Null),
    ] {
        assert_eq!(notes[key], value, "{key}");
    }
    assert!(notes.get("path_bytes").is_none());
    assert_eq!(find("broken")["target"], json!("nowhere"));
    let odd = find(&String::from_utf8_lossy(ODD_NAME));
    assert_eq!(odd["name_bytes"], json!("6f646420ff0a1b5b324a"));

    for (arguments, bytes) in [
        (&["notes"][..], &b"one\ntwo\nthree\n"[..]),
        (&["/workspace/src/link", "--offset", "4"], b"two\nthree\n"),
        (&["notes", "--offset", "4", "--max-bytes", "3"], b"two"),
        (&["notes", "--offset", "1k"], b""),
    ] {
        let ended = shared.cli("cat", arguments.iter().copied()).finish();
        assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
        assert_eq!(ended.stdout, bytes);
    }
    let large = shared.cli("cat", ["src/deep/large"]).finish();
    assert!(large.stdout == vec![7; 300_000]);
    let mut unread = shared.cli("cat", ["src/deep/large"]).start();
    unread.close_stdout();
    assert_eq!(unread.finish().code(), 128 + 13);
    let odd = [b"cat".as_slice(), shared.id.as_bytes(), ODD_NAME];
    let ended = Vmcell::new(odd.map(OsStr::from_bytes)).finish();
    ended.assert_printed("odd");

    let stat = shared.cli("stat", ["src/link", "--sha256"]).finish();
    assert_eq!((stat.code(), stat.stderr.as_str()), (0, ""));
    assert!(stat.stdout().contains("size       14\n"), "{stat:?}");
    assert!(
        stat.stdout().contains("mode       0640 -rw-r-----\n"),
        "{stat:?}"
    );
    let link = shared
        .cli("stat", ["src/link", "--no-follow", "--json"])
        .finish();
    assert_eq!(link.json()["type"], json!("symlink"));
    assert_eq!(link.json()["target"], json!("../notes"));
    let digest = shared.cli("stat", ["notes", "--sha256", "--json"]).finish();
    let sum = shared.exec([], ["sha256sum", "/workspace/notes"]);
    let sum = sum.stdout().split(' ').next().unwrap();
    assert_eq!(digest.json()["sha256"], json!(sum));

    for (task, path, words) in [
        ("ls", "nothing", "/workspace/nothing"),
        ("cat", "nothing", "/workspace/nothing"),
        ("cat", "src", "/workspace/src"),
        ("stat", "nothing", "/workspace/nothing"),
        ("stat", "notes/below", "notes/below"),
    ] {
        shared.cli(task, [path]).finish().assert_failed(125, words);
    }
    let ended = shared.cli("stat", ["nothing", "--json"]).finish();
    assert_eq!(ended.json()["error"]["code"], json!("file"));
}
