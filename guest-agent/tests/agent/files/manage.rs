use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        net::UnixListener,
    },
};

use vmcell_wire::files::{FileKind, FileOperation, Owner, Time};

use super::test_env::{CONFLICT, INVALID, LIMIT, NOT_FOUND, TestEnv, is_root, refused};

const OWNER: Owner<'static> = Owner::OfDirectory;

fn mode_of(env: &TestEnv, path: &str) -> u32 {
    fs::symlink_metadata(env.at(path)).unwrap().mode() & 0o7777
}

fn copy<'a>(from: &'a str, to: &'a str) -> FileOperation<'a> {
    FileOperation::Copy {
        from: from.as_bytes(),
        to: to.as_bytes(),
        owner: OWNER,
    }
}

#[test]
fn directories_are_made_with_those_above() {
    let mut env = TestEnv::new();
    let make = |path: &'static str, mode| FileOperation::MakeDirectory {
        path: path.as_bytes(),
        mode,
        owner: OWNER,
    };
    let entry = env.entry(make("a/b/c", Some(0o2770))).unwrap();
    assert_eq!((entry.kind, entry.mode), (FileKind::Directory, 0o2770));
    assert_eq!(mode_of(&env, "a/b"), 0o755);
    // An existing directory stays as it is.
    let entry = env.entry(make("a/b/c/", Some(0o700))).unwrap();
    assert_eq!(entry.mode, 0o2770);
    assert_eq!(env.entry(make("", None)).unwrap().kind, FileKind::Directory);
    fs::write(env.at("file"), "").unwrap();
    symlink("nowhere", env.at("dangling")).unwrap();
    assert_eq!(refused(env.entry(make("file", None))), NOT_FOUND);
    assert_eq!(refused(env.entry(make("file/below", None))), NOT_FOUND);
    assert_eq!(refused(env.entry(make("dangling", None))), NOT_FOUND);
}

#[test]
fn an_entry_gets_another_name() {
    let mut env = TestEnv::new();
    let rename = |from: &'static str, to: &'static str, replace| FileOperation::Rename {
        from: from.as_bytes(),
        to: to.as_bytes(),
        replace,
    };
    fs::write(env.at("one"), "1").unwrap();
    fs::write(env.at("two"), "2").unwrap();
    fs::create_dir(env.at("d")).unwrap();
    symlink("nowhere", env.at("link")).unwrap();
    assert_eq!(refused(env.entry(rename("one", "two", false))), CONFLICT);
    env.entry(rename("one", "two", true)).unwrap();
    env.entry(rename("two", "d/three", false)).unwrap();
    let entry = env.entry(rename("link", "d/link", false)).unwrap();
    assert_eq!(entry.kind, FileKind::Symlink);
    assert_eq!(refused(env.entry(rename("d", "d/below", false))), INVALID);
    assert_eq!(refused(env.entry(rename("no", "way", false))), NOT_FOUND);
    assert_eq!(env.listing(), ["d", "d/link", "d/three"]);
    assert_eq!(fs::read(env.at("d/three")).unwrap(), b"1");
}

