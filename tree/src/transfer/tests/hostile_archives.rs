use std::fs;

use proptest::prelude::*;
use tar::{EntryType, Header};

use super::{archives::sent_archive, received, slices, snapshot::snapshot};
use crate::transfer::{ArchiveProblem, SendOptions, Source, TreeError, TreeLimit};

/// An archive that a test builds, valid or not.
#[derive(Default)]
pub(super) struct Archive(Vec<u8>);

impl Archive {
    /// Adds an entry with any values in its header.
    fn entry(mut self, kind: EntryType, name: &[u8], link: &[u8], size: u64, data: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link);
        header.set_entry_type(kind);
        // Users other than root must be able to read the result.
        header.set_mode(0o755);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(size);
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub(super) fn file(self, name: &[u8], data: &[u8]) -> Self {
        self.entry(EntryType::Regular, name, b"", data.len() as u64, data)
    }

    fn directory(self, name: &[u8]) -> Self {
        self.entry(EntryType::Directory, name, b"", 0, b"")
    }

    fn symlink(self, name: &[u8], to: &[u8]) -> Self {
        self.entry(EntryType::Symlink, name, to, 0, b"")
    }

    fn hard_link(self, name: &[u8], to: &[u8]) -> Self {
        self.entry(EntryType::Link, name, to, 0, b"")
    }

