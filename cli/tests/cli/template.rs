//! `vmcell template`, and VMs that start from templates.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{shared_vm::unique, user::User, vmcell::Vmcell};

const BOOT_ID: [&str; 2] = ["cat", "/proc/sys/kernel/random/boot_id"];

/// A cache folder with the images and the kernel of the user's, and templates of
/// its own.
pub(crate) struct OwnCache(TempDir);

impl OwnCache {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("vmcell");
        fs::create_dir(&cache).unwrap();
        let image = vmcell_rootfs::recipe::base().cached().unwrap().path;
        let user = image.ancestors().nth(2).unwrap();
        for name in ["images", "kernel"] {
            symlink(user.join(name), cache.join(name)).unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("vmcell/templates").join(name)
    }

    pub(crate) fn cli<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Vmcell {
        Vmcell::new(arguments).env("XDG_CACHE_HOME", self.0.path())
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let listed = self.cli(["template", "ls", "--json"]).finish().json();
        let templates = listed["templates"].as_array().unwrap().iter();
        let names = templates.map(|template| template["name"].as_str().unwrap().to_owned());
        names.collect()
    }
}

fn pushed(content: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("files");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("words"), content).unwrap();
    (folder, path)
}

fn make(cache: &OwnCache, files: &Path, script: &str) -> Value {
    let files = files.to_str().unwrap();
    let arguments = [
        "template", "make", "made", "--json", "--push", files, "--", "sh", "-c", script,
    ];
    let ended = cache.cli(arguments).finish();
    assert_eq!(ended.code(), 0, "{ended:?}");
    ended.json()
}

#[test]
fn warm_vms_are_different_ones() {
    let boot_ids = [0, 1].map(|_| {
        let ended = Vmcell::run(["--warm"], BOOT_ID).finish();
        assert_eq!((ended.code(), ended.stderr.as_str()), (0, ""));
        ended.stdout().to_owned()
    });
    assert!(boot_ids[0].len() > 30, "{boot_ids:?}");
    assert_ne!(boot_ids[0], boot_ids[1]);
}

#[test]
fn a_warm_shell_is_used_at_a_terminal() {
    let mut user = User::run(["shell", "--warm", "--", "sh", "-c", "echo in $(tty)"]);
    user.sees("in /dev/pts/");
    assert_eq!(user.finish().code, 0);
}

#[test]
fn a_template_is_made_once_and_again_if_what_it_is_made_of_changes() {
    let cache = OwnCache::new();
    let (_folder, files) = pushed("one\n");
    let script = "cat words >/root/copy; pwd";
    let first = make(&cache, &files, script);
    assert_eq!(
        (&first["name"], &first["made"]),
        (&json!("made"), &json!(true))
    );
    assert_eq!(first["path"], json!(cache.path("made").to_str().unwrap()));
    assert!(first["bytes"].as_u64() > Some(0) && first["seconds"].as_f64() > Some(0.0));
    let again = make(&cache, &files, script);
    assert_eq!(again["made"], json!(false));

    let run = |command| cache.cli(["run", "--from", "made", "--", "cat", command]);
    let ended = run("/workspace/words").finish();
    ended.assert_printed("one\n");
    fs::write(files.join("words"), "two\n").unwrap();
    assert_eq!(make(&cache, &files, script)["made"], json!(true));
    run("/root/copy").finish().assert_printed("two\n");
    assert_eq!(make(&cache, &files, "true")["made"], json!(true));
    assert_eq!(cache.names(), ["made"]);

    // Without `--json`, the output of the command is where it belongs.
    let files = files.to_str().unwrap();
    let ended = cache.cli(["template", "make", "other", "--push", files, "--", "pwd"]);
    ended.finish().assert_printed("/workspace\n");
    let restored = cache.cli(["restore", "--detach", "made"]).finish();
    assert_eq!((restored.code(), restored.stderr.as_str()), (0, ""));
    let id = restored.stdout().trim_end();
    Vmcell::new(["stop", id]).finish().assert_printed("");
}

