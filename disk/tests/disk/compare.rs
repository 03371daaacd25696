use std::{
    collections::BTreeMap,
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, symlink},
    },
    path::PathBuf,
};

use vmcell_disk::{
    Comparison, DiffSide, Disk,
    DiskChangeKind::{self, *},
    DiskDiff, EntryKind, WalkOptions, image,
};
use vmcell_tree::patch::{ApplyOptions, Patch, TreeFile};

use crate::sample::{Sample, open, pattern};

fn diff(old: &Disk, new: &Disk) -> DiskDiff {
    let (old, new) = (DiffSide::disk(old, "/"), DiffSide::disk(new, "/"));
    Comparison::new(old, new).run().unwrap()
}

/// Returns the kinds and paths of all changes.
fn kinds(diff: &DiskDiff) -> Vec<(DiskChangeKind, String)> {
    assert_eq!(diff.problem_count(), 0, "{:?}", diff.problems());
    diff.changes()
        .iter()
        .map(|change| (change.kind(), change.path().to_str().unwrap().to_owned()))
        .collect()
}

fn patch(diff: &DiskDiff) -> Vec<u8> {
    let mut patch = Vec::new();
    diff.write_patch(&mut patch).unwrap();
    patch
}

/// Returns `debugfs` commands that make one change of every kind.
fn commands(sample: &Sample) -> String {
    let main = sample.file("main", b"fn main() {\n    println!(\"goodbye\");\n}\n");
    let new = sample.file("new", b"one\ntwo\n");
    let binary = sample.file("binary", &pattern(5000));
    [
        "rm /etc/secret.conf",
        "rm /src/deep/er/lib.rs",
        &format!("write {main} /src/deep/er/lib.rs"),
        "sif /src/deep/er/lib.rs mode 0100640",
        "mkdir /made",
        &format!("write {new} /made/new"),
        &format!("write {binary} /made/binary"),
        "sif /bin/tool mode 0100700",
        "sif /many/0007 uid 1000",
        "rm /etc/relative",
        "symlink /etc/relative group",
        "rm /src/empty",
        "mkdir /src/empty",
        "",
    ]
    .join("\n")
}

fn owned(expected: &[(DiskChangeKind, &str)]) -> Vec<(DiskChangeKind, String)> {
    expected
        .iter()
        .map(|(kind, path)| (*kind, (*path).to_owned()))
        .collect()
}

const EXPECTED: [(DiskChangeKind, &str); 9] = [
    (ModeChanged, "bin/tool"),
    (Modified, "etc/relative"),
    (Removed, "etc/secret.conf"),
    (Added, "made"),
    (Added, "made/binary"),
    (Added, "made/new"),
    (OwnerChanged, "many/0007"),
    (Modified, "src/deep/er/lib.rs"),
    (TypeChanged, "src/empty"),
];

#[test]
fn a_child_differs_from_its_base_by_what_was_changed() {
    let sample = Sample::new();
    let commands = commands(&sample);
    let (base, child) = (sample.open(), open(&sample.child(&commands)));
    assert_eq!(child.layers().unwrap().len(), 2);
    let by_layers = diff(&base, &child);
    assert_eq!(kinds(&by_layers), owned(&EXPECTED));

    // A copy shares no blocks, so everything is read, with the same result.
    let copy = open(&sample.changed("copy.ext4", &commands));
    let by_bytes = diff(&base, &copy);
    assert_eq!(kinds(&by_bytes), owned(&EXPECTED));
    assert_eq!(patch(&by_layers), patch(&by_bytes));

    // The same in the other direction. A disk does not differ from itself.
    assert_eq!(diff(&child, &base).changes().len(), EXPECTED.len());
    assert!(diff(&child, &child).is_empty());
    let empty = sample.path("empty.qcow2");
    let options = image::OpenOptions::new();
    image::create_child(sample.image(), &empty, options.clone()).unwrap();
    assert!(diff(&base, &open(&empty)).is_empty());
}