    fn pax(self, records: &[u8]) -> Self {
        let size = records.len() as u64;
        self.entry(EntryType::XHeader, b"pax", b"", size, records)
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}

#[test]
fn hostile_archives_are_refused_by_the_entry_that_is_wrong() {
    use ArchiveProblem::*;
    let start = Archive::default;
    let long_entry = vec![b'x'; 300_000];
    for (problem, entry, archive) in [
        (
            ParentName,
            "/../etc/passwd",
            start().file(b"/../etc/passwd", b"x").end(),
        ),
        (BadName, "/", start().symlink(b"/", b"x").end()),
        (
            ParentName,
            "a/../../b",
            start().file(b"a/../../b", b"x").end(),
        ),
        (ParentName, "..", start().directory(b"..").end()),
        (BadName, "test.tar", start().file(b"", b"x").end()),
        (BadName, "./", start().symlink(b"./", b"x").end()),
        (
            BadName,
            "a\u{fffd}b",
            start().pax(b"12 path=a\0b\n").file(b"a", b"x").end(),
        ),
        (
            NotInDirectory,
            "a/b",
            start().symlink(b"a", b"/etc").file(b"a/b", b"x").end(),
        ),
        (
            NotInDirectory,
            "a/b/c",
            start().file(b"a", b"x").directory(b"a/b/c").end(),
        ),
        (
            KindChanged,
            "a/",
            start().symlink(b"a", b"/etc").directory(b"a/").end(),
        ),
        (
            KindChanged,
            "a",
            start().directory(b"a/").file(b"a", b"x").end(),
        ),
        (
            KindChanged,
            "a",
            start().file(b"a/b", b"x").symlink(b"a", b"/").end(),
        ),
        (
            BadHardLink,
            "a",
            start().hard_link(b"a", b"/etc/passwd").end(),
        ),
        (BadHardLink, "a", start().hard_link(b"a", b"../b").end()),
        (
            BadHardLink,
            "a",
            start().hard_link(b"a", b"later").file(b"later", b"").end(),
        ),
        (
            BadHardLink,
            "a",
            start().file(b"a", b"").hard_link(b"a", b"a").end(),
        ),
        (
            BadHardLink,
            "b",
            start()
                .symlink(b"a", b"/etc/passwd")
                .hard_link(b"b", b"a")
                .end(),
        ),
        (BadSymlinkTarget, "a", start().symlink(b"a", b"").end()),
        // Nothing follows a symbolic link, whatever its header states.
        (
            Damaged,
            "a",
            start()
                .entry(EntryType::Symlink, b"a", b"x", 5, b"hello")
                .end(),
        ),
        (
            BadNumber,
            "test.tar",
            start().pax(b"11 size=-1\n").file(b"a", b"").end(),
        ),
        (
            Truncated,
            "a",
            start()
                .entry(EntryType::Regular, b"a", b"", 5000, b"short")
                .0,
        ),
        (
            Truncated,
            "a",
            start()
                .entry(EntryType::Regular, b"a", b"", 100_000, b"short")
                .end(),
        ),
        (Truncated, "a", start().file(b"a", b"no end").0),
        (Truncated, "test.tar", Vec::new()),
        (NotAnArchive, "test.tar", vec![b'x'; 5000]),
        (
            Damaged,
            "a",
            start()
                .entry(EntryType::Regular, b"a", b"", 2, &[b'x'; 1000])
                .end(),
        ),
        (
            Damaged,
            "test.tar",
            start().pax(b"999 path=a\n").file(b"a", b"").end(),
        ),
        (HeadersTooLarge, "test.tar", start().pax(&long_entry).end()),
        (
            HeadersTooLarge,
            "test.tar",
            (0..20).fold(start(), |archive, _| archive.pax(b"")).end(),
        ),
        (
            Unsupported,
            "a",
            start()
                .pax(b"22 GNU.sparse.major=0\n")
                .file(b"a", b"x")
                .end(),
        ),
        (
            BadNumber,
            "a",
            start()
                .pax(b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n25 GNU.sparse.realsize=5\n")
                .file(b"a", b"1\n3\n9\n")
                .end(),
        ),
        (
            Damaged,
            "test.tar",
            vec![0x1f, 0x8b, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
        ),
        (Truncated, "test.tar", vec![0x28, 0xb5, 0x2f, 0xfd]),
    ] {
        match sent_archive(archive).map(|(_, sent)| sent) {
            Err(TreeError::Archive {
                entry: found,
                problem: why,
            }) => {
                assert_eq!((why, found.as_str()), (problem, entry));
            }
            other => panic!("{problem:?} {entry}: {other:?}"),
        }
    }
}

#[test]
fn absolute_names_lose_their_slashes() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::default()
        .directory(b"/")
        .directory(b"//d/")
        .file(b"/d/a", b"text")
        .hard_link(b"/b", b"/d/a")
        .symlink(b"/c", b"/d/a")
        .end();
    let (pieces, _) = sent_archive(archive).unwrap();
    received(slices(&pieces), folder.path()).unwrap();
    for name in ["d/a", "b"] {
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"text");
    }
    let target = fs::read_link(folder.path().join("c")).unwrap();
    assert_eq!(target, std::path::Path::new("/d/a"));
}

#[test]
fn a_bomb_is_stopped_by_the_limits() {
    let zeros = std::io::Read::take(std::io::repeat(0), 1 << 26);
    let archive = Archive::default().entry(EntryType::Regular, b"bomb", b"", 1 << 26, b"");
    let mut whole = std::io::Read::chain(&archive.0[..], zeros);
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    std::io::copy(&mut whole, &mut encoder).unwrap();
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 200_000);

    let mut options = SendOptions::default();
    options.limits.bytes = 1 << 20;
    let source = Source::Archive {
        reader: Box::new(std::io::Cursor::new(bomb)),
        name: "bomb.tar.zst".into(),
    };
    let mut count = 0;
    let error = crate::transfer::send(source, options, &mut |_| {
        count += 1;
        Ok(())
    });
    let is_bytes = |error: &TreeError| {
        matches!(
            error,
            TreeError::Limit {
                what: TreeLimit::Bytes,
                ..
            }
        )
    };
    assert!(is_bytes(&error.unwrap_err()));
    assert_eq!(count, 0, "refused by what its header says");

    let mut many = Archive::default();
    for index in 0..100 {
        many = many.file(index.to_string().as_bytes(), b"");
    }
    let mut options = SendOptions::default();
    options.limits.entries = 50;
    let source = Source::Archive {
        reader: Box::new(std::io::Cursor::new(many.end())),
        name: "many.tar".into(),
    };
    let error = super::sent_with(source, options).unwrap_err();
    assert!(matches!(
        error,
        TreeError::Limit {
            what: TreeLimit::Entries,
            ..
        }
    ));
}