#[test]
fn templates_are_listed_shown_and_removed() {
    let cache = OwnCache::new();
    for name in ["b", "a"] {
        let made = cache.cli(["template", "make", name, "-m", "256"]).finish();
        made.assert_printed("");
    }
    assert_eq!(cache.names(), ["a", "b"]);
    let listed = cache.cli(["template", "ls"]).finish();
    let rows: Vec<_> = listed.stdout().lines().collect();
    assert!(rows[0].starts_with("NAME") && rows[1].starts_with("a "));
    assert!(rows[1].contains("256 MiB") && rows[1].ends_with(".ext4"));
    let shown = cache.cli(["template", "inspect", "a"]).finish();
    let path = cache.path("a");
    assert!(shown.stdout().contains(path.to_str().unwrap()), "{shown:?}");
    let shown = cache.cli(["template", "inspect", "a", "--json"]).finish();
    let shown = shown.json();
    assert_eq!(
        (&shown["name"], &shown["vcpus"], &shown["memory_mib"]),
        (&json!("a"), &json!(1), &json!(256))
    );

    let removed = cache.cli(["template", "rm", "a", "none"]).finish();
    removed.assert_failed(125, "no template \"none\": `vmcell template ls` lists them");
    assert_eq!(cache.names(), ["b"]);
    let removed = cache.cli(["template", "rm", "b", "--json"]).finish();
    assert_eq!(removed.json(), json!({"removed": ["b"]}));
    let shown = cache.cli(["template", "inspect", "b"]).finish();
    shown.assert_failed(125, "`vmcell template ls` lists them");
    let ended = cache.cli(["run", "--from", "b", "--", "true"]).finish();
    ended.assert_failed(125, "`vmcell template ls` lists them");
}

#[test]
fn templates_that_nobody_uses_are_pruned() {
    let cache = OwnCache::new();
    let made = cache.cli(["template", "make", "old", "-m", "256"]).finish();
    made.assert_printed("");
    cache.cli(["template", "prune"]).finish().assert_printed("");
    assert_eq!(cache.names(), ["old"]);
    let pruned = cache.cli(["template", "prune", "--unused-days", "0", "--json"]);
    assert_eq!(pruned.finish().json()["removed"][0]["name"], "old");
    assert_eq!(cache.names(), [""; 0]);
}

#[test]
fn a_command_that_fails_leaves_no_template_and_its_code_is_passed_through() {
    let cache = OwnCache::new();
    let arguments = ["template", "make", "failed", "--", "sh", "-c"];
    let ended = cache.cli(arguments.into_iter().chain(["echo out; exit 37"]));
    let ended = ended.finish();
    assert_eq!((ended.code(), ended.stdout()), (37, "out\n"), "{ended:?}");
    assert!(
        ended.stderr.contains("exit code 37") && ended.stderr.contains("no template was made"),
        "{ended:?}"
    );
    let ended = cache.cli(["template", "make", "failed", "--", "/no/such/program"]);
    ended.finish().assert_failed(127, "/no/such/program");
    let ended = cache.cli([
        "template",
        "make",
        "failed",
        "--timeout-seconds",
        "1",
        "--",
        "sleep",
        "1000",
    ]);
    ended.finish().assert_failed(124, "timed out");
    assert_eq!(cache.names(), [""; 0]);
}

#[test]
fn a_name_that_no_template_can_have_is_answered_at_once() {
    let name = unique("bad name");
    let ended = Vmcell::new(["template", "make", &name]).finish();
    ended.assert_failed(125, "cannot be the name of a template");
    let ended = Vmcell::new(["template", "make", "auto-mine"]).finish();
    ended.assert_failed(125, "cannot be the name of a template");
    let ended = Vmcell::new(["template", "rm", "../images"]).finish();
    ended.assert_failed(125, "cannot be the name of a template");
    let ended = Vmcell::new(["template", "make", "x", "ubuntu"]).finish();
    ended.assert_failed(125, "`vmcell env list` lists them");
}

#[test]
fn services_of_a_template_go_on_in_its_vms() {
    let cache = OwnCache::new();
    let made = cache.cli([
        "template",
        "make",
        "web",
        "--service",
        "web=mkdir -p /srv; echo hello >/srv/page; exec httpd -f -p 8080 -h /srv",
        "--ready",
        "tcp:8080",
    ]);
    made.finish().assert_printed("");
    let fetch = ["wget", "-q", "-O", "-", "http://127.0.0.1:8080/page"];
    let run = ["run", "--from", "web", "--"].into_iter().chain(fetch);
    cache.cli(run).finish().assert_printed("hello\n");
    let failing = cache.cli([
        "template",
        "make",
        "bad",
        "--service",
        "bad=exit 3",
        "--ready",
        "tcp:9",
    ]);
    failing.finish().assert_failed(125, "bad");
    assert_eq!(cache.names(), ["web"]);
}
