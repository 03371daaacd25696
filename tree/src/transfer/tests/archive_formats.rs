//! How the format of an archive is detected.

use std::fs;

use super::{archives::sent_archive, hostile_archives::Archive, received, slices};
use crate::transfer::{ArchiveProblem, OtherFormat, TreeError};

/// Returns a frame that zstd and lz4 skip.
fn skippable_frame(data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    [&[0x5a, 0x2a, 0x4d, 0x18], &length.to_le_bytes()[..], data].concat()
}

fn problem(bytes: Vec<u8>) -> ArchiveProblem {
    match sent_archive(bytes) {
        Err(TreeError::Archive { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn frames_before_the_data_of_zstd_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let tar = Archive::default().file(b"a", b"text").end();
    let zstd = zstd::encode_all(&tar[..], 1).unwrap();
    let archive = [
        skippable_frame(b""),
        skippable_frame(&[7; 300_000]),
        zstd,
        skippable_frame(b"behind"),
    ];
    let (pieces, _) = sent_archive(archive.concat()).unwrap();
    received(slices(&pieces), folder.path()).unwrap();
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"text");
    assert_eq!(problem(skippable_frame(b"data")), ArchiveProblem::Truncated);
}

#[test]
fn archives_of_other_formats_are_named() {
    for (start, format, text) in [
        (&b"\xfd7zXZ\0\0\x04"[..], OtherFormat::Xz, "with xz"),
        (b"BZh91AY&SY", OtherFormat::Bzip2, "with bzip2"),
        (b"\x04\x22\x4d\x18\x64", OtherFormat::Lz4, "with lz4"),
        (b"\x02\x21\x4c\x18", OtherFormat::Lz4, "with lz4"),
        (b"LZIP\x01\x0c", OtherFormat::Lzip, "with lzip"),
        (b"\x5d\0\0\x80\0\xff", OtherFormat::Lzma, "with lzma"),
        (b"\x89LZO\0\r\n\x1a\n\x10", OtherFormat::Lzop, "with lzop"),
        (b"LRZI\0\x06", OtherFormat::Lrzip, "with lrzip"),
        (b"\x1f\x9d\x90", OtherFormat::Compress, "with compress"),
        (b"PK\x03\x04\x14", OtherFormat::Zip, "a zip archive"),
        (b"PK\x05\x06\0", OtherFormat::Zip, "a zip archive"),
        (b"7z\xbc\xaf\x27\x1c\0", OtherFormat::SevenZip, "7-Zip"),
        (b"Rar!\x1a\x07\x01", OtherFormat::Rar, "a RAR archive"),
        (b"070701000", OtherFormat::Cpio, "a cpio archive"),
        (b"\xc7\x71\0", OtherFormat::Cpio, "a cpio archive"),
        (b"!<arch>\ndebian", OtherFormat::Ar, "an ar archive"),
    ] {
        for length in [start.len(), 5000] {
            let mut bytes = start.to_vec();
            bytes.resize(length, 0xee);
            let found = problem(bytes);
            assert_eq!(found, ArchiveProblem::OtherFormat(format));
            let message = found.to_string();
            assert!(message.contains(text), "{message}");
            assert!(message.contains("convert it"), "{message}");
        }
    }
    let framed = [skippable_frame(b"x"), b"\x04\x22\x4d\x18".to_vec()];
    let lz4 = ArchiveProblem::OtherFormat(OtherFormat::Lz4);
    assert_eq!(problem(framed.concat()), lz4);
}

#[test]
fn a_name_that_looks_like_another_format_is_a_name() {
    for name in [
        &b"BZh9"[..],
        b"LZIP",
        b"070701",
        b"!<arch>\n",
        b"PK\x03\x04",
    ] {
        let archive = Archive::default().file(name, b"text").end();
        assert_eq!(sent_archive(archive).unwrap().1.bytes, 4);
    }
}
