use std::{
    fs::{self, File},
    io::{Seek as _, SeekFrom, Write as _},
    os::unix::{
        fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, lchown, symlink},
        net::UnixListener,
    },
    path::Path,
};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags, setxattr, utimensat};

use super::{
    received, received_with, sent, sent_with, slices,
    snapshot::{name, snapshot},
};
use crate::transfer::{
    Destination, Ownership, ReceiveOptions, SendOptions, Source, TreeError, TreeLimit,
};

/// Creates a tree with entries of every kind.
pub(super) fn fill(top: &Path) {
    fs::create_dir_all(top.join("empty")).unwrap();
    fs::create_dir_all(top.join("deep/er")).unwrap();
    fs::write(top.join("small"), "hello").unwrap();
    fs::write(top.join("nothing"), "").unwrap();
    fs::write(top.join("big"), pattern(1_000_001)).unwrap();
    fs::write(top.join("deep/er/exact"), pattern(256 * 1024)).unwrap();
    fs::hard_link(top.join("big"), top.join("deep/also big")).unwrap();
    symlink("/etc/passwd", top.join("absolute link")).unwrap();
    symlink("../../..", top.join("deep/up")).unwrap();
    fs::write(top.join(name(b"not \xff UTF-8")), "a").unwrap();
    fs::write(top.join(name(b"line\nbreak \x1b[2J")), "b").unwrap();
    // Not every file system has extended attributes.
    let _ = setxattr(
        top.join("small"),
        "user.colour",
        b"blue\n\0",
        XattrFlags::empty(),
    );
    let _ = setxattr(top.join("deep"), "user.dir", b"", XattrFlags::empty());
    fs::set_permissions(top.join("small"), fs::Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(top.join("deep"), fs::Permissions::from_mode(0o750)).unwrap();

    let mut sparse = File::create(top.join("sparse")).unwrap();
    sparse.write_all_at(b"middle", 10 << 20).unwrap();
    sparse.seek(SeekFrom::Start(20 << 20)).unwrap();
    sparse.write_all(b"end").unwrap();
    sparse.set_len(30 << 20).unwrap();

    for (index, path) in ["small", "deep/er", "deep/up", "empty", "sparse", "deep", ""]
        .into_iter()
        .enumerate()
    {
        set_time(&top.join(path), 1_600_000_000 + index as i64, 987_654_321);
    }
    set_time(&top.join("nothing"), -5, 1);
}

fn set_time(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

pub(super) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

#[test]
fn a_directory_arrives_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("new/to"));
    fill(&from);

    let (pieces, sent) = sent(&from);
    let received = received(slices(&pieces), &to).unwrap();

    assert_eq!(snapshot(&from), snapshot(&to));
    assert_eq!(
        (sent.entries, sent.bytes),
        (received.entries, received.bytes)
    );
    assert_eq!(sent.entries, snapshot(&from).len() as u64);
    let allocated = |path: &Path| fs::metadata(path.join("sparse")).unwrap().blocks();
    assert_eq!(allocated(&from), allocated(&to));
}

#[test]
fn a_single_file_or_link_arrives_under_the_chosen_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name);
    fs::write(path("file"), pattern(300_000)).unwrap();
    symlink("nowhere", path("link")).unwrap();
    fs::write(path("old"), "old").unwrap();
    for (from, to) in [("file", "a/b/c"), ("link", "old")] {
        let (pieces, _) = sent(&path(from));
        received(slices(&pieces), &path(to)).unwrap();
        assert_eq!(snapshot(&path(from)), snapshot(&path(to)));
    }
}

