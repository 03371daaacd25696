//! Archives that only some programs write, and malformed ones.
#![allow(clippy::unwrap_used)]

use std::io::Read as _;

use proptest::prelude::*;
use tar::{EntryType, Header};
use vmcell_archive::{
    ArchiveError, ArchiveReader, Device, Entry, EntryKind, PaxBuf, SparseMap, Time,
};

/// Returns an entry with its data, padded to blocks.
fn entry(mut header: Header, name: &[u8], kind: u8, data: &[u8]) -> Vec<u8> {
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.as_old_mut().linkflag = [kind];
    header.set_size(data.len() as u64);
    header.set_cksum();
    let mut bytes = [header.as_bytes(), data].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn gnu(name: &[u8], kind: u8, data: &[u8]) -> Vec<u8> {
    entry(Header::new_gnu(), name, kind, data)
}

/// Returns the names and entries of an archive to which the end is added.
fn read(parts: &[Vec<u8>]) -> Result<Vec<(Vec<u8>, Entry)>, ArchiveError> {
    let archive = [parts.concat(), vec![0; 1024]].concat();
    let mut reader = ArchiveReader::new(&archive[..]);
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        entries.push((reader.name().to_vec(), entry));
    }
    Ok(entries)
}

fn read_one(parts: &[Vec<u8>]) -> (Vec<u8>, Entry) {
    let mut entries = read(parts).unwrap();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.remove(0)
}

#[test]
fn records_override_the_header() {
    let records = b"12 path=b/c\n12 size=513\n12 uid=7000\n12 gid=8000\n14 mtime=-0.5\n\
                    29 SCHILY.xattr.user.a=1\n2\n3\n33 SCHILY.xattr.trusted.b=secret\n";
    let mut data = gnu(b"a", b'0', &[1; 512]);
    data.extend_from_slice(&[1; 512]);
    let (name, entry) = read_one(&[gnu(b"pax", b'X', records), data]);
    assert_eq!(name, b"b/c");
    let kind = EntryKind::File {
        stored: 513,
        sparse: None,
    };
    assert_eq!(entry.kind, kind);
    assert_eq!((entry.uid, entry.gid, entry.mode), (7000, 8000, 0));
    let modified = Time {
        seconds: -1,
        nanoseconds: 500_000_000,
    };
    assert_eq!(entry.modified, modified);
    let xattrs = [(&b"user.a"[..], &b"1\n2\n3"[..]), (b"trusted.b", b"secret")];
    let found = entry
        .xattrs
        .iter()
        .map(|(name, value)| (&name[..], &value[..]));
    assert!(found.eq(xattrs), "{entry:?}");
}

#[test]
fn names_have_the_forms_of_all_formats() {
    let mut split = Header::new_ustar();
    split.as_ustar_mut().unwrap().prefix[..3].copy_from_slice(b"a/b");
    let mut other_version = split.clone();
    other_version.as_mut_bytes()[263..265].copy_from_slice(b"\0\0");
    for header in [split, other_version] {
        assert_eq!(read_one(&[entry(header, b"c", b'0', b"")]).0, b"a/b/c");
    }
    // GNU stores other fields in place of the prefix.
    let mut times = Header::new_gnu();
    times.as_gnu_mut().unwrap().set_atime(1);
    assert_eq!(read_one(&[entry(times, b"c", b'0', b"")]).0, b"c");

    let long = gnu(b"././@LongLink", b'L', b"long\0rest");
    let target = gnu(b"././@LongLink", b'K', b"target\0");
    let (name, entry) = read_one(&[long.clone(), target, gnu(b"lo", b'2', b"")]);
    let kind = EntryKind::Symlink {
        target: b"target".to_vec(),
    };
    assert_eq!((&name[..], entry.kind), (&b"long"[..], kind));
    let records = gnu(b"pax", b'x', b"12 path=pax\n");
    assert_eq!(read_one(&[records, long, gnu(b"a", b'0', b"")]).0, b"pax");
}

#[test]
fn kinds_are_known_by_their_types() {
    let mut device = Header::new_gnu();
    device.set_device_major(8).unwrap();
    device.set_device_minor(17).unwrap();
    let numbers = Some(Device {
        major: 8,
        minor: 17,
    });
    for (kind, archive) in [
        (EntryKind::Directory, gnu(b"old/", 0, b"")),
        (EntryKind::Directory, gnu(b"new", b'5', b"")),
        (EntryKind::Fifo, gnu(b"a", b'6', b"")),
        (EntryKind::Label, gnu(b"a", b'V', b"")),
        (EntryKind::Directory, gnu(b"a", b'D', b"names")),
        (EntryKind::Unknown(b'M'), gnu(b"a", b'M', b"data")),
        (EntryKind::BlockDevice(None), gnu(b"a", b'4', b"")),
        (
            EntryKind::CharacterDevice(numbers),
            entry(device, b"a", b'3', b""),
        ),
    ] {
        assert_eq!(read_one(&[archive]).1.kind, kind);
    }
}