#[test]
fn a_copy_has_everything_that_the_original_has() {
    let mut env = TestEnv::new();
    fs::create_dir_all(env.at("tree/a/b")).unwrap();
    fs::write(env.at("tree/a/file"), "bytes").unwrap();
    let sparse = fs::File::create(env.at("tree/sparse")).unwrap();
    sparse.set_len(50_000_000).unwrap();
    std::os::unix::fs::FileExt::write_at(&sparse, b"x", 20_000_000).unwrap();
    symlink("a/file", env.at("tree/link")).unwrap();
    let _listener = UnixListener::bind(env.at("tree/socket")).unwrap();
    fs::set_permissions(env.at("tree/a"), fs::Permissions::from_mode(0o2750)).unwrap();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::open(env.at("tree/a"))
        .unwrap()
        .set_modified(old)
        .unwrap();
    env.entry(copy("tree", "copy")).unwrap();
    assert_eq!(fs::read(env.at("copy/a/file")).unwrap(), b"bytes");
    assert_eq!(mode_of(&env, "copy/a"), 0o2750);
    let copied = fs::metadata(env.at("copy/a")).unwrap();
    assert_eq!(copied.modified().unwrap(), old);
    let target = fs::read_link(env.at("copy/link")).unwrap();
    assert_eq!(target.to_str(), Some("a/file"));
    assert!(env.at("copy/a/b").is_dir());
    let sparse = fs::metadata(env.at("copy/sparse")).unwrap();
    assert_eq!(sparse.len(), 50_000_000);
    assert!(sparse.blocks() * 512 < 5_000_000);
    assert!(fs::read(env.at("copy/sparse")).unwrap() == fs::read(env.at("tree/sparse")).unwrap());
    env.entry(copy("tree/link", "link")).unwrap();
    env.entry(copy("tree/a/file", "file")).unwrap();
    assert_eq!(fs::read(env.at("file")).unwrap(), b"bytes");
    assert!(fs::symlink_metadata(env.at("link")).unwrap().is_symlink());
}

#[test]
fn a_copy_takes_no_name_that_is_taken_and_does_not_eat_itself() {
    let mut env = TestEnv::new();
    fs::create_dir_all(env.at("tree/a/b")).unwrap();
    fs::write(env.at("tree/a/file"), "bytes").unwrap();
    fs::write(env.at("taken"), "mine").unwrap();
    let before = env.listing();
    assert_eq!(refused(env.entry(copy("tree/a/file", "taken"))), CONFLICT);
    assert_eq!(refused(env.entry(copy("tree", "taken"))), CONFLICT);
    assert_eq!(refused(env.entry(copy("tree", "tree"))), CONFLICT);
    assert_eq!(refused(env.entry(copy("tree", "tree/a/b/c"))), INVALID);
    assert_eq!(refused(env.entry(copy("tree", "tree/c"))), INVALID);
    assert_eq!(refused(env.entry(copy("missing", "new"))), NOT_FOUND);
    assert_eq!(refused(env.entry(copy("tree", "no/way"))), NOT_FOUND);
    assert_eq!(env.listing(), before);
    assert_eq!(fs::read(env.at("taken")).unwrap(), b"mine");
}

#[test]
fn permissions_are_set_and_no_link_in_a_tree_is_followed() {
    let mut env = TestEnv::new();
    let set = |path: &'static str, mode, tree| FileOperation::SetMode {
        path: path.as_bytes(),
        mode,
        tree,
    };
    fs::create_dir_all(env.at("tree/a")).unwrap();
    fs::write(env.at("tree/a/file"), "").unwrap();
    fs::write(env.at("other"), "").unwrap();
    fs::set_permissions(env.at("other"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("../other", env.at("tree/link")).unwrap();
    let _listener = UnixListener::bind(env.at("tree/socket")).unwrap();
    assert_eq!(env.entry(set("tree", 0o711, false)).unwrap().mode, 0o711);
    assert_ne!(mode_of(&env, "tree/a"), 0o711);
    env.entry(set("tree", 0o770, true)).unwrap();
    for path in ["tree", "tree/a", "tree/a/file", "tree/socket"] {
        assert_eq!(mode_of(&env, path), 0o770, "{path}");
    }
    assert_eq!(mode_of(&env, "other"), 0o600);
    env.entry(set("tree/link", 0o4755, false)).unwrap();
    assert_eq!(mode_of(&env, "other"), 0o4755);
    assert_eq!(refused(env.entry(set("missing", 0, true))), NOT_FOUND);
}

#[test]
fn the_owner_is_set_and_no_link_is_followed() {
    if !is_root() {
        return;
    }
    let mut env = TestEnv::new();
    fs::create_dir_all(env.at("tree/a")).unwrap();
    fs::write(env.at("other"), "").unwrap();
    symlink("../other", env.at("tree/link")).unwrap();
    let set = |path: &'static str, owner, tree| FileOperation::SetOwner {
        path: path.as_bytes(),
        owner,
        tree,
    };
    let entry = env.entry(set("tree", Owner::User("11:22"), true)).unwrap();
    assert_eq!((entry.uid, entry.gid), (11, 22));
    let owner = |env: &TestEnv, path: &str| fs::symlink_metadata(env.at(path)).unwrap().uid();
    assert_eq!(owner(&env, "tree/a"), 11);
    assert_eq!(owner(&env, "tree/link"), 11);
    assert_eq!(owner(&env, "other"), 0);
    env.entry(set("tree/link", Owner::User("33"), false))
        .unwrap();
    assert_eq!((owner(&env, "tree/link"), owner(&env, "other")), (33, 0));
    env.entry(set("tree/a", OWNER, false)).unwrap();
    assert_eq!(owner(&env, "tree/a"), 11);
    let entry = env.entry(set("", Owner::User("44"), false)).unwrap();
    assert_eq!(entry.uid, 44);
}