#[test]
fn what_is_there_already_is_replaced_and_links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name);
    fs::create_dir_all(path("from/dir")).unwrap();
    fs::write(path("from/dir/file"), "new").unwrap();
    fs::write(path("from/over"), "new").unwrap();
    symlink("x", path("from/link")).unwrap();

    fs::create_dir_all(path("to")).unwrap();
    fs::create_dir_all(path("outside")).unwrap();
    fs::write(path("precious"), "precious").unwrap();
    symlink(path("outside"), path("to/dir")).unwrap();
    symlink(path("precious"), path("to/over")).unwrap();
    fs::write(path("to/link"), "was a file").unwrap();
    fs::write(path("to/stays"), "stays").unwrap();
    fs::set_permissions(path("to"), fs::Permissions::from_mode(0o711)).unwrap();

    let (pieces, _) = sent(&path("from"));
    received(slices(&pieces), &path("to")).unwrap();

    assert_eq!(fs::read(path("to/dir/file")).unwrap(), b"new");
    assert_eq!(fs::read_link(path("to/link")).unwrap(), Path::new("x"));
    assert!(fs::symlink_metadata(path("to/over")).unwrap().is_file());
    assert_eq!(fs::read(path("to/stays")).unwrap(), b"stays");
    assert_eq!(fs::read(path("precious")).unwrap(), b"precious");
    assert_eq!(fs::read_dir(path("outside")).unwrap().count(), 0);
    let mode = fs::metadata(path("to")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o711, "the chosen directory is the user's");
    // The second time everything exists already.
    received(slices(&pieces), &path("to")).unwrap();
    assert_eq!(fs::read_dir(path("to")).unwrap().count(), 4);
}

#[test]
fn a_directory_in_the_way_of_a_file_is_an_error_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir_all(&from).unwrap();
    for name in ["file", "link"] {
        fs::create_dir_all(to.join(name)).unwrap();
    }
    for make in [
        |path: &Path| fs::write(path.join("file"), "x").unwrap(),
        |path: &Path| symlink("x", path.join("link")).unwrap(),
    ] {
        make(&from);
        let (pieces, _) = sent(&from);
        let error = received(slices(&pieces), &to).unwrap_err();
        assert!(
            matches!(error, TreeError::DirectoryInTheWay { .. }),
            "{error:?}"
        );
        let _ = fs::remove_file(from.join("file"));
    }
    assert_eq!(
        fs::read_dir(&to).unwrap().count(),
        2,
        "nothing is left over"
    );
}

#[test]
fn sockets_and_pipes_are_left_out_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir_all(&from).unwrap();
    fs::write(from.join("file"), "x").unwrap();
    let _socket = UnixListener::bind(from.join("socket")).unwrap();
    let (pieces, sent) = sent(&from);
    assert_eq!(sent.skipped, 1);
    assert_eq!(sent.first_skipped[0].path, b"socket");
    assert_eq!(sent.first_skipped[0].reason, "it is a socket");
    assert_eq!(received(slices(&pieces), &to).unwrap().entries, 2);

    let source = Source::Path(from.join("socket"));
    let error = sent_with(source, SendOptions::default()).unwrap_err();
    assert!(
        matches!(error, TreeError::NotTransferable { .. }),
        "{error:?}"
    );
}

#[test]
fn special_bits_are_dropped_unless_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    fs::create_dir_all(&from).unwrap();
    fs::write(from.join("program"), "x").unwrap();
    fs::set_permissions(from.join("program"), fs::Permissions::from_mode(0o4755)).unwrap();
    let (pieces, _) = sent(&from);
    for (special_bits, expected) in [
        (crate::transfer::SpecialBits::Drop, 0o755),
        (crate::transfer::SpecialBits::Keep, 0o4755),
    ] {
        let to = folder.path().join(format!("{expected:o}"));
        let options = ReceiveOptions {
            special_bits,
            ..ReceiveOptions::default()
        };
        received_with(slices(&pieces), Destination::Path(to.clone()), options).unwrap();
        let mode = fs::metadata(to.join("program")).unwrap().mode();
        assert_eq!(mode & 0o7777, expected);
    }
}

#[test]
fn owners_are_kept_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir_all(&from).unwrap();
    fs::write(from.join("file"), "x").unwrap();
    symlink("x", from.join("link")).unwrap();
    // Only root can change owners; other users keep their own.
    let is_root = rustix::process::geteuid().is_root();
    let owner = |id| is_root.then_some(id);
    for name in ["file", "link", ""] {
        lchown(from.join(name), owner(1234), owner(4321)).unwrap();
    }
    let (pieces, _) = sent(&from);
    let options = ReceiveOptions {
        ownership: Ownership::Recorded,
        ..ReceiveOptions::default()
    };
    received_with(slices(&pieces), Destination::Path(to.clone()), options).unwrap();
    for name in ["file", "link", ""] {
        let owner = |top: &Path| {
            let found = fs::symlink_metadata(top.join(name)).unwrap();
            (found.uid(), found.gid())
        };
        assert_eq!(owner(&from), owner(&to), "{name}");
    }
}