/// Returns an entry whose header states a size although no data follows.
fn sized(mut header: Header, kind: u8, size: u64) -> Vec<u8> {
    header.as_old_mut().name[..4].copy_from_slice(b"name");
    header.as_old_mut().linkname[..6].copy_from_slice(b"target");
    header.as_old_mut().linkflag = [kind];
    header.set_size(size);
    header.set_cksum();
    header.as_bytes().to_vec()
}

#[test]
fn old_programs_stored_sizes_for_entries_without_data() {
    let target = b"target".to_vec();
    for header in [Header::new_old(), Header::new_gnu(), Header::new_ustar()] {
        for (kind, byte) in [
            (EntryKind::Directory, b'5'),
            (EntryKind::Fifo, b'6'),
            (
                EntryKind::HardLink {
                    target: target.clone(),
                },
                b'1',
            ),
            (
                EntryKind::Symlink {
                    target: target.clone(),
                },
                b'2',
            ),
        ] {
            let behind = entry(Header::new_old(), b"behind", 0, b"data");
            let entries = read(&[sized(header.clone(), byte, 4096), behind]).unwrap();
            assert_eq!(entries[0].1.kind, kind);
            assert_eq!(entries[1].0, b"behind");
        }
    }
}

#[test]
fn a_hard_link_whose_data_only_some_programs_expect_is_refused() {
    let records = gnu(b"pax", b'x', b"12 uid=7000\n");
    let link = sized(Header::new_ustar(), b'1', 512);
    let error = read(&[records, gnu(b"a", b'0', b""), link]).unwrap_err();
    assert!(matches!(error, ArchiveError::BadNumber), "{error:?}");
}

#[test]
fn an_old_directory_with_a_size_has_no_data() {
    let mut header = Header::new_old();
    header.as_old_mut().name[..4].copy_from_slice(b"dir/");
    header.set_size(512);
    header.set_cksum();
    let entries = read(&[header.as_bytes().to_vec(), gnu(b"dir/a", b'0', b"x")]).unwrap();
    assert_eq!(entries[0].1.kind, EntryKind::Directory);
    assert_eq!(entries[1].0, b"dir/a");
}

#[test]
fn checksums_of_signed_bytes_are_right() {
    let mut bytes = gnu(b"\xe4\xf6\xfc", b'0', b"data");
    let mut header = Header::new_gnu();
    header.as_mut_bytes().copy_from_slice(&bytes[..512]);
    // Each of the three bytes counts 256 less.
    let sum = header.cksum().unwrap() - 3 * 256;
    bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    assert_eq!(read_one(&[bytes.clone()]).0, b"\xe4\xf6\xfc");
    bytes[0] = b'a';
    let error = read(&[bytes]).unwrap_err();
    assert!(matches!(error, ArchiveError::NotAnArchive), "{error:?}");
}

#[test]
fn access_control_lists_of_solaris_are_skipped() {
    let list = gnu(b"a", b'A', b"1000004\0user::rwx,group::r-x\0");
    let (name, entry) = read_one(&[list, gnu(b"a", b'0', b"data")]);
    assert_eq!(name, b"a");
    assert!(matches!(entry.kind, EntryKind::File { stored: 4, .. }));
}

#[test]
fn sparse_files_have_maps() {
    let mut header = Header::new_gnu();
    let gnu_header = header.as_gnu_mut().unwrap();
    gnu_header.set_real_size(1000);
    gnu_header.sparse[0].set_offset(10);
    gnu_header.sparse[0].set_length(3);
    gnu_header.sparse[1].set_offset(1000);
    gnu_header.sparse[1].set_length(0);
    let records = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n28 GNU.sparse.realsize=1000\n";
    let map = |text: &[u8]| {
        let mut data = text.to_vec();
        data.resize(512, 0);
        [data, b"abc".to_vec()].concat()
    };
    let newer = |text| [gnu(b"pax", b'x', records), gnu(b"a", b'0', &map(text))].concat();
    let older = |more: &[(&str, &str)]| {
        let mut records = PaxBuf::default();
        for (key, value) in [("size", "1000"), ("numblocks", "2")].iter().chain(more) {
            records.put(&format!("GNU.sparse.{key}"), value.as_bytes());
        }
        records.put("path", b"GNUSparseFile.5/b");
        let records = gnu(b"pax", b'x', records.as_bytes());
        [records, gnu(b"a", b'0', b"abc")].concat()
    };
    let format_0_0 = older(&[
        ("offset", "10"),
        ("numbytes", "3"),
        ("offset", "1000"),
        ("numbytes", "0"),
        ("name", "a"),
    ]);
    let format_0_1 = older(&[("name", "a"), ("map", "10,3,1000,0")]);
    for archive in [
        entry(header.clone(), b"a", b'S', b"abc"),
        newer(b"2\n10\n3\n1000\n0\n"),
        format_0_0,
        format_0_1,
    ] {
        assert_eq!(read_one(std::slice::from_ref(&archive)).0, b"a");
        let sparse = Some(SparseMap {
            parts: vec![(10, 3)],
            length: 1000,
        });
        let kind = EntryKind::File { stored: 3, sparse };
        assert_eq!(read_one(&[archive]).1.kind, kind);
    }
    for wrong in [
        &b"1\n10\n4\n"[..],
        b"1\n998\n3\n",
        b"2\n10\n2\n11\n1\n",
        b"1\n18446744073709551615\n3\n",
        b"1\n99999999999999999999\n3\n",
        b"1\n\n3\n",
        b"x",
    ] {
        let error = read(&[newer(wrong)]).unwrap_err();
        assert!(matches!(error, ArchiveError::BadNumber), "{error:?}");
    }
    for wrong in [
        &[("map", "10,4")][..],
        &[("map", "998,3")],
        &[("map", "10,3,")],
        &[("map", "3,x")],
        &[("map", "")],
        &[("numbytes", "3")],
        &[("offset", "10"), ("numbytes", "-3")],
    ] {
        let error = read(&[older(wrong)]).unwrap_err();
        assert!(matches!(error, ArchiveError::BadNumber), "{error:?}");
    }
    let error = read(&[newer(b"1048577\n")]).unwrap_err();
    assert!(matches!(error, ArchiveError::HeadersTooLarge), "{error:?}");
    let without_length = gnu(b"a", b'S', b"");
    let without_version = gnu(b"pax", b'x', b"28 GNU.sparse.realsize=1000\n");
    let oldest = gnu(b"pax", b'x', b"22 GNU.sparse.map=0,3\n");
    let file = gnu(b"a", b'0', b"abc");
    for archive in [without_length, without_version, oldest] {
        let error = read(&[archive, file.clone()]).unwrap_err();
        assert!(
            matches!(error, ArchiveError::UnsupportedSparse),
            "{error:?}"
        );
    }
}