#[test]
fn links_are_made_and_point_anywhere() {
    let mut env = TestEnv::new();
    let link = |path: &'static str, target: &'static [u8]| FileOperation::Symlink {
        path: path.as_bytes(),
        target,
        owner: OWNER,
    };
    let entry = env.entry(link("link", b"/any\xff\nwhere")).unwrap();
    assert_eq!(entry.target, b"/any\xff\nwhere");
    assert_eq!(refused(env.entry(link("link", b"x"))), CONFLICT);
    assert_eq!(refused(env.entry(link("other", b""))), INVALID);
    assert_eq!(refused(env.entry(link("other", b"a\0b"))), INVALID);
    assert_eq!(refused(env.entry(link("no/way", b"x"))), NOT_FOUND);
    assert_eq!(env.listing(), ["link"]);
}

#[test]
fn a_touch_makes_a_file_or_sets_its_time() {
    let mut env = TestEnv::new();
    let touch = |path: &'static str, modified| FileOperation::Touch {
        path: path.as_bytes(),
        modified,
        owner: OWNER,
    };
    let time = Time {
        seconds: -86_400,
        nanoseconds: 5,
    };
    let entry = env.entry(touch("a/file", Some(time))).unwrap();
    assert_eq!(
        (entry.size, entry.modified, entry.mode),
        (0, -86_400, 0o644)
    );
    assert!(env.entry(touch("a/file", None)).unwrap().modified > 1_700_000_000);
    let entry = env.entry(touch("a", Some(time))).unwrap();
    assert_eq!((entry.kind, entry.modified), (FileKind::Directory, -86_400));
    symlink("a/file", env.at("link")).unwrap();
    env.entry(touch("link", Some(time))).unwrap();
    let touched = fs::metadata(env.at("a/file")).unwrap();
    assert_eq!((touched.mtime(), touched.mtime_nsec()), (-86_400, 5));
    let senseless = Time {
        seconds: 0,
        nanoseconds: 1_000_000_000,
    };
    assert_eq!(refused(env.entry(touch("new", Some(senseless)))), INVALID);
    assert_eq!(env.listing(), ["a", "a/file", "link"]);
}

#[test]
fn files_and_file_systems_are_made_safe() {
    let mut env = TestEnv::new();
    fs::write(env.at("file"), "x").unwrap();
    for path in ["file", ""] {
        let path = path.as_bytes();
        assert!(env.perform(FileOperation::Sync { path }).is_ok());
    }
}

#[test]
fn a_tree_that_is_too_deep_is_not_copied() {
    let mut env = TestEnv::new();
    fs::create_dir_all(env.at("d/".repeat(300))).unwrap();
    assert_eq!(refused(env.entry(copy("d", "copy"))), LIMIT);
    assert!(!env.at("copy").exists());
    assert_eq!(fs::read_dir(env.root()).unwrap().count(), 1);
}
