use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use vmcell_wire::{
    Request,
    files::{Expect, Files, Owner, Work, Write, WritePlace},
};

use super::site::{CONFLICT, INVALID, Site, digest, is_root, refused};
use crate::{client::Reply, concurrent::with_concurrent};

#[test]
fn a_file_is_made_with_its_directories_and_replaced_whole() {
    let mut site = Site::new();
    let told = site.write("a/b/file", "first").unwrap();
    assert_eq!((told.size, told.mode), (5, 0o644));
    let inode = fs::metadata(site.at("a/b/file")).unwrap().ino();
    assert_eq!(fs::metadata(site.at("a/b")).unwrap().mode() & 0o7777, 0o755);
    let old = fs::File::open(site.at("a/b/file")).unwrap();
    site.write("a/b/file", "the second").unwrap();
    assert_eq!(fs::read(site.at("a/b/file")).unwrap(), b"the second");
    assert_ne!(fs::metadata(site.at("a/b/file")).unwrap().ino(), inode);
    assert_eq!(old.metadata().unwrap().len(), 5);
    assert_eq!(site.listing(), ["a", "a/b", "a/b/file"]);
}

#[test]
fn large_files_of_known_and_unknown_size_arrive() {
    let mut site = Site::new();
    let bytes: Vec<u8> = (0..5_000_003u32).map(|n| (n % 253) as u8).collect();
    for size in [None, Some(5_000_003), Some(9_000_000), Some(1)] {
        let told = site.write_with("file", &bytes, |write| {
            write.size = size;
            write.sync = true;
        });
        assert_eq!(told.unwrap().size, 5_000_003);
        assert!(fs::read(site.at("file")).unwrap() == bytes);
        let blocks = fs::metadata(site.at("file")).unwrap().blocks();
        assert!(blocks * 512 < 6_000_000, "{size:?}");
    }
}

#[test]
fn permissions_stay_unless_others_are_wanted() {
    let mut site = Site::new();
    site.write_with("file", "", |write| write.mode = Some(0o4750))
        .unwrap();
    assert_eq!(site.write("file", "x").unwrap().mode, 0o4750);
    let told = site.write_with("file", "x", |write| write.mode = Some(0o600));
    assert_eq!(told.unwrap().mode, 0o600);
    let told = site.write_with("file", "y", |write| {
        write.place = WritePlace::Append;
        write.mode = Some(0o640);
    });
    assert_eq!(told.unwrap().mode, 0o640);
}

#[test]
fn a_new_file_belongs_to_whom_the_directory_does_or_to_whom_it_is_given() {
    if !is_root() {
        return;
    }
    let mut site = Site::new();
    std::os::unix::fs::chown(site.root(), Some(1234), Some(5678)).unwrap();
    let told = site.write("a/file", "x").unwrap();
    assert_eq!((told.uid, told.gid), (1234, 5678));
    assert_eq!(fs::metadata(site.at("a")).unwrap().uid(), 1234);
    let mine = |write: &mut Write<'_>| write.owner = Owner::User("77:88");
    let told = site.write_with("a/file", "y", mine).unwrap();
    assert_eq!((told.uid, told.gid), (77, 88));
    // What is replaced stays whose it was.
    let told = site.write("a/file", "z").unwrap();
    assert_eq!((told.uid, told.gid), (77, 88));
    let told = site.write_with("b", "z", |write| {
        write.place = WritePlace::Append;
        write.owner = Owner::OfRecord;
    });
    assert_eq!(told.unwrap().uid, 0);
    let nobody = |write: &mut Write<'_>| write.owner = Owner::User("no such user");
    assert!(site.write_with("c", "", nobody).is_err());
    assert!(!site.at("c").exists());
}

#[test]
fn bytes_go_behind_the_end_or_anywhere() {
    let mut site = Site::new();
    let append = |write: &mut Write<'_>| write.place = WritePlace::Append;
    let at = |offset| move |write: &mut Write<'_>| write.place = WritePlace::At(offset);
    site.write_with("new/log", "one ", append).unwrap();
    site.write_with("new/log", "two", append).unwrap();
    assert_eq!(fs::read(site.at("new/log")).unwrap(), b"one two");
    site.write_with("new/log", "ONE", at(0)).unwrap();
    site.write_with("new/log", "!", at(9)).unwrap();
    assert_eq!(fs::read(site.at("new/log")).unwrap(), b"ONE two\0\0!");
    site.write_with("sparse", "x", at(1 << 30)).unwrap();
    assert_eq!(
        fs::metadata(site.at("sparse")).unwrap().len(),
        (1 << 30) + 1
    );
    let beyond = site.write_with("never", "x", at(u64::MAX - 1));
    assert_eq!(refused(beyond), INVALID);
    assert!(!site.at("never").exists());
}

