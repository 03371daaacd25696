use std::{
    collections::BTreeMap,
    fs,
    io::{Cursor, Read as _, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use super::{
    Stream, received, received_with,
    round_trip::{fill, pattern},
    sent, sent_with, slices,
    snapshot::snapshot,
};
use crate::transfer::{
    ArchiveFormat, Destination, ReceiveOptions, Receiver, SendOptions, Source, TreeError, TreeLimit,
};

const FORMATS: [(ArchiveFormat, &str); 3] = [
    (ArchiveFormat::Tar, "a.tar"),
    (ArchiveFormat::TarGz, "a.tgz"),
    (ArchiveFormat::TarZst, "a.tar.zst"),
];

/// Written bytes that a test can read.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn archived(stream: &Stream, options: ReceiveOptions<'_>) -> Result<(Vec<u8>, u64), TreeError> {
    let shared = Shared::default();
    let destination = Destination::Archive {
        writer: Box::new(shared.clone()),
        format: ArchiveFormat::Tar,
        name: b"file".to_vec(),
    };
    let received = received_with([&stream.0[..]], destination, options)?;
    let bytes = shared.0.lock().unwrap().clone();
    Ok((bytes, received.resized))
}

/// Returns the contents that the `tar` crate reads from an archive.
fn contents(archive: &[u8]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut archive = tar::Archive::new(archive);
    let mut contents = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        contents.insert(entry.path().unwrap().into_owned(), bytes);
    }
    contents
}

#[test]
fn a_tree_survives_the_way_into_an_archive_and_out_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    fill(&from);
    let (pieces, _) = sent(&from);
    for (format, name) in FORMATS {
        let archive = folder.path().join("archives").join(name);
        assert_eq!(ArchiveFormat::from_path(&archive), Some(format));
        let destination = archive_at(&archive);
        received_with(slices(&pieces), destination, ReceiveOptions::default()).unwrap();

        let to = folder.path().join(format!("to {name}"));
        let source = Source::archive_file(&archive).unwrap();
        let (pieces, _) = sent_with(source, SendOptions::default()).unwrap();
        received(slices(&pieces), &to).unwrap();
        assert_eq!(snapshot(&from), snapshot(&to), "{name}");
    }
    assert_eq!(
        fs::read_dir(folder.path().join("archives"))
            .unwrap()
            .count(),
        3,
        "nothing is left over"
    );
}

#[test]
fn other_programs_read_our_archives() {
    let long = "long/".repeat(40) + "name";
    let mut stream = Stream::default().enter(b"");
    for _ in 0..40 {
        stream = stream.enter(b"long");
    }
    stream = stream.file(b"name", b"far away");
    for _ in 0..40 {
        stream = stream.leave();
    }
    stream = stream.parts(b"holes", 1030).raw(b"begin");
    let stream = stream.hole(1020).raw(b"ended").end_of_file().leave();
    let (bytes, _) = archived(&stream, ReceiveOptions::default()).unwrap();
    let contents = contents(&bytes);
    assert_eq!(contents[Path::new(&long)], b"far away");
    let holes = &contents[Path::new("holes")];
    assert_eq!(holes.len(), 1030);
    assert!(holes.starts_with(b"begin\0") && holes.ends_with(b"\0ended"));

    let (bytes, _) = archived(
        &Stream::default().file(b"", b"x"),
        ReceiveOptions::default(),
    )
    .unwrap();
    assert_eq!(self::contents(&bytes)[Path::new("file")], b"x");
}

#[test]
fn we_read_the_archives_of_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir_all(from.join("dir").join("x".repeat(150))).unwrap();
    let far = from.join("dir").join("x".repeat(150)).join("y".repeat(200));
    fs::write(&far, pattern(100_000)).unwrap();
    std::os::unix::fs::symlink("z".repeat(300), from.join("link")).unwrap();
    for path in [far, from.join("dir"), from.clone()] {
        let second = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        fs::File::open(path).unwrap().set_modified(second).unwrap();
    }
    let mut builder = tar::Builder::new(Vec::new());
    builder.follow_symlinks(false);
    builder.append_dir_all(".", &from).unwrap();
    let bytes = builder.into_inner().unwrap();
    let (pieces, _) = sent_archive(bytes).unwrap();
    received(slices(&pieces), &to).unwrap();
    let relevant = |top: &Path| {
        let mut seen = snapshot(top);
        // For these the `tar` crate keeps only whole seconds.
        seen.remove(Path::new("link"));
        seen.retain(|path, _| !path.ends_with("x".repeat(150)));
        seen
    };
    assert_eq!(relevant(&from), relevant(&to));
    assert_eq!(
        fs::read_link(from.join("link")).unwrap(),
        fs::read_link(to.join("link")).unwrap()
    );
}

