use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use vmcell_wire::{
    Request,
    files::{FileOperation, FileRequest, Owner, Precondition, Write, WriteMode},
};

use super::test_env::{CONFLICT, INVALID, TestEnv, digest, is_root, refused};
use crate::{client::Reply, race::race_against};

#[test]
fn a_file_is_made_with_its_directories_and_replaced_whole() {
    let mut env = TestEnv::new();
    let entry = env.write("a/b/file", "first").unwrap();
    assert_eq!((entry.size, entry.mode), (5, 0o644));
    let inode = fs::metadata(env.at("a/b/file")).unwrap().ino();
    assert_eq!(fs::metadata(env.at("a/b")).unwrap().mode() & 0o7777, 0o755);
    let old = fs::File::open(env.at("a/b/file")).unwrap();
    env.write("a/b/file", "the second").unwrap();
    assert_eq!(fs::read(env.at("a/b/file")).unwrap(), b"the second");
    assert_ne!(fs::metadata(env.at("a/b/file")).unwrap().ino(), inode);
    assert_eq!(old.metadata().unwrap().len(), 5);
    assert_eq!(env.listing(), ["a", "a/b", "a/b/file"]);
}

#[test]
fn large_files_of_known_and_unknown_size_arrive() {
    let mut env = TestEnv::new();
    let bytes: Vec<u8> = (0..5_000_003u32).map(|n| (n % 253) as u8).collect();
    for size in [None, Some(5_000_003), Some(9_000_000), Some(1)] {
        let entry = env.write_with("file", &bytes, |write| {
            write.size = size;
            write.sync = true;
        });
        assert_eq!(entry.unwrap().size, 5_000_003);
        assert!(fs::read(env.at("file")).unwrap() == bytes);
        let blocks = fs::metadata(env.at("file")).unwrap().blocks();
        assert!(blocks * 512 < 6_000_000, "{size:?}");
    }
}

#[test]
fn permissions_stay_unless_others_are_wanted() {
    let mut env = TestEnv::new();
    env.write_with("file", "", |write| write.mode = Some(0o4750))
        .unwrap();
    assert_eq!(env.write("file", "x").unwrap().mode, 0o4750);
    let entry = env.write_with("file", "x", |write| write.mode = Some(0o600));
    assert_eq!(entry.unwrap().mode, 0o600);
    let entry = env.write_with("file", "y", |write| {
        write.write_mode = WriteMode::Append;
        write.mode = Some(0o640);
    });
    assert_eq!(entry.unwrap().mode, 0o640);
}

#[test]
fn a_new_file_belongs_to_whom_the_directory_does_or_to_whom_it_is_given() {
    if !is_root() {
        return;
    }
    let mut env = TestEnv::new();
    std::os::unix::fs::chown(env.root(), Some(1234), Some(5678)).unwrap();
    let entry = env.write("a/file", "x").unwrap();
    assert_eq!((entry.uid, entry.gid), (1234, 5678));
    assert_eq!(fs::metadata(env.at("a")).unwrap().uid(), 1234);
    let mine = |write: &mut Write<'_>| write.owner = Owner::User("77:88");
    let entry = env.write_with("a/file", "y", mine).unwrap();
    assert_eq!((entry.uid, entry.gid), (77, 88));
    // A file that is replaced keeps its owner.
    let entry = env.write("a/file", "z").unwrap();
    assert_eq!((entry.uid, entry.gid), (77, 88));
    let entry = env.write_with("b", "z", |write| {
        write.write_mode = WriteMode::Append;
        write.owner = Owner::OfRecord;
    });
    assert_eq!(entry.unwrap().uid, 0);
    let nobody = |write: &mut Write<'_>| write.owner = Owner::User("no such user");
    assert!(env.write_with("c", "", nobody).is_err());
    assert!(!env.at("c").exists());
}

#[test]
fn bytes_go_behind_the_end_or_anywhere() {
    let mut env = TestEnv::new();
    let append = |write: &mut Write<'_>| write.write_mode = WriteMode::Append;
    let at = |offset| move |write: &mut Write<'_>| write.write_mode = WriteMode::At(offset);
    env.write_with("new/log", "one ", append).unwrap();
    env.write_with("new/log", "two", append).unwrap();
    assert_eq!(fs::read(env.at("new/log")).unwrap(), b"one two");
    env.write_with("new/log", "ONE", at(0)).unwrap();
    env.write_with("new/log", "!", at(9)).unwrap();
    assert_eq!(fs::read(env.at("new/log")).unwrap(), b"ONE two\0\0!");
    env.write_with("sparse", "x", at(1 << 30)).unwrap();
    assert_eq!(fs::metadata(env.at("sparse")).unwrap().len(), (1 << 30) + 1);
    let beyond = env.write_with("never", "x", at(u64::MAX - 1));
    assert_eq!(refused(beyond), INVALID);
    assert!(!env.at("never").exists());
}