#[test]
fn what_is_expected_is_checked() {
    let mut site = Site::new();
    for place in [WritePlace::Replace, WritePlace::Append, WritePlace::At(0)] {
        fs::write(site.at("file"), "old").unwrap();
        let mut try_it = |path: &str, expect| {
            let change = |write: &mut Write<'_>| {
                write.expect = expect;
                write.place = place;
            };
            site.write_with(path, "new", change).map(|_| ())
        };
        let (old, wrong) = (Expect::Digest(digest("old")), Expect::Digest([7; 32]));
        assert_eq!(refused(try_it("file", Expect::Absent)), CONFLICT);
        assert_eq!(refused(try_it("file", wrong)), CONFLICT);
        assert_eq!(refused(try_it("missing", old)), CONFLICT);
        try_it("file", old).unwrap();
        assert_eq!(refused(try_it("file", old)), CONFLICT);
        try_it("other", Expect::Absent).unwrap();
        assert_eq!(site.listing(), ["file", "other"]);
        fs::remove_file(site.at("other")).unwrap();
    }
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let mut site = Site::new();
    fs::create_dir(site.at("d")).unwrap();
    fs::write(site.at("d/real"), "old").unwrap();
    symlink("d/step", site.at("link")).unwrap();
    symlink("../d/real", site.at("d/step")).unwrap();
    symlink("made/new", site.at("dangling")).unwrap();
    symlink("loop", site.at("loop")).unwrap();
    site.write("link", "new").unwrap();
    site.write("dangling", "made").unwrap();
    assert_eq!(fs::read(site.at("d/real")).unwrap(), b"new");
    assert_eq!(fs::read(site.at("made/new")).unwrap(), b"made");
    assert!(fs::symlink_metadata(site.at("link")).unwrap().is_symlink());
    let append = |write: &mut Write<'_>| write.place = WritePlace::Append;
    site.write_with("link", "er", append).unwrap();
    assert_eq!(fs::read(site.at("d/real")).unwrap(), b"newer");
    assert_eq!(refused(site.write("loop", "x")), INVALID);
    assert_eq!(refused(site.read("loop")), INVALID);
}

#[test]
fn a_write_that_is_cancelled_leaves_everything_as_it_was() {
    let mut site = Site::new();
    fs::write(site.at("file"), "old").unwrap();
    let root = site.root();
    for (path, place) in [
        ("file", WritePlace::Replace),
        ("new", WritePlace::Replace),
        ("file", WritePlace::Append),
        ("new", WritePlace::At(5)),
    ] {
        let write = Write {
            path: path.as_bytes(),
            place,
            expect: Expect::Anything,
            mode: None,
            owner: Owner::OfDirectory,
            size: None,
            sync: false,
        };
        let stream = site.host.open(&Request::Files(Files {
            root: root.as_os_str().as_encoded_bytes(),
            work: Work::Write(write),
        }));
        for _ in 0..4 {
            site.host.write_stdin(stream, &[1; 64 * 1024]);
        }
        // Half of a window was taken, so the file is being written.
        site.host
            .until(|reply| matches!(reply, Reply::Credit(id, _) if *id == stream));
        site.host
            .send(|out| vmcell_wire::encode::cancel(out, stream));
        site.host.outcome(stream);
        // The next job comes after the end of this one.
        assert!(site.stat("").is_ok());
        assert_eq!(site.listing(), ["file"], "{place:?}");
        assert_eq!(fs::read(site.at("file")).unwrap(), b"old", "{place:?}");
    }
}

#[test]
fn nobody_else_sees_a_file_before_it_is_whole() {
    let mut site = Site::new();
    fs::set_permissions(site.root(), fs::Permissions::from_mode(0o700)).unwrap();
    let big = vec![b'x'; 2_000_000];
    site.write("file", &big).unwrap();
    let path = site.at("file");
    let look = || assert_eq!(fs::metadata(&path).unwrap().len(), 2_000_000);
    with_concurrent(look, || {
        for _ in 0..20 {
            site.write("file", &big).unwrap();
        }
    });
}
