//! A tree that is sent and received again is the same tree.

use std::{
    ffi::OsStr,
    fs::{self, File, Permissions},
    os::unix::{
        ffi::OsStrExt,
        fs::{FileExt, MetadataExt, PermissionsExt, symlink},
    },
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use proptest::prelude::*;
use vmcell_wire::FailureKind;

use super::{
    snapshot::snapshot,
    test_env::{OwnedAnswer, TestEnv, leftovers},
};

const MEBIBYTE: usize = 1024 * 1024;

fn set_modified(path: &Path, seconds: u64, nanoseconds: u32) {
    let time = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    File::open(path).unwrap().set_modified(time).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Returns whether the file system of a directory has extended attributes.
fn has_xattrs(directory: &Path) -> bool {
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(directory, "user.colour", b"blue", flags).is_ok()
}

/// Creates a tree with entries of every kind.
fn create_tree(top: &Path) {
    fs::create_dir(top).unwrap();
    fs::write(top.join("empty"), "").unwrap();
    fs::write(top.join("small"), "some words").unwrap();
    fs::write(top.join("inline"), vec![7; 32 * 1024]).unwrap();
    fs::write(top.join("just more"), vec![8; 32 * 1024 + 1]).unwrap();
    let large: Vec<u8> = (0..5 * MEBIBYTE).map(|n| (n % 251) as u8).collect();
    fs::write(top.join("large"), large).unwrap();
    fs::create_dir_all(top.join("deep/er/est")).unwrap();
    fs::create_dir(top.join("nothing")).unwrap();
    fs::write(top.join("deep/er/est/leaf"), "leaf").unwrap();
    fs::hard_link(top.join("deep/er/est/leaf"), top.join("another name")).unwrap();
    symlink("../nowhere/at all", top.join("deep/link")).unwrap();
    for name in [
        &b"new\nline"[..],
        b"\x1b[31mred",
        b"\xff\xfe not text",
        b" ",
        b"-rf",
        b"*",
    ] {
        fs::write(top.join(OsStr::from_bytes(name)), name).unwrap();
    }
    let sparse = File::create(top.join("sparse")).unwrap();
    sparse.write_all_at(b"begin", 0).unwrap();
    sparse.write_all_at(b"middle", 4 * MEBIBYTE as u64).unwrap();
    sparse.set_len(16 * MEBIBYTE as u64).unwrap();
    File::create(top.join("hole"))
        .unwrap()
        .set_len(20_000)
        .unwrap();
    set_mode(&top.join("small"), 0o4751);
    set_mode(&top.join("nothing"), 0o1777);
    set_mode(&top.join("deep/er"), 0o2750);
    set_mode(&top.join("empty"), 0o000);
    if has_xattrs(top) {
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(top.join("large"), "user.big", &[b'x'; 3000], flags).unwrap();
        rustix::fs::setxattr(top.join("inline"), "user.none", b"", flags).unwrap();
    }
    set_modified(&top.join("small"), 1_234_567_890, 987_654_321);
    set_modified(&top.join("large"), 1, 1);
    set_modified(&top.join("deep/er/est"), 1_000_000_000, 999_999_999);
    set_modified(&top.join("deep"), 2_000_000_000, 5);
    set_modified(top, 1_500_000_000, 123_456_789);
}

#[test]
fn everything_that_a_tree_has_is_kept() {
    let mut env = TestEnv::new();
    create_tree(&env.at("from"));
    let records = env.pull("from").output();
    let answer = env.push("to/here", &records).answers();
    let before = snapshot(&env.at("from"));
    let after = snapshot(&env.at("to/here"));
    for (path, state) in &before {
        assert_eq!(after.get(path), Some(state), "{path:?}");
    }
    assert_eq!(after.len(), before.len());
    let [OwnedAnswer::Received(entries, bytes)] = answer[..] else {
        panic!("unexpected {answer:?}");
    };
    assert_eq!(entries, before.len() as u64);
    let expected: usize = before
        .iter()
        .filter(|(path, state)| state.mode & 0o170_000 == 0o100_000 && **path == state.first)
        .map(|(_, state)| state.content.len())
        .sum();
    assert_eq!(bytes, expected as u64);
    let blocks = |path| fs::metadata(env.at(path)).unwrap().blocks();
    assert!(blocks("to/here/sparse") <= blocks("from/sparse"));
    assert_eq!(blocks("to/here/hole"), blocks("from/hole"));
}

#[test]
fn a_second_time_over_the_first_changes_nothing() {
    let mut env = TestEnv::new();
    create_tree(&env.at("from"));
    let records = env.pull("from").output();
    env.push("to", &records).output();
    let once = snapshot(&env.at("to"));
    env.push("to", &records).output();
    assert_eq!(snapshot(&env.at("to")), once);
}

#[test]
fn a_lone_file_and_a_lone_link_are_trees_too() {
    let mut env = TestEnv::new();
    fs::write(env.at("file"), "words").unwrap();
    fs::write(env.at("large"), vec![1; MEBIBYTE]).unwrap();
    symlink("nowhere", env.at("link")).unwrap();
    for name in ["file", "large", "link"] {
        let records = env.pull(name).output();
        env.push(&format!("a/b/{name}"), &records).output();
    }
    assert_eq!(fs::read(env.at("a/b/file")).unwrap(), b"words");
    assert_eq!(fs::read(env.at("a/b/large")).unwrap(), vec![1; MEBIBYTE]);
    assert_eq!(
        fs::read_link(env.at("a/b/link")).unwrap(),
        Path::new("nowhere")
    );
}

#[test]
fn the_root_itself_is_sent_and_taken() {
    let mut env = TestEnv::new();
    fs::create_dir(env.at("a")).unwrap();
    fs::write(env.at("a/b"), "words").unwrap();
    let records = env.pull("").output();
    fs::remove_dir_all(env.at("a")).unwrap();
    env.push("", &records).output();
    assert_eq!(fs::read(env.at("a/b")).unwrap(), b"words");
}

#[test]
fn wherever_the_records_end_no_half_of_a_file_is_left() {
    let mut env = TestEnv::new();
    let from = env.at("from");
    fs::create_dir(&from).unwrap();
    fs::create_dir(from.join("d")).unwrap();
    for (name, length) in [("a", 10), ("b", 1000), ("d/c", 100_000), ("d/e", 40_000)] {
        fs::write(from.join(name), vec![length as u8; length]).unwrap();
    }
    let records = env.pull("from").output();
    let before = snapshot(&from);
    // Every byte among the first, and some of the many in the middle of files.
    let cuts = (0..600).chain((600..records.len()).step_by(2999));
    for cut in cuts {
        let to = format!("to{cut}");
        let result = env.push(&to, &records[..cut]);
        assert_eq!(result.failure, Some(FailureKind::Invalid), "{cut}");
        if !env.at(&to).exists() {
            continue;
        }
        let after = snapshot(&env.at(&to));
        for (path, state) in after {
            assert_eq!(state.content, before[&path].content, "{cut} {path:?}");
        }
        fs::remove_dir_all(env.at(&to)).unwrap();
    }
}

/// An entry of a random tree.
#[derive(Clone, Debug)]
enum TreeEntry {
    Directory,
    File(Vec<(bool, usize)>),
    Symlink(String),
    HardLink(prop::sample::Index),
}

fn tree_entry() -> impl Strategy<Value = TreeEntry> {
    let extent = (any::<bool>(), prop_oneof![0usize..64, 0usize..80_000]);
    prop_oneof![
        2 => Just(TreeEntry::Directory),
        4 => prop::collection::vec(extent, 0..5).prop_map(TreeEntry::File),
        1 => "[a-z/.]{1,20}".prop_map(TreeEntry::Symlink),
        2 => any::<prop::sample::Index>().prop_map(TreeEntry::HardLink),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_survives_the_journey(
        entries in prop::collection::vec(
            (
                any::<prop::sample::Index>(),
                prop::collection::vec(1u8..=255, 1..40),
                tree_entry(),
                0u32..0o10000,
                (0u64..4_000_000_000, 0u32..1_000_000_000),
            ),
            0..24,
        ),
    ) {
        let mut env = TestEnv::new();
        let top = env.at("from");
        fs::create_dir(&top).unwrap();
        let mut directories = vec![top.clone()];
        let mut files = Vec::new();
        let mut times = Vec::new();
        for (place, name, entry, mode, time) in entries {
            let name: Vec<u8> = name.into_iter().filter(|byte| *byte != b'/').collect();
            let path = place.get(&directories).join(OsStr::from_bytes(&name));
            if path.symlink_metadata().is_ok() || name.is_empty() {
                continue;
            }
            match entry {
                TreeEntry::Directory => {
                    fs::create_dir(&path).unwrap();
                    directories.push(path.clone());
                    // Otherwise only root could read it.
                    times.push((path, mode | 0o700, time));
                }
                TreeEntry::File(extents) => {
                    let file = File::create(&path).unwrap();
                    let mut length = 0;
                    for (number, (is_hole, count)) in extents.into_iter().enumerate() {
                        if !is_hole {
                            file.write_all_at(&vec![number as u8 + 1; count], length).unwrap();
                        }
                        length += count as u64;
                    }
                    file.set_len(length).unwrap();
                    files.push(path.clone());
                    times.push((path, mode | 0o400, time));
                }
                TreeEntry::Symlink(target) => symlink(target, &path).unwrap(),
                TreeEntry::HardLink(to) => {
                    if !files.is_empty() {
                        fs::hard_link(to.get(&files), &path).unwrap();
                    }
                }
            }
        }
        for (path, mode, (seconds, nanoseconds)) in times.iter().rev() {
            set_mode(path, *mode);
            set_modified(path, *seconds, *nanoseconds);
        }
        let records = env.pull("from").output();
        env.push("to", &records).output();
        prop_assert_eq!(snapshot(&env.at("to")), snapshot(&top));
        prop_assert!(leftovers(&env.root()).is_empty());
    }
}
