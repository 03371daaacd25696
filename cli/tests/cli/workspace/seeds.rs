//! What fills `/workspace`, when a workspace is created and later.

use std::{fs, path::PathBuf};

use serde_json::json;

use super::{Store, text_of};
use crate::vmcell::Vmcell;

/// How the names of archives end.
const ENDINGS: [&str; 4] = ["tar", "tar.gz", "tgz", "tar.zst"];

#[test]
fn archives_fill_a_workspace_before_it_is_there_and_later() {
    let store = Store::new();
    let folder = tempfile::tempdir().unwrap();
    let folder = fs::canonicalize(folder.path()).unwrap();
    let id = store.create([]);
    let line = "mkdir -p tree/src; echo packed > tree/src/file";
    store.exec(&id, line).assert_printed("");
    let pack = |ending: &str| -> PathBuf {
        let path = folder.join(format!("seed.{ending}"));
        let tree = format!("{id}:tree");
        let packing = Vmcell::new(["cp", "--archive", &tree, text_of(&path)]);
        packing.finish().assert_printed("");
        path
    };
    for ending in ENDINGS {
        let path = pack(ending);
        let create = ["create", "--mem-mib", "128", "--seed-path", text_of(&path)];
        let created = store.json(create);
        let seed = json!({
            "mode": "archive",
            "path": text_of(&path),
            "entries": 2,
            "bytes": 7,
        });
        assert_eq!(created["workspace_seed"], seed, "{created}");
        assert_eq!(created["state"], "running");
        let seeded = created["workspace_id"].as_str().unwrap();
        assert_eq!(store.json(["status", seeded])["workspace_seed"], seed);
        store
            .exec(seeded, "cat src/file")
            .assert_printed("packed\n");
        // It is the baseline.
        assert_eq!(store.text(["diff", seeded]), "");
        store.delete(seeded);

        let to = format!("/workspace/{ending}");
        let push = ["sync", "push", &id, text_of(&path), "--dest", &to];
        let pushed = store.json(push);
        assert_eq!(
            (&pushed["bytes"], &pushed["destination"]),
            (&7.into(), &(*to).into())
        );
        let line = format!("cat {ending}/src/file");
        store.exec(&id, &line).assert_printed("packed\n");
    }

    let path = pack("tar");
    store.text(["stop", &id]);
    let pushed = store.cli(["sync", "push", &id, text_of(&path)]).finish();
    pushed.assert_failed(125, "start it first");
    store.text(["delete", &id]);
    store.assert_empty();
}

#[test]
fn a_directory_and_nothing_are_seeds_too() {
    let store = Store::new();
    let folder = tempfile::tempdir().unwrap();
    let folder = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir(folder.join("src")).unwrap();
    fs::write(folder.join("src/file"), "copied\n").unwrap();
    let create = ["create", "--mem-mib", "128"];
    let seed = ["--seed-path", text_of(&folder)];
    let created = store.json(create.into_iter().chain(seed));
    let expected = json!({
        "mode": "directory",
        "path": text_of(&folder),
        "entries": 2,
        "bytes": 7,
    });
    assert_eq!(created["workspace_seed"], expected);
    let id = created["workspace_id"].as_str().unwrap();
    let text = store.text(["status", id]);
    let seed = format!("seed         {} (entries: 2, ", text_of(&folder));
    assert!(text.contains(&seed), "{text}");
    store.exec(id, "cat src/file").assert_printed("copied\n");

    let created = store.json(create);
    let expected = json!({ "mode": "empty", "path": null, "entries": 0, "bytes": 0 });
    assert_eq!(created["workspace_seed"], expected);
    let empty = created["workspace_id"].as_str().unwrap();
    store.exec(empty, "ls -A").assert_printed("");
    store.delete(empty);
    store.delete(id);
    store.assert_empty();
}
