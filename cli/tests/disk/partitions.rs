//! Disks with partitions.

use std::{fs, path::PathBuf};

use serde_json::json;

use crate::{program::disk, sample::Sample};

const MIB: usize = 1 << 20;

/// Returns a disk with an MBR whose partitions are copies of the image.
fn partitioned(sample: &Sample, count: usize) -> PathBuf {
    let part = fs::read(sample.image()).unwrap();
    let mut bytes = vec![0; MIB];
    for number in 0..count {
        let entry = 446 + 16 * number;
        let sector = |bytes: usize| u32::try_from(bytes / 512).unwrap().to_le_bytes();
        let start = bytes.len();
        bytes[entry + 4] = 0x83;
        bytes[entry + 8..entry + 12].copy_from_slice(&sector(start));
        bytes[entry + 12..entry + 16].copy_from_slice(&sector(part.len()));
        bytes.extend_from_slice(&part);
    }
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    let path = sample.path("partitioned.raw");
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn the_only_file_system_is_found_and_of_several_one_is_named() {
    let sample = Sample::new();
    let one = partitioned(&sample, 1);
    let look = |image: &PathBuf, more: &[&str]| {
        let first = ["ls".as_ref(), image.as_os_str(), "/src/deep".as_ref()];
        disk(
            first
                .into_iter()
                .chain(more.iter().map(std::ffi::OsStr::new)),
        )
    };
    assert_eq!(look(&one, &[]).printed(), "er\n");
    let two = partitioned(&sample, 2);
    look(&two, &[]).assert_failed(125, "choose with --partition N");
    look(&two, &[]).assert_failed(125, "2 (Linux, 33554432 bytes, ext)");
    assert_eq!(look(&two, &["--partition", "2"]).printed(), "er\n");
    look(&two, &["--partition", "7"]).assert_failed(125, "no partition 7");

    let info = disk(["info".as_ref(), two.as_os_str()]);
    info.assert_failed(1, "choose with --partition N");
    let table = "PARTITION  START     SIZE  EXT  TYPE\n1          1048576   32M   yes  Linux\n";
    assert!(info.stdout().contains(table), "{info:?}");
    let info = disk(["info", two.to_str().unwrap(), "--partition", "1", "--json"]);
    assert_eq!(info.code(), 0, "{info:?}");
    assert_eq!(info.json()[0]["partitions"][1]["start"], json!(33 * MIB));
}