#[test]
fn an_error_names_the_header_that_is_wrong() {
    let first = gnu(b"first", b'0', b"");
    let archive = [first, gnu(b"PaxHeaders/second", b'x', b"11 size=-1\n")].concat();
    let mut reader = ArchiveReader::new(&archive[..]);
    reader.next_entry().unwrap();
    assert_eq!(&*reader.header_name(), b"first");
    assert!(reader.next_entry().is_err());
    assert_eq!(&*reader.header_name(), b"PaxHeaders/second");
    assert_eq!(reader.name(), b"first");
}

#[test]
fn nothing_behind_the_end_is_read() {
    let archive = [gnu(b"a", b'0', b"abc"), vec![0; 512], b"rest".to_vec()].concat();
    let mut reader = ArchiveReader::new(&archive[..]);
    let mut content = [0; 2];
    reader.next_entry().unwrap();
    reader.read_exact(&mut content).unwrap();
    assert_eq!(&content, b"ab");
    assert!(reader.next_entry().unwrap().is_none());
    let mut rest = Vec::new();
    reader.get_mut().read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"rest");
}

proptest! {
    /// Damages only what checksums do not protect: they are made anew.
    #[test]
    fn no_damage_makes_the_reader_panic(
        damage in prop::collection::vec((0..512_usize, any::<u8>()), 0..8),
        kind in prop::sample::select(&b"0157xXgLKSV"[..]),
        data: Vec<u8>,
    ) {
        let mut header = Header::new_gnu();
        for (index, byte) in damage {
            header.as_mut_bytes()[index] = byte;
        }
        header.set_entry_type(EntryType::new(kind));
        header.set_cksum();
        let archive = [&header.as_bytes()[..], &data, &[0; 2048]].concat();
        let mut reader = ArchiveReader::new(&archive[..]);
        while let Ok(Some(entry)) = reader.next_entry() {
            if let EntryKind::File { stored, sparse: Some(map) } = entry.kind {
                let sum: u64 = map.parts.iter().map(|(_, length)| length).sum();
                prop_assert!(sum == stored && sum <= map.length);
            }
        }
    }
}

#[test]
fn only_an_optional_end_may_be_missing() {
    let archive = [gnu(b"a", b'0', b"1"), gnu(b"b", b'0', b"23")].concat();
    let names = |bytes: &[u8], is_optional: bool| {
        let mut reader = ArchiveReader::new(bytes);
        if is_optional {
            reader = reader.with_optional_end();
        }
        let mut names = Vec::new();
        while let Some(_entry) = reader.next_entry()? {
            names.push(reader.name().to_vec());
        }
        Ok::<_, ArchiveError>(names)
    };
    let padded = archive.len();
    // The whole last block, and its bytes alone.
    for length in [padded, padded - 510] {
        let bytes = &archive[..length];
        assert_eq!(names(bytes, true).unwrap(), [b"a", b"b"]);
        assert!(matches!(names(bytes, false), Err(ArchiveError::Truncated)));
    }
    // In a file, and in a header.
    for length in [padded - 511, padded - 700] {
        let cut = names(&archive[..length], true);
        assert!(matches!(cut, Err(ArchiveError::Truncated)), "{length}");
    }
}
