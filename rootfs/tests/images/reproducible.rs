//! Equal trees give equal bytes, regardless of where and in which order they were created.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use vmcell_rootfs::{Content, Image, ImageBuilder, Size, Tree};

use crate::inspect::{Inspect, assert_identical};

#[derive(Clone, Copy)]
enum Order {
    Forwards,
    Backwards,
}

/// Creates a tree with entries of every kind, in one of two orders of creation.
fn populate(root: &Path, order: Order) {
    let mut steps: Vec<Box<dyn Fn()>> = Vec::new();
    for index in 0..60_u32 {
        let path = root.join(format!("many/file {index}"));
        let content = format!("{index}\n").repeat(index as usize * 40);
        steps.push(Box::new(move || write(&path, content.as_bytes())));
    }
    for name in [
        "Zoë",
        "zoe",
        "a b",
        "a-b",
        "a",
        "<7>",
        "q\"uote",
        "new\nline",
    ] {
        let path = root.join("names").join(name);
        steps.push(Box::new(move || write(&path, name.as_bytes())));
    }
    let old = root.join("old");
    steps.push(Box::new(move || {
        write(&old, b"old");
        let date = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
        File::options()
            .write(true)
            .open(&old)
            .unwrap()
            .set_modified(date)
            .unwrap();
    }));
    let not_utf8 = root.join(OsStr::from_bytes(b"\xff\xfe"));
    steps.push(Box::new(move || write(&not_utf8, b"")));
    let empty = root.join("empty/deep/er");
    steps.push(Box::new(move || fs::create_dir_all(&empty).unwrap()));
    let link = root.join("link");
    steps.push(Box::new(move || symlink("many/file 3", &link).unwrap()));
    let sparse = root.join("sparse");
    steps.push(Box::new(move || sparse_file(&sparse)));
    let program = root.join("program");
    steps.push(Box::new(move || {
        write(&program, b"#!/bin/sh\n");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    }));

    if let Order::Backwards = order {
        steps.reverse();
    }
    steps.iter().for_each(|step| step());

    // Either of the two names of one file may be created first.
    let (first, second) = match order {
        Order::Forwards => ("hard-1", "hard-2"),
        Order::Backwards => ("hard-2", "hard-1"),
    };
    write(&root.join(first), b"hard");
    fs::hard_link(root.join(first), root.join(second)).unwrap();
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Writes a file with a hole, data, explicit zeros, and a hole at the end.
fn sparse_file(path: &Path) {
    let mut file = File::create(path).unwrap();
    file.seek(SeekFrom::Start(300_000)).unwrap();
    file.write_all(&[7; 5000]).unwrap();
    file.write_all(&[0; 100_000]).unwrap();
    file.set_len(2_000_000).unwrap();
}

fn build(root: &Path, destination: &Path) -> Image {
    let builder = ImageBuilder::new()
        .label("same")
        .size(Size::Fit { headroom: 0 });
    builder
        .build(&Tree::from_dir(root).unwrap(), destination)
        .unwrap()
}

#[test]
fn two_copies_of_a_tree_give_identical_images() {
    let here = TempDir::new().unwrap();
    let shared_memory = Path::new("/dev/shm");
    let there = if shared_memory.is_dir() {
        TempDir::new_in(shared_memory).unwrap()
    } else {
        TempDir::with_prefix("another-and-longer-name").unwrap()
    };
    let (first, second) = (here.path().join("tree"), there.path().join("another name"));
    fs::create_dir_all(&first).unwrap();
    fs::create_dir_all(&second).unwrap();
    populate(&first, Order::Forwards);
    // Creates the second tree at another time, to detect leaked timestamps.
    sleep(Duration::from_millis(1100));
    populate(&second, Order::Backwards);
    fs::read(second.join("old")).unwrap();
    fs::set_permissions(&second, fs::Permissions::from_mode(0o700)).unwrap();

    let first = build(&first, &here.path().join("image"));
    let second = build(&second, &there.path().join("image"));
    assert_identical(&first.path, &second.path);
    assert_eq!(first.uuid, second.uuid);
    Inspect(first.path).assert_clean();
}

#[test]
fn no_time_of_the_host_is_in_an_image() {
    let folder = TempDir::new().unwrap();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    populate(&tree, Order::Forwards);
    let image = Inspect(build(&tree, &folder.path().join("image")).path);

    let epoch = "0x67748580"; // 1 January 2025
    for path in [
        "/",
        "/old",
        "/link",
        "/empty",
        "/empty/deep",
        "/program",
        "/lost+found",
    ] {
        let stat = image.stat(path);
        for field in ["atime", "ctime", "crtime"] {
            assert!(
                stat.contains(&format!("{field}: {epoch}:00000000")),
                "{path} {field}:\n{stat}"
            );
        }
    }
    assert!(
        image.stat("/old").contains("mtime: 0x3b9aca00:00000000"),
        "older times are kept"
    );
    assert!(
        image.stat("/empty").contains(&format!("mtime: {epoch}")),
        "newer ones are clamped"
    );
}

#[test]
fn where_content_comes_from_makes_no_difference() {
    let folder = TempDir::new().unwrap();
    let host_file = folder.path().join("odd \"name\"\nwith a line break");
    fs::write(&host_file, "content").unwrap();
    let build = |content: Content, name: &str| {
        let mut tree = Tree::new();
        tree.file("/file", 0o644, content).unwrap();
        let builder = ImageBuilder::new().size(Size::Exact(16 << 20));
        builder.build(&tree, folder.path().join(name)).unwrap().path
    };
    assert_identical(
        &build("content".into(), "a"),
        &build(Content::HostFile(host_file), "b"),
    );
}

#[test]
fn label_and_seed_decide_the_uuid() {
    let folder = TempDir::new().unwrap();
    let uuid = |label: &str, seed: &str| {
        let builder = ImageBuilder::new()
            .size(Size::Exact(16 << 20))
            .label(label)
            .seed(seed);
        let image = builder
            .build(&Tree::new(), folder.path().join("image"))
            .unwrap();
        let superblock = Inspect(image.path).debugfs("show_super_stats -h");
        assert!(superblock.contains(&format!("Filesystem UUID:          {}\n", image.uuid)));
        assert!(superblock.contains(&format!("Filesystem volume name:   {label}\n")));
        image.uuid
    };
    let uuids = [uuid("a", "x"), uuid("b", "x"), uuid("a", "y")];
    assert!(uuids[0] != uuids[1] && uuids[0] != uuids[2] && uuids[1] != uuids[2]);
    assert_eq!(uuid("a", "x"), uuids[0]);
}
