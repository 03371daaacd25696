//! `vmcell env`, and VMs that boot images of containers.

mod booted_tree;
mod build;
mod registry;

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::vmcell::Vmcell;

/// A folder with an image of a container, and a cache and a state of its own.
struct Store(TempDir);

impl Store {
    fn new() -> Self {
        let store = Self(tempfile::tempdir().unwrap());
        let base = vmcell_rootfs::recipe::base().cached().unwrap().path;
        let user = base.ancestors().nth(2).unwrap();
        let cache = store.0.path().join("cache/vmcell");
        fs::create_dir_all(&cache).unwrap();
        symlink(user.join("kernel"), cache.join("kernel")).unwrap();
        store.umoci(&["init", "--layout", "image"]);
        store.umoci(&["new", "--image", "image:empty"]);
        store
    }

    fn cli<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Vmcell {
        Vmcell::new(arguments)
            .current_dir(self.0.path())
            .env("XDG_CACHE_HOME", self.0.path().join("cache"))
            .env("XDG_STATE_HOME", self.0.path().join("state"))
    }

    fn umoci(&self, arguments: &[&str]) {
        let output = Command::new("umoci")
            .args(arguments)
            .current_dir(self.0.path())
            .output()
            .expect("`make vsock` installs what the tests need, umoci, too");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
    }

    /// Makes an image of what a function puts into its tree.
    fn image(&self, tag: &str, fill: impl FnOnce(&Path), config: &[&str]) {
        let (image, bundle) = (format!("image:{tag}"), format!("bundle-{tag}"));
        let mut unpack = vec!["unpack", "--image", "image:empty", &bundle];
        if !rustix::process::geteuid().is_root() {
            unpack.insert(1, "--rootless");
        }
        self.umoci(&unpack);
        fill(&self.0.path().join(&bundle).join("rootfs"));
        self.umoci(&["repack", "--image", &image, &bundle]);
        let config = config.iter().copied();
        let arguments: Vec<_> = ["config", "--image", &image]
            .into_iter()
            .chain(config)
            .collect();
        self.umoci(&arguments);
    }

    fn list(&self) -> Vec<Value> {
        let listed = self.cli(["env", "list", "--json"]).finish().json();
        listed["environments"].as_array().unwrap().clone()
    }
}

fn busybox() -> String {
    std::env::var("VMCELL_BUSYBOX").unwrap_or("/bin/busybox".to_owned())
}

fn with_shell(root: &Path) {
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::copy(busybox(), root.join("bin/busybox")).unwrap();
    fs::hard_link(root.join("bin/busybox"), root.join("bin/sh")).unwrap();
    symlink("/bin/busybox", root.join("bin/cat")).unwrap();
}

#[test]
fn an_image_is_imported_and_runs_as_it_says() {
    let store = Store::new();
    let print = "--config.cmd=busybox id -u; pwd; echo $WORD";
    let config = [
        "--config.user=65534",
        "--config.workingdir=/srv/data",
        "--config.env=WORD=from the image",
        "--config.entrypoint=/bin/sh",
        "--config.entrypoint=-c",
        print,
        "--config.exposedports=80/tcp",
    ];
    store.image("one", with_shell, &config);
    let imported = store
        .cli(["env", "import", "oci:image:one", "shell"])
        .finish();
    imported.assert_printed("shell\n");
    let ran = store.cli(["run", "shell", "--mem-mib", "128"]).finish();
    ran.assert_printed("65534\n/srv/data\nfrom the image\n");
    // The entrypoint stays.
    let line = "busybox id -u; pwd; echo $WORD";
    let options = ["--user", "0", "--cwd", "/", "-e", "WORD=mine"];
    let arguments = ["run", "oci:image:one", "--mem-mib", "128"].into_iter();
    let ran = store
        .cli(arguments.chain(options).chain(["--", line]))
        .finish();
    ran.assert_printed("0\n/\nmine\n");

    let entry = store.list().into_iter().find(|it| it["name"] == "shell");
    let entry = entry.unwrap();
    assert_eq!(entry["kind"], "imported", "{entry}");
    assert!(entry["digest"].as_str().unwrap().starts_with("sha256:"));
    assert!(entry["unpacked_bytes"].as_u64() > Some(500_000), "{entry}");
    assert!(entry["last_used"].is_string(), "{entry}");
    assert_eq!(entry["defaults"]["exposed_ports"][0], "80/tcp");
    let shown = store.cli(["env", "inspect", "shell"]).finish();
    assert!(shown.stdout().contains("/srv/data"), "{shown:?}");
}

#[test]
fn images_with_hardly_anything_boot() {
    let store = Store::new();
    let only_program = |root: &Path| {
        fs::copy(busybox(), root.join("busybox")).unwrap();
    };
    store.image("scratch", only_program, &["--config.entrypoint=/busybox"]);
    let ran = store.cli([
        "run",
        "oci:image:scratch",
        "--mem-mib",
        "128",
        "--",
        "echo",
        "alone",
    ]);
    ran.finish().assert_printed("alone\n");
    let none = store
        .cli(["run", "oci:image:empty", "--mem-mib", "128"])
        .finish();
    assert_eq!(none.status.code(), Some(2), "{none:?}");
    assert!(none.stderr.contains("no command: the image has none"));
}

#[test]
fn what_is_needed_stays_and_the_rest_is_pruned() {
    let store = Store::new();
    store.image("one", with_shell, &["--config.cmd=/bin/sh"]);
    let import = ["env", "import", "oci:image:one", "one", "--json"];
    let first = store.cli(import).finish().json();
    let path = |entry: &Value| entry["path"].as_str().unwrap().to_owned();
    // Two names of one image.
    store
        .cli(["env", "import", "oci:image:one", "other"])
        .finish();
    store
        .cli(["env", "remove", "one"])
        .finish()
        .assert_printed("one\n");
    assert!(Path::new(&path(&first)).exists());
    let created = [
        "workspace",
        "create",
        "other",
        "--mem-mib",
        "128",
        "--id-only",
    ];
    let id = store.cli(created).finish().stdout().trim().to_owned();
    store.cli(["env", "remove", "other"]).finish();
    let pruned = store.cli(["env", "prune", "--json"]).finish().json();
    assert_eq!(pruned["bytes"], 0, "{pruned}");
    assert!(Path::new(&path(&first)).exists());
    store.cli(["workspace", "delete", &id]).finish();
    let pruned = store.cli(["env", "prune", "--json"]).finish().json();
    assert!(pruned["bytes"].as_u64() > Some(500_000), "{pruned}");
    assert!(!Path::new(&path(&first)).exists());

    for (arguments, said) in [
        (&["env", "import", "oci:nowhere", "x"][..], "index.json"),
        (
            &["env", "import", "oci:image:one", "debian"],
            "cannot be the name",
        ),
        (
            &["env", "import", "oci:image:one", "../x"],
            "cannot be the name",
        ),
        (&["env", "import", "image", "x"], "is no source"),
        (&["env", "inspect", "one"], "is called"),
        (&["env", "remove", "one"], "is called"),
        (&["env", "remove", "base"], "is called"),
        (
            &["run", "one", "--", "true"],
            "`vmcell env list` lists them",
        ),
    ] {
        let ended = store.cli(arguments.iter().copied()).finish();
        ended.assert_failed(125, said);
    }
    let left = fs::read_dir(store.0.path().join("cache/vmcell/images")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        left.iter()
            .all(|name| !name.to_string_lossy().ends_with(".ext4")),
        "{left:?}"
    );
}
