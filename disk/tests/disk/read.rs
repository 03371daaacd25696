use std::{
    fs,
    io::{Read as _, Seek as _, SeekFrom},
};

use sha2::{Digest as _, Sha256};
use vmcell_disk::{DiskError, EntryKind, ReadOptions, WalkOptions};

use crate::sample::{Sample, pattern};

#[test]
fn every_file_has_the_bytes_that_it_had_in_the_tree() {
    let sample = Sample::new();
    let disk = sample.open();
    let mut files = 0;
    for entry in disk.walk("/", WalkOptions::new().with_sha256()).unwrap() {
        let entry = entry.unwrap();
        if entry.kind != EntryKind::File {
            assert_eq!(entry.sha256, None);
            continue;
        }
        let bytes = fs::read(sample.tree().join(&entry.path)).unwrap();
        assert!(disk.read(&entry.path).unwrap() == bytes, "{:?}", entry.path);
        let mut again = Vec::new();
        let mut reader = disk.reader_of(&entry).unwrap();
        reader.read_to_end(&mut again).unwrap();
        assert!(again == bytes, "{:?}", entry.path);
        let digest = <[u8; 32]>::from(Sha256::digest(&bytes));
        assert_eq!(entry.sha256, Some(digest));
        assert_eq!(disk.sha256(&entry.path).unwrap(), digest);
        files += 1;
    }
    assert!(files > 300);
}

#[test]
fn a_part_of_a_file_can_be_read_and_a_limit_is_no_cut() {
    let disk = Sample::new().open();
    let bytes = pattern(3_000_000);
    let part = ReadOptions::new().range(1_234_567, 700_000);
    let read = disk.read_with("data/large", part).unwrap();
    assert!(read == bytes[1_234_567..][..700_000]);
    let end = ReadOptions::new().range(2_999_999, 700_000).limit(1);
    let read = disk.read_with("data/large", end).unwrap();
    assert_eq!(read, bytes[2_999_999..]);
    let beyond = ReadOptions::new().range(3_000_001, 1);
    assert_eq!(disk.read_with("data/large", beyond).unwrap(), b"");
    let limited = ReadOptions::new().limit(2_999_999);
    let error = disk.read_with("data/large", limited).unwrap_err();
    let is_limit = matches!(
        error,
        DiskError::Limit {
            limit: 2_999_999,
            ..
        }
    );
    assert!(is_limit, "{error}");
}

#[test]
fn a_reader_reads_and_seeks() {
    let disk = Sample::new().open();
    let mut reader = disk.reader("/data/sparse").unwrap();
    assert_eq!(reader.size(), 6_000_000);
    let mut part = [1; 20];
    reader.seek(SeekFrom::Start(1_499_995)).unwrap();
    reader.read_exact(&mut part).unwrap();
    assert_eq!(&part, b"\0\0\0\0\0in the middle\0\0");
    assert_eq!(reader.seek(SeekFrom::End(-3)).unwrap(), 5_999_997);
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, [0; 3]);
    assert!(reader.seek(SeekFrom::Current(-9_000_000)).is_err());
    assert_eq!(reader.stream_position().unwrap(), 6_000_000);
}