#[test]
fn what_is_expected_is_checked() {
    let mut env = TestEnv::new();
    for write_mode in [WriteMode::Replace, WriteMode::Append, WriteMode::At(0)] {
        fs::write(env.at("file"), "old").unwrap();
        let mut try_it = |path: &str, precondition| {
            let change = |write: &mut Write<'_>| {
                write.precondition = precondition;
                write.write_mode = write_mode;
            };
            env.write_with(path, "new", change).map(|_| ())
        };
        let (old, wrong) = (
            Precondition::Digest(digest("old")),
            Precondition::Digest([7; 32]),
        );
        assert_eq!(refused(try_it("file", Precondition::Absent)), CONFLICT);
        assert_eq!(refused(try_it("file", wrong)), CONFLICT);
        assert_eq!(refused(try_it("missing", old)), CONFLICT);
        try_it("file", old).unwrap();
        assert_eq!(refused(try_it("file", old)), CONFLICT);
        try_it("other", Precondition::Absent).unwrap();
        assert_eq!(env.listing(), ["file", "other"]);
        fs::remove_file(env.at("other")).unwrap();
    }
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let mut env = TestEnv::new();
    fs::create_dir(env.at("d")).unwrap();
    fs::write(env.at("d/real"), "old").unwrap();
    symlink("d/step", env.at("link")).unwrap();
    symlink("../d/real", env.at("d/step")).unwrap();
    symlink("made/new", env.at("dangling")).unwrap();
    symlink("loop", env.at("loop")).unwrap();
    env.write("link", "new").unwrap();
    env.write("dangling", "made").unwrap();
    assert_eq!(fs::read(env.at("d/real")).unwrap(), b"new");
    assert_eq!(fs::read(env.at("made/new")).unwrap(), b"made");
    assert!(fs::symlink_metadata(env.at("link")).unwrap().is_symlink());
    let append = |write: &mut Write<'_>| write.write_mode = WriteMode::Append;
    env.write_with("link", "er", append).unwrap();
    assert_eq!(fs::read(env.at("d/real")).unwrap(), b"newer");
    assert_eq!(refused(env.write("loop", "x")), INVALID);
    assert_eq!(refused(env.read("loop")), INVALID);
}

#[test]
fn a_write_that_is_cancelled_leaves_everything_as_it_was() {
    let mut env = TestEnv::new();
    fs::write(env.at("file"), "old").unwrap();
    let root = env.root();
    for (path, write_mode) in [
        ("file", WriteMode::Replace),
        ("new", WriteMode::Replace),
        ("file", WriteMode::Append),
        ("new", WriteMode::At(5)),
    ] {
        let write = Write {
            path: path.as_bytes(),
            write_mode,
            precondition: Precondition::Anything,
            mode: None,
            owner: Owner::OfDirectory,
            size: None,
            sync: false,
        };
        let stream = env.host.open(&Request::Files(FileRequest {
            root: root.as_os_str().as_encoded_bytes(),
            operation: FileOperation::Write(write),
        }));
        for _ in 0..4 {
            env.host.write_stdin(stream, &[1; 64 * 1024]);
        }
        // Half of a window was taken, so the file is being written.
        env.host
            .until(|reply| matches!(reply, Reply::Credit(id, _) if *id == stream));
        env.host
            .send(|out| vmcell_wire::encode::cancel(out, stream));
        env.host.outcome(stream);
        // The next job comes after the end of this one.
        assert!(env.stat("").is_ok());
        assert_eq!(env.listing(), ["file"], "{write_mode:?}");
        assert_eq!(fs::read(env.at("file")).unwrap(), b"old", "{write_mode:?}");
    }
}

#[test]
fn nobody_else_sees_a_file_before_it_is_whole() {
    let mut env = TestEnv::new();
    fs::set_permissions(env.root(), fs::Permissions::from_mode(0o700)).unwrap();
    let big = vec![b'x'; 2_000_000];
    env.write("file", &big).unwrap();
    let path = env.at("file");
    let look = || assert_eq!(fs::metadata(&path).unwrap().len(), 2_000_000);
    race_against(look, || {
        for _ in 0..20 {
            env.write("file", &big).unwrap();
        }
    });
}
