use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use vmcell_disk::{DiskProblem, Entry, EntryKind, Find, WalkOptions};

use crate::sample::{Sample, has_xattrs, open};

/// Returns all entries below a directory of the host, by relative path.
fn expected(folder: &Path) -> BTreeMap<PathBuf, fs::Metadata> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), metadata);
        }
    }
    found
}

fn collect_entries(entries: impl Iterator<Item = Result<Entry, DiskProblem>>) -> Vec<Entry> {
    entries
        .map(|entry| entry.unwrap_or_else(|problem| panic!("{problem:?}")))
        .filter(|entry| !entry.path.starts_with("lost+found"))
        .collect()
}

#[test]
fn a_walk_tells_what_the_tree_has_that_the_image_was_made_of() {
    for options in [
        ["-t", "ext4", "-b", "4096"],
        ["-t", "ext4", "-b", "1024"],
        ["-t", "ext2", "-b", "2048"],
        ["-t", "ext3", "-b", "1024"],
    ] {
        let sample = Sample::with(&options);
        let disk = sample.open();
        let entries = collect_entries(disk.walk("/", WalkOptions::new()).unwrap());
        let expected = expected(&sample.tree());
        let paths: Vec<_> = entries.iter().map(|entry| entry.path.clone()).collect();
        let mut sorted = paths.clone();
        sorted.sort();
        assert_eq!(paths, sorted, "in the order of names");
        assert_eq!(sorted, expected.keys().cloned().collect::<Vec<_>>());
        for entry in entries {
            let metadata = &expected[&entry.path];
            let path = &entry.path;
            assert_eq!(entry.mode, metadata.mode() & 0o7777, "{path:?}");
            let owner = (metadata.uid(), metadata.gid());
            assert_eq!((entry.uid, entry.gid), owner, "{path:?}");
            if entry.kind != EntryKind::Directory {
                assert_eq!(entry.size, metadata.size(), "{path:?}");
                assert_eq!(u64::from(entry.links), metadata.nlink(), "{path:?}");
            }
            // `mke2fs` only copies whole seconds on all file systems.
            let modified = entry.modified.duration_since(SystemTime::UNIX_EPOCH);
            let seconds = i64::try_from(modified.unwrap().as_secs()).unwrap();
            assert_eq!(seconds, metadata.mtime(), "{path:?}");
            let target = fs::read_link(sample.tree().join(path)).ok();
            assert_eq!(entry.target, target, "{path:?}");
        }
    }
}

#[test]
fn without_an_order_the_same_entries_come() {
    let disk = Sample::new().open();
    let sorted = collect_entries(disk.walk("/", WalkOptions::new()).unwrap());
    let mut unsorted = collect_entries(disk.walk("/", WalkOptions::new().unsorted()).unwrap());
    unsorted.sort_by(|first, second| first.path.cmp(&second.path));
    assert_eq!(sorted, unsorted);
}

#[test]
fn patterns_depth_and_top_choose_what_is_told() {
    let disk = Sample::new().open();
    let paths = |path: &str, walk: WalkOptions| -> Vec<String> {
        collect_entries(disk.walk(path, walk).unwrap())
            .iter()
            .map(|entry| entry.path.to_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        paths("/src", WalkOptions::new().glob("**/*.rs")),
        ["src/deep/er/lib.rs", "src/main.rs", "src/same.rs"]
    );
    assert_eq!(
        paths(
            "src",
            WalkOptions::new().with_top().depth(1).exclude("*.rs")
        ),
        ["src", "src/deep", "src/empty"]
    );
    assert_eq!(
        paths("src", WalkOptions::new().include("lib.rs")),
        ["src/deep/er/lib.rs"]
    );
    assert_eq!(paths("etc/passwd", WalkOptions::new()), ["etc/passwd"]);
    assert_eq!(paths("src", WalkOptions::new().depth(0)), [""; 0]);
    let in_root = disk.list("").unwrap();
    let is_name = |entry: &Entry| entry.path.components().count() == 1;
    assert!(in_root.iter().all(is_name));
    assert_eq!(disk.glob("many/00?7").unwrap().len(), 10);
    let error = disk.walk("/", WalkOptions::new().glob("[")).unwrap_err();
    assert_eq!(error.code(), "invalid");
}

#[test]
fn owners_have_the_names_that_the_disk_gives_them() {
    let sample = Sample::new();
    let commands = "sif /src/main.rs uid 1000\nsif /src/main.rs gid 1000\n";
    let disk = open(&sample.changed("owned.ext4", commands));
    let entry = disk.stat("/src/main.rs").unwrap();
    assert_eq!(entry.owner.as_deref(), Some("alice"));
    assert_eq!(entry.group.as_deref(), Some("users"));
    let without = WalkOptions::new().without_names().glob("src/main.rs");
    let entries = collect_entries(disk.walk("/", without).unwrap());
    assert_eq!((&entries[0].owner, entries[0].uid), (&None, 1000));
}

#[test]
fn find_goes_by_name_kind_size_and_time() {
    let disk = Sample::new().open();
    let names = |find: Find| -> Vec<String> {
        collect_entries(disk.find("/", find).unwrap())
            .iter()
            .map(|entry| entry.path.to_str().unwrap_or("?").to_owned())
            .collect()
    };
    assert_eq!(names(Find::new().name("*.conf")), ["etc/secret.conf"]);
    assert_eq!(
        names(Find::new().kind(EntryKind::Fifo).kind(EntryKind::Symlink)),
        [
            "absolute",
            "data/long-link",
            "etc/relative",
            "pipe",
            "round",
            "src/deep/up"
        ]
    );
    assert_eq!(
        names(Find::new().kind(EntryKind::File).size(1_000_000..)),
        ["data/large", "data/sparse", "large-too"]
    );
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    assert_eq!(
        names(Find::new().modified(..=time)),
        ["src/main.rs", "src/same.rs"]
    );
    let within = WalkOptions::new().exclude("many/");
    assert_eq!(names(Find::new().name("00*").within(within)), [""; 0]);
}

#[test]
fn details_have_the_other_times_and_the_names_of_attributes() {
    let sample = Sample::new();
    let disk = sample.open();
    let details = disk.details("src/main.rs").unwrap();
    assert_eq!(details.entry, disk.stat("src/main.rs").unwrap());
    assert!(details.created.is_some());
    assert!(details.changed > details.entry.modified);
    if !has_xattrs(&sample.tree()) {
        eprintln!("skipped the attributes: the host's file system has none");
        return;
    }
    assert_eq!(details.xattrs, [b"user.colour"]);
    let value = |path, name: &[u8]| {
        let attributes = disk.xattrs(path).unwrap().into_iter().map(Result::unwrap);
        let mut named = attributes.filter(|attribute| attribute.name == name);
        named.next().unwrap().value
    };
    assert_eq!(value("src/main.rs", b"user.colour"), b"blue");
    assert_eq!(value("/src/", b"user.kind"), [7; 700]);
}
