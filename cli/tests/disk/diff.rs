//! `vmcell-disk diff`.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
};

use serde_json::json;

use crate::{
    program::{Ended, disk},
    sample::{Sample, run, tool},
};

/// A sample, and an image of a tree that differs from it.
struct Pair {
    sample: Sample,
    new: PathBuf,
}

impl Pair {
    fn new() -> Self {
        let sample = Sample::new();
        let tree = sample.path("later");
        run(tool("cp").arg("-a").arg(sample.tree()).arg(&tree));
        fs::write(tree.join("src/same.rs"), "fn main() {\n    goodbye();\n}\n").unwrap();
        fs::remove_file(tree.join("src/empty")).unwrap();
        fs::write(tree.join("src/added"), "new\nlines").unwrap();
        fs::remove_file(tree.join("link")).unwrap();
        symlink("etc/secret.conf", tree.join("link")).unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(tree.join("src/deep/er/lib.rs"), mode).unwrap();
        fs::create_dir(tree.join("empty")).unwrap();
        let new = sample.make(&tree, "later.ext4");
        Self { sample, new }
    }

    fn diff(&self, more: &[&str]) -> Ended {
        let image = self.sample.image();
        let first = ["diff".as_ref(), image.as_os_str(), self.new.as_os_str()];
        disk(
            first
                .into_iter()
                .chain(more.iter().map(std::ffi::OsStr::new)),
        )
    }
}

#[test]
fn a_patch_makes_the_one_tree_the_other() {
    let pair = Pair::new();
    let ended = pair.diff(&[]);
    // A patch cannot represent a new empty directory.
    ended.assert_failed(1, "not in the patch: 1 (--name-status lists them)");
    let patch = pair.sample.path("changes.patch");
    fs::write(&patch, &ended.0.stdout).unwrap();
    let image = pair.sample.image();
    let out = pair.sample.path("out");
    let from = ["export".as_ref(), image.as_os_str(), "/".as_ref()];
    disk(from.into_iter().chain([out.as_os_str()]));
    run(tool("git")
        .args(["apply", "--whitespace=nowarn"])
        .arg(&patch)
        .current_dir(&out));

    let new = pair.new.as_os_str();
    let rest = disk([
        "diff".as_ref(),
        out.as_os_str(),
        new,
        "--name-status".as_ref(),
    ]);
    assert_eq!(rest.stdout(), "A empty\nA pipe\n", "{rest:?}");
}

#[test]
fn patch_applies_it_too() {
    let pair = Pair::new();
    // patch(1) asks before it removes an empty file.
    let ended = pair.diff(&["/src", "--exclude", "/empty"]);
    assert_eq!(ended.code(), 1);
    let patch = pair.sample.path("changes.patch");
    fs::write(&patch, &ended.0.stdout).unwrap();
    let tree = pair.sample.tree().join("src");
    let input = fs::File::open(patch).unwrap();
    run(tool("patch")
        .args(["-p1", "-s"])
        .current_dir(&tree)
        .stdin(input));
    fs::remove_file(tree.join("empty")).unwrap();
    let later = pair.sample.path("later/src");
    run(tool("diff").arg("-r").arg(tree).arg(later));
}

#[test]
fn changes_are_named_or_counted_if_asked_for() {
    let pair = Pair::new();
    let named = pair.diff(&["--name-status"]);
    assert_eq!((named.code(), named.stderr().as_str()), (1, ""));
    let expected = "\
A empty
M link
A src/added
M src/deep/er/lib.rs (mode 0640 -> 0755)
D src/empty
M src/main.rs
M src/same.rs
";
    assert_eq!(named.stdout(), expected);
    let some = pair.diff(&["--name-status", "--exclude", "/src/"]);
    assert_eq!(some.stdout(), "A empty\nM link\n");
    let counted = pair.diff(&["--stat", "/src"]);
    let expected = [
        " added          |    2 ++",
        " deep/er/lib.rs |    0",
        " empty          |    0",
        " main.rs        |    2 +-",
        " same.rs        |    2 +-",
        " 5 files changed, 4 insertions(+), 2 deletions(-)",
    ];
    assert_eq!(counted.stdout().lines().collect::<Vec<_>>(), expected);
}

#[test]
fn machines_get_an_object_for_each_change() {
    let pair = Pair::new();
    let ended = pair.diff(&["--json", "/src"]);
    assert_eq!((ended.code(), ended.stderr().as_str()), (1, ""));
    let parsed = ended.json();
    assert_eq!(parsed.len(), 5);
    assert_eq!(parsed[0]["path"], json!("added"));
    assert_eq!(parsed[0]["change"], json!("added"));
    assert_eq!(parsed[1]["change"], json!("mode-changed"));
    assert!(
        parsed[3]["patch"]
            .as_str()
            .unwrap()
            .contains("+    goodbye();")
    );
}

#[test]
fn what_is_the_same_prints_nothing() {
    let sample = Sample::new();
    let (image, tree) = (sample.image(), sample.tree());
    let same = |other: &std::path::Path, more: &[&str]| {
        let first = ["diff".as_ref(), image.as_os_str(), other.as_os_str()];
        disk(
            first
                .into_iter()
                .chain(more.iter().map(std::ffi::OsStr::new)),
        )
    };
    assert_eq!(same(&image, &[]).printed(), "");
    assert_eq!(same(&tree, &["--exclude", "/lost+found/"]).printed(), "");
    assert_eq!(same(&tree.join("src"), &["/src"]).printed(), "");
    same(&sample.path("no"), &[]).assert_failed(125, "check the path");
    same(&image, &["/nowhere"]).assert_failed(125, "nothing at /nowhere");
    let folders = disk(["diff".as_ref(), tree.as_os_str(), tree.as_os_str()]);
    folders.assert_failed(125, "`diff -r`");
}

#[test]
fn an_owner_is_part_of_what_differs() {
    let sample = Sample::new();
    let new = sample.changed("new.ext4", "set_inode_field /etc/group uid 77\n");
    let image = sample.image();
    let diff = |more: &[&str]| {
        let first = ["diff".as_ref(), image.as_os_str(), new.as_os_str()];
        disk(
            first
                .into_iter()
                .chain(more.iter().map(std::ffi::OsStr::new)),
        )
    };
    let named = diff(&["--name-status"]).stdout();
    assert!(named.starts_with("M etc/group (owner "), "{named}");
    assert_eq!(
        diff(&["--json"]).json()[0]["change"],
        json!("owner-changed")
    );
    assert_eq!(diff(&["--ignore-owners"]).printed(), "");
}
