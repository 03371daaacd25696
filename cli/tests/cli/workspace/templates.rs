//! Templates and images of workspaces.

use super::{ENOUGH, Store, text_of};
use crate::{
    template::OwnCache,
    vmcell::{Ended, Vmcell},
};

#[test]
fn the_vm_of_a_workspace_is_saved_as_a_template_and_not_needed_any_more() {
    let (store, cache) = (Store::new(), OwnCache::new());
    let cli = |words: &[&str]| -> Ended {
        let cli = cache.cli(words.iter().copied());
        cli.env("XDG_STATE_HOME", store.state.path()).finish()
    };
    let id = store.create(["--name", "work"]);
    let line = "echo disk > file; echo memory > /dev/shm/file";
    store.exec(&id, line).assert_printed("");
    // The disk has layers of its own then.
    store.text(["snapshot", "create", &id, "one"]);
    store.exec(&id, "echo later >> file").assert_printed("");

    let saved = cli(&["template", "save", "mine", "work", "--json"]);
    assert_eq!(saved.code(), 0, "{saved:?}");
    let saved = saved.json();
    assert_eq!(
        (&saved["name"], &saved["memory_mib"]),
        (&"mine".into(), &128.into())
    );
    assert!(saved["bytes"].as_u64().unwrap() > 1 << 20, "{saved}");
    let shown = cli(&["template", "inspect", "mine", "--json"]).json();
    assert_eq!(shown["bytes"], saved["bytes"]);
    // The workspace goes on.
    store.exec(&id, "echo own >> file").assert_printed("");
    for (name, words) in [
        ("mine", "there is a template \"mine\""),
        ("auto-mine", "cannot be the name of a template"),
    ] {
        let again = cli(&["template", "save", name, "work"]);
        again.assert_failed(125, words);
    }
    let keeper = store.keeper(&id);
    let ended = cli(&["template", "save", "last", "work", "--end", "--compress"]);
    ended.assert_printed("");
    assert!(keeper.ends_within(ENOUGH));
    assert_eq!(store.json(["status", &id])["state"], "stopped");
    store.text(["delete", &id]);
    store.assert_empty();

    let run = |name: &str| {
        let line = "cat /workspace/file /dev/shm/file; echo copy >> /workspace/file";
        cli(&["run", "--from", name, "--", "sh", "-c", line])
    };
    for _ in 0..2 {
        run("mine").assert_printed("disk\nlater\nmemory\n");
    }
    run("last").assert_printed("disk\nlater\nown\nmemory\n");
    cli(&["template", "prune"]).assert_printed("");
    assert_eq!(cache.names(), ["last", "mine"]);
    cli(&["template", "rm", "mine", "last"]).assert_printed("");
    run("mine").assert_failed(125, "there is no template");
}

#[test]
fn an_image_of_the_disk_boots_and_has_nothing_of_the_memory() {
    let store = Store::new();
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image.ext4");
    let id = store.create([]);
    let line = "echo disk > file; echo system > /etc/mark; touch /dev/shm/mark";
    store.exec(&id, line).assert_printed("");
    store.text(["snapshot", "create", &id, "one"]);
    store.text(["stop", &id]);
    let export = ["disk", "export", &id, "--output", text_of(&image)];
    let exported = store.json(export);
    assert_eq!(exported["size"], image.metadata().unwrap().len());
    store.text(["delete", &id]);

    let line = "cat /workspace/file /etc/mark; ls /dev/shm";
    let run = ["run", "--mem-mib", "128", text_of(&image), "--"];
    let run = run.into_iter().chain(["sh", "-c", line]);
    Vmcell::new(run).finish().assert_printed("disk\nsystem\n");
    let create = ["create", text_of(&image), "--mem-mib", "128", "--id-only"];
    let id = store.text(create);
    let id = id.trim_end();
    store.exec(id, line).assert_printed("disk\nsystem\n");
    store.delete(id);
    store.assert_empty();
}