/// Returns the files and symlinks of a disk, as patches see them.
fn tree(disk: &Disk) -> BTreeMap<PathBuf, TreeFile> {
    let mut files = BTreeMap::new();
    for entry in disk.walk("/", WalkOptions::new()).unwrap() {
        let entry = entry.unwrap();
        let file = match (entry.kind, entry.target) {
            (EntryKind::File, _) => TreeFile {
                mode: 0o100_000 | entry.mode,
                content: disk.read(&entry.path).unwrap(),
            },
            (EntryKind::Symlink, Some(target)) => TreeFile {
                mode: 0o120_000,
                content: target.as_os_str().as_bytes().to_vec(),
            },
            _ => continue,
        };
        files.insert(entry.path, file);
    }
    files
}

#[test]
fn the_patch_makes_the_one_tree_the_other() {
    let sample = Sample::new();
    // Patches contain neither binary files nor owners.
    let is_for_patches = |line: &&str| !line.contains("binary") && !line.contains("uid");
    let commands = commands(&sample);
    let commands: Vec<_> = commands.lines().filter(is_for_patches).collect();
    let child = sample.child(&(commands.join("\n") + "\n"));
    let (base, child) = (sample.open(), open(&child));
    let text = patch(&diff(&base, &child));
    let patch = Patch::parse(&text).unwrap();
    let mut patched = tree(&base);
    for (path, file) in patch.apply(&patched, ApplyOptions::default()).unwrap() {
        match file {
            Some(file) => patched.insert(path, file),
            None => patched.remove(&path),
        };
    }
    assert!(patched == tree(&child));
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("-//! A library.\n+fn main() {\n"), "{text}");
}

#[test]
fn a_disk_is_compared_with_a_folder() {
    let sample = Sample::new();
    let disk = sample.open();
    let compare = || {
        let (old, new) = (DiffSide::folder(sample.tree()), DiffSide::disk(&disk, "/"));
        let comparison = Comparison::new(old, new).exclude("/lost+found/");
        kinds(&comparison.run().unwrap())
    };
    assert_eq!(compare(), []);

    let at = |path: &str| sample.tree().join(path);
    fs::write(at("many/0003"), "three\n").unwrap();
    fs::write(at("many/0004"), "5\n").unwrap();
    fs::write(at("added"), "").unwrap();
    fs::remove_file(at("round")).unwrap();
    symlink("square", at("round")).unwrap();
    fs::set_permissions(at("src/main.rs"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_dir(at("nothing")).unwrap();
    let expected = [
        (Removed, "added"),
        (Modified, "many/0003"),
        (Modified, "many/0004"),
        (Added, "nothing"),
        (Modified, "round"),
        (ModeChanged, "src/main.rs"),
        (ModeChanged, "src/same.rs"),
    ];
    assert_eq!(compare(), owned(&expected));
}

#[test]
fn parts_of_disks_are_compared_and_filters_hold() {
    let sample = Sample::new();
    let (base, child) = (sample.open(), open(&sample.child(&commands(&sample))));
    let comparison = || {
        let (old, new) = (DiffSide::disk(&base, "src"), DiffSide::disk(&child, "/src"));
        Comparison::new(old, new)
    };
    let all = kinds(&comparison().run().unwrap());
    let expected = [(Modified, "deep/er/lib.rs"), (TypeChanged, "empty")];
    assert_eq!(all, owned(&expected));
    let some = comparison().include("*.rs").run().unwrap();
    assert_eq!(kinds(&some).len(), 1);

    let code = |side| {
        let comparison = Comparison::new(side, DiffSide::folder(sample.tree()));
        comparison.run().unwrap_err().code()
    };
    assert_eq!(code(DiffSide::disk(&base, "no")), "not-found");
    assert_eq!(code(DiffSide::disk(&base, "etc/passwd")), "wrong-kind");
    assert_eq!(code(DiffSide::folder(sample.path("no"))), "not-found");
}