#[test]
fn ten_thousand_small_files_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    for directory in 0..100 {
        let directory = from.join(directory.to_string());
        fs::create_dir_all(&directory).unwrap();
        for file in 0..100 {
            fs::write(directory.join(file.to_string()), pattern(file * 10)).unwrap();
        }
    }
    let mut reported = 0;
    let (pieces, sent) = sent_with(
        Source::Path(from.clone()),
        SendOptions {
            progress: Some(&mut |progress| reported = progress.entries),
            ..SendOptions::default()
        },
    )
    .unwrap();
    assert!(pieces.len() < 50, "small files are gathered");
    received(slices(&pieces), &to).unwrap();
    assert_eq!(snapshot(&from), snapshot(&to));
    assert_eq!((sent.entries, reported), (10_101, 10_101));
}

#[test]
fn a_filter_takes_what_it_names_and_the_directories_on_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    for path in ["a/b", "a/c", "target"] {
        fs::create_dir_all(from.join(path)).unwrap();
    }
    for path in ["a/b/x.rs", "a/b/x.o", "a/c/y.o", "target/z.rs", "top.rs"] {
        fs::write(from.join(path), path).unwrap();
    }
    let filter = vmcell_wire::pattern::Filter::new(b"*.rs", b"/target/").unwrap();
    let options = SendOptions {
        filter,
        ..SendOptions::default()
    };
    let (pieces, _) = sent_with(Source::Path(from), options).unwrap();
    received(slices(&pieces), &to).unwrap();
    let seen = snapshot(&to);
    let paths: Vec<_> = seen.keys().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(paths, ["", "a", "a/b", "a/b/x.rs", "top.rs"]);
}

#[test]
fn a_tree_that_is_too_deep_or_too_large_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let mut path = folder.path().to_owned();
    for _ in 0..300 {
        path.push("d");
        fs::create_dir(&path).unwrap();
    }
    let source = || Source::Path(folder.path().to_owned());
    let limit = |options| match sent_with(source(), options) {
        Err(TreeError::Limit { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(limit(SendOptions::default()), TreeLimit::Depth);
    let mut options = SendOptions::default();
    options.limits.entries = 10;
    assert_eq!(limit(options), TreeLimit::Entries);

    fs::write(folder.path().join("a"), pattern(1000)).unwrap();
    let mut options = SendOptions::default();
    options.limits.bytes = 999;
    assert_eq!(limit(options), TreeLimit::Bytes);
}

#[test]
fn a_file_that_changes_while_it_is_sent_does_not_break_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    for length in [0_u64, 100_000, 5_000_000] {
        fs::create_dir_all(&from).unwrap();
        fs::write(from.join("file"), pattern(2_000_000)).unwrap();
        fs::write(from.join("later"), "later").unwrap();
        let mut stream = Vec::new();
        let mut is_changed = false;
        let source = Source::Path(from.clone());
        crate::transfer::send(source, SendOptions::default(), &mut |piece| {
            if !std::mem::replace(&mut is_changed, true) {
                let file = File::options().write(true).open(from.join("file")).unwrap();
                file.set_len(length).unwrap();
            }
            stream.extend_from_slice(&piece);
            Ok(())
        })
        .unwrap();
        received([&stream[..]], &to).unwrap();
        assert_eq!(fs::read(to.join("later")).unwrap(), b"later");
        let arrived = fs::metadata(to.join("file")).unwrap().len();
        assert!(arrived <= 2_000_000 && arrived >= length.min(256 * 1024 - 4096));
    }
}

#[test]
fn what_is_missing_or_gone_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::Path(folder.path().join("no\x1bne"));
    let error = sent_with(source, SendOptions::default()).unwrap_err();
    assert!(matches!(error, TreeError::Missing { .. }), "{error:?}");
    assert!(!error.to_string().contains('\x1b'));

    let source = Source::Path(folder.path().to_owned());
    let error = crate::transfer::send(source, SendOptions::default(), &mut |_| {
        Err(crate::transfer::SinkClosed)
    });
    assert!(matches!(error, Err(TreeError::Aborted)));
}