pub(super) fn sent_archive(
    bytes: Vec<u8>,
) -> Result<(Vec<bytes::Bytes>, crate::transfer::Sent), TreeError> {
    let source = Source::Archive {
        reader: Box::new(Cursor::new(bytes)),
        name: PathBuf::from("test.tar"),
    };
    sent_with(source, SendOptions::default())
}

#[test]
fn directories_get_their_times_although_the_archive_comes_back_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let mut builder = tar::Builder::new(Vec::new());
    let mut put = |path: &str, kind, mode| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(1_000_000);
        header.set_size(0);
        builder.append_data(&mut header, path, &b""[..]).unwrap();
    };
    use tar::EntryType::{Directory, Regular};
    put("./a/", Directory, 0o555);
    put("./a-b/", Directory, 0o700);
    put("./a/late/", Directory, 0o711);
    put("./a-b/file", Regular, 0o600);
    put("./a/late/file", Regular, 0o600);
    put("./a/file", Regular, 0o600);
    put("implied/file", Regular, 0o600);
    put("./a-b/file", Regular, 0o640);
    let (pieces, _) = sent_archive(builder.into_inner().unwrap()).unwrap();
    received(slices(&pieces), &to).unwrap();

    use std::os::unix::fs::MetadataExt as _;
    for (path, mode) in [("a", 0o555), ("a-b", 0o700), ("a/late", 0o711)] {
        let found = fs::metadata(to.join(path)).unwrap();
        assert_eq!((found.mode() & 0o777, found.mtime()), (mode, 1_000_000));
    }
    let mode = fs::metadata(to.join("a-b/file")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o640, "the last of two counts");
    assert!(to.join("implied/file").exists());
    // So that an unprivileged user can remove it.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(to.join("a"), open).unwrap();
}

#[test]
fn a_file_of_another_length_than_announced_is_cut_or_filled() {
    let stream = Stream::default()
        .enter(b"")
        .parts(b"short", 5)
        .raw(b"ab")
        .end_of_file()
        .parts(b"long", 3)
        .raw(b"abcdef")
        .hole(5000)
        .end_of_file()
        .parts(b"right", 3)
        .raw(b"abc")
        .end_of_file()
        .leave();
    let (bytes, resized) = archived(&stream, ReceiveOptions::default()).unwrap();
    assert_eq!(resized, 2);
    let contents = contents(&bytes);
    assert_eq!(contents[Path::new("short")], b"ab\0\0\0");
    assert_eq!(contents[Path::new("long")], b"abc");
    assert_eq!(contents[Path::new("right")], b"abc");
}

#[test]
fn a_guest_cannot_fill_the_disk_with_what_it_only_announces() {
    let limited = || {
        let mut options = ReceiveOptions::default();
        options.limits.bytes = 1000;
        options
    };
    let announced = Stream::default().parts(b"", 1 << 60);
    let in_two = Stream::default()
        .enter(b"")
        .parts(b"a", 600)
        .end_of_file()
        .parts(b"b", 600);
    let too_long = Stream::default().parts(b"", 5).hole(600).hole(600);
    for stream in [announced, in_two, too_long] {
        let error = archived(&stream, limited()).unwrap_err();
        let what = TreeLimit::Bytes;
        assert!(
            matches!(error, TreeError::Limit { what: found, .. } if found == what),
            "{error:?}"
        );
    }
}

#[test]
fn archives_hold_no_name_twice_and_no_link_to_what_is_no_file() {
    let start = || Stream::default().enter(b"");
    for stream in [
        start().file(b"a", b"").file(b"a", b""),
        start().symlink(b"a", b"/etc").enter(b"a"),
        start()
            .symlink(b"a", b"/etc")
            .record(&vmcell_wire::files::TreeRecord::Enter {
                name: b"a",
                meta: None,
            }),
        start().symlink(b"a", b"/etc").hard_link(b"b", b"a/passwd"),
        start().symlink(b"a", b"/etc/passwd").hard_link(b"b", b"a"),
        start().hard_link(b"b", b"a"),
    ] {
        let error = archived(&stream, ReceiveOptions::default()).unwrap_err();
        assert!(matches!(error, TreeError::Malformed { .. }), "{error:?}");
    }
}

#[test]
fn an_archive_that_is_not_finished_leaves_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar.zst");
    fs::write(&path, "old").unwrap();
    let destination = archive_at(&path);
    let mut receiver = Receiver::new(destination, ReceiveOptions::default()).unwrap();
    let stream = Stream::default().enter(b"").file(b"a", &[1; 1000]);
    receiver.push(&stream.0).unwrap();
    assert!(receiver.finish().is_err());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Returns an archive file as destination, with the format of its extension.
fn archive_at(path: &std::path::Path) -> Destination {
    Destination::ArchiveFile {
        path: path.to_owned(),
        format: crate::transfer::ArchiveFormat::from_path(path).unwrap(),
        name: b"x".to_vec(),
    }
}