#[test]
fn duplicates_devices_and_odd_names_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let archive = Archive::default()
        .file(b".//a/./b", b"first")
        .symlink(b"a/c", b"/etc")
        .file(b"a/c", b"now a file")
        .hard_link(b"d", b"./a/b")
        .file(b"a/b", b"last")
        .entry(EntryType::Block, b"sda", b"", 0, b"")
        .entry(EntryType::XGlobalHeader, b"g", b"", 13, b"13 comment=x\n")
        .pax(b"28 path=e\n\x1b[2J newline.....\n")
        .file(b"x", b"escaped")
        .directory(b"a/")
        .directory(b"./")
        .end();
    let (pieces, sent) = sent_archive(archive).unwrap();
    assert_eq!(sent.skipped, 1);
    received(slices(&pieces), &to).unwrap();
    assert_eq!(fs::read(to.join("a/b")).unwrap(), b"last");
    assert_eq!(fs::read(to.join("a/c")).unwrap(), b"now a file");
    assert_eq!(fs::read(to.join("d")).unwrap(), b"first");
    let names = snapshot(&to);
    assert!(
        names
            .keys()
            .any(|path| path.to_string_lossy().contains("\u{1b}[2J"))
    );
}

#[test]
fn sparse_files_of_both_forms_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let pax = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n23 GNU.sparse.name=new\n30 GNU.sparse.realsize=100000\n";
    let mut map = b"2\n10\n3\n50000\n4\n".to_vec();
    map.resize(512, 0);
    map.extend_from_slice(b"abcdefg");
    let mut archive = Archive::default()
        .pax(pax)
        .file(b"GNUSparseFile.0/new", &map);

    let mut header = Header::new_gnu();
    header.as_old_mut().name[..3].copy_from_slice(b"old");
    header.set_entry_type(EntryType::GNUSparse);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(7);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.set_real_size(100_000);
    gnu.set_is_extended(true);
    gnu.sparse[0].set_offset(10);
    gnu.sparse[0].set_length(3);
    header.set_cksum();
    archive.0.extend_from_slice(header.as_bytes());
    let mut more = tar::GnuExtSparseHeader::new();
    more.sparse_mut()[0].set_offset(50_000);
    more.sparse_mut()[0].set_length(4);
    archive.0.extend_from_slice(more.as_bytes());
    archive.0.extend_from_slice(b"abcdefg");
    archive.0.resize(archive.0.len().next_multiple_of(512), 0);

    let (pieces, _) = sent_archive(archive.file(b"behind", b"x").end()).unwrap();
    received(slices(&pieces), folder.path()).unwrap();
    let mut expected = vec![0; 100_000];
    expected[10..13].copy_from_slice(b"abc");
    expected[50_000..50_004].copy_from_slice(b"defg");
    for name in ["new", "old"] {
        assert!(
            fs::read(folder.path().join(name)).unwrap() == expected,
            "{name}"
        );
    }
    assert_eq!(fs::read(folder.path().join("behind")).unwrap(), b"x");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// A damaged archive fails, or becomes a valid tree.
    #[test]
    fn damaged_archives_never_become_broken_streams(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let mut archive = Archive::default()
            .pax(b"18 path=long/name\n")
            .file(b"a", b"hello")
            .symlink(b"b", b"x")
            .hard_link(b"c", b"long/name")
            .directory(b"d/")
            .file(b"d/e", &[7; 40_000])
            .end();
        for (index, byte) in damage {
            let index = index.index(archive.len());
            archive[index] = byte;
        }
        if is_cut {
            archive.truncate(cut.index(archive.len()));
        }
        if let Ok((pieces, _)) = sent_archive(archive) {
            let folder = tempfile::tempdir().unwrap();
            received(slices(&pieces), &folder.path().join("to")).unwrap();
            prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
