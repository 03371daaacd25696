use std::{
    fs::File,
    io::Write as _,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use flate2::Crc;

use super::{
    super::partition::{Partition, PartitionError, PartitionKind, partitions, select},
    tools::{Folder, Rng},
};

use crate::ReadAt as _;

const MIB: u64 = 1 << 20;

/// Creates a disk and partitions it with `sfdisk`.
fn sfdisk(folder: &Folder, script: &str) -> PathBuf {
    let path = folder.path("disk");
    File::create(&path).unwrap().set_len(64 * MIB).unwrap();
    let mut child = Command::new("/usr/sbin/sfdisk")
        .arg("--quiet")
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sfdisk (of the package fdisk)");
    let mut input = child.stdin.take().unwrap();
    input.write_all(script.as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    path
}

/// Writes the magic number of an ext file system.
fn mark_ext(path: &Path, start: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(&[0x53, 0xef], start + 1024 + 0x38)
        .unwrap();
}

fn found(path: &Path) -> Vec<Partition> {
    partitions(&File::open(path).unwrap()).unwrap()
}

/// Summarizes partitions: number, start and length in MiB, type, file system.
fn summary(partitions: &[Partition]) -> Vec<(u32, u64, u64, String, bool)> {
    let one = |partition: &Partition| {
        let Partition {
            index,
            start,
            length,
            kind,
            has_ext_fs,
            ..
        } = partition;
        (
            *index,
            start / MIB,
            length / MIB,
            kind.to_string(),
            *has_ext_fs,
        )
    };
    partitions.iter().map(one).collect()
}

#[test]
fn an_mbr_with_logical_partitions_is_read() {
    let folder = Folder::new();
    let disk = sfdisk(
        &folder,
        "label: dos\nstart=1MiB, size=4MiB, type=82\nstart=8MiB, size=40MiB, type=5\n\
         start=10MiB, size=4MiB, type=83\nstart=20MiB, size=8MiB, type=7\n\
         start=30MiB, size=2MiB, type=83\nstart=50MiB, size=3MiB, type=e9\n",
    );
    mark_ext(&disk, 30 * MIB);
    assert_eq!(
        summary(&found(&disk)),
        [
            (1, 1, 4, "Linux swap".to_owned(), false),
            (3, 50, 3, "0xe9".to_owned(), false),
            (5, 10, 4, "Linux".to_owned(), false),
            (6, 20, 8, "NTFS or exFAT".to_owned(), false),
            (7, 30, 2, "Linux".to_owned(), true),
        ]
    );
    let window = select(File::open(&disk).unwrap(), None).unwrap();
    assert_eq!((window.start(), window.size()), (30 * MIB, 2 * MIB));
}

#[test]
fn a_gpt_is_read_and_its_backup_if_it_is_damaged() {
    let folder = Folder::new();
    let disk = sfdisk(
        &folder,
        "label: gpt\nstart=1MiB, size=4MiB, type=uefi\nstart=8MiB, size=16MiB, type=linux\n\
         start=30MiB, size=4MiB, type=12345678-9ABC-DEF0-1234-56789ABCDEF0\n",
    );
    mark_ext(&disk, 8 * MIB);
    let wanted = [
        (1, 1, 4, "EFI system".to_owned(), false),
        (2, 8, 16, "Linux".to_owned(), true),
        (
            3,
            30,
            4,
            "12345678-9abc-def0-1234-56789abcdef0".to_owned(),
            false,
        ),
    ];
    assert_eq!(summary(&found(&disk)), wanted);
    let file = File::options().write(true).open(&disk).unwrap();
    for damaged in [1024, 512 + 60, 512] {
        file.write_all_at(&[0x5a], damaged).unwrap();
        assert_eq!(summary(&found(&disk)), wanted, "damaged at {damaged}");
    }
    // Without both GPTs, the protective MBR is left.
    file.write_all_at(&[0x5a], 64 * MIB - 512).unwrap();
    let [protecting] = found(&disk).try_into().unwrap();
    assert_eq!(protecting.kind, PartitionKind::Mbr(0xee));
}

/// Creates a GPT with one partition. For disks with large sectors, which
/// `sfdisk` cannot create in files.
fn gpt(sector: u64, size: u64, first: u64, last: u64) -> Vec<u8> {
    let sum = |bytes: &[u8]| {
        let mut crc = Crc::new();
        crc.update(bytes);
        crc.sum().to_le_bytes()
    };
    let mut disk = vec![0; size as usize];
    let (header_at, table_at) = (sector as usize, 2 * sector as usize);
    let mut table = vec![0; 128 * 128];
    table[..16].copy_from_slice(&[7; 16]);
    table[32..40].copy_from_slice(&first.to_le_bytes());
    table[40..48].copy_from_slice(&last.to_le_bytes());
    let mut header = [0; 92];
    header[..8].copy_from_slice(b"EFI PART");
    header[12] = 92;
    header[72] = 2;
    header[80] = 128;
    header[84] = 128;
    header[88..].copy_from_slice(&sum(&table));
    let checksum = sum(&header);
    header[16..20].copy_from_slice(&checksum);
    disk[header_at..header_at + 92].copy_from_slice(&header);
    disk[table_at..table_at + table.len()].copy_from_slice(&table);
    // The protective MBR.
    disk[446 + 4] = 0xee;
    disk[446 + 8] = 1;
    disk[446 + 12] = 0xff;
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    disk
}

#[test]
fn a_logical_partition_that_was_removed_has_no_number() {
    let folder = Folder::new();
    let disk = sfdisk(
        &folder,
        "label: dos\nstart=8MiB, size=40MiB, type=5\nstart=10MiB, size=4MiB, type=83\n\
         start=20MiB, size=8MiB, type=83\n",
    );
    let file = File::options().write(true).open(&disk).unwrap();
    // What fdisk leaves of a removed first logical partition.
    file.write_all_at(&[0; 16], 8 * MIB + 446).unwrap();
    assert_eq!(
        summary(&found(&disk)),
        [(5, 20, 8, "Linux".to_owned(), false)]
    );
}

#[test]
fn a_gpt_from_before_the_mbr_does_not_count() {
    let folder = Folder::new();
    let mut disk = gpt(512, 4 * MIB, 40, 80);
    disk[446..462].fill(0);
    disk[446 + 4] = 0x83;
    disk[446 + 9] = 8;
    disk[446 + 13] = 8;
    let [partition] = found(&folder.file("disk", &disk)).try_into().unwrap();
    assert_eq!((partition.start, partition.length), (MIB, MIB));
    assert_eq!(partition.kind, PartitionKind::Mbr(0x83));
}

#[test]
fn no_more_partitions_are_told_than_the_kernel_has() {
    let mut disk = gpt(512, 4 * MIB, 4000, 4001);
    let row = disk[1024..1024 + 128].to_vec();
    let table = row.repeat(4096);
    disk[1024..1024 + table.len()].copy_from_slice(&table);
    disk[512 + 80..512 + 84].copy_from_slice(&4096_u32.to_le_bytes());
    let sum = |bytes: &[u8]| {
        let mut crc = Crc::new();
        crc.update(bytes);
        crc.sum().to_le_bytes()
    };
    disk[512 + 88..512 + 92].copy_from_slice(&sum(&table));
    disk[512 + 16..512 + 20].fill(0);
    let checksum = sum(&disk[512..512 + 92]);
    disk[512 + 16..512 + 20].copy_from_slice(&checksum);
    assert_eq!(partitions(&disk).unwrap().len(), 255);
}

#[test]
fn sectors_may_have_4096_bytes() {
    let folder = Folder::new();
    let path = folder.file("gpt", gpt(4096, 4 * MIB, 256, 511));
    mark_ext(&path, MIB);
    let [partition] = found(&path).try_into().unwrap();
    assert_eq!((partition.start, partition.length), (MIB, MIB));
    assert!(partition.has_ext_fs);

    let mut mbr = vec![0; 4 * MIB as usize];
    mbr[446 + 4] = 0x83;
    mbr[446 + 9] = 1;
    mbr[446 + 13] = 1;
    mbr[510..512].copy_from_slice(&[0x55, 0xaa]);
    let path = folder.file("mbr", mbr);
    let [partition] = found(&path).try_into().unwrap();
    assert_eq!((partition.start, partition.length), (256 * 512, 256 * 512));
    mark_ext(&path, MIB);
    let [partition] = found(&path).try_into().unwrap();
    assert_eq!((partition.start, partition.length), (MIB, MIB));
}

#[test]
fn the_file_system_is_found_or_it_is_said_what_there_is() {
    let folder = Folder::new();
    let plain = folder.file("plain", vec![0; 4096]);
    let disk = || File::open(&plain).unwrap();
    let error = select(disk(), None).unwrap_err();
    assert!(matches!(error, PartitionError::NoFileSystem));
    mark_ext(&plain, 0);
    let window = select(disk(), None).unwrap();
    assert_eq!((window.start(), window.size()), (0, 4096));
    let error = select(disk(), Some(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the disk has no partition 1: it has none"
    );

    let path = sfdisk(
        &folder,
        "label: gpt\nsize=4MiB, type=linux\nsize=4MiB, type=linux\n",
    );
    let disk = || File::open(&path).unwrap();
    let error = select(disk(), None).unwrap_err();
    assert!(
        matches!(&error, PartitionError::NoExtFileSystem(found) if found.len() == 2),
        "{error}"
    );
    mark_ext(&path, 5 * MIB);
    assert_eq!(select(disk(), None).unwrap().start(), 5 * MIB);
    assert_eq!(select(disk(), Some(1)).unwrap().start(), MIB);
    mark_ext(&path, MIB);
    let error = select(disk(), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "several partitions have a file system, choose one: \
         1 (Linux, 4194304 bytes, ext); 2 (Linux, 4194304 bytes, ext)"
    );
    assert_eq!(select(disk(), Some(2)).unwrap().start(), 5 * MIB);
    let error = select(disk(), Some(3)).unwrap_err();
    assert!(
        matches!(error, PartitionError::NoSuchPartition { index: 3, .. }),
        "{error}"
    );
}

#[test]
fn tables_that_make_no_sense_end() {
    let folder = Folder::new();
    // A logical partition whose next table is its own.
    let disk = sfdisk(
        &folder,
        "label: dos\nstart=8MiB, size=40MiB, type=5\nstart=10MiB, size=4MiB, type=83\n",
    );
    let file = File::options().write(true).open(&disk).unwrap();
    let mut row = [0; 16];
    row[4] = 5;
    row[8] = 1;
    row[12] = 1;
    for table in [8 * MIB, 8 * MIB + 512] {
        file.write_all_at(&row, table + 446 + 16).unwrap();
        file.write_all_at(&[0x55, 0xaa], table + 510).unwrap();
    }
    assert_eq!(found(&disk).len(), 1);

    // Partitions beyond the end of the disk, of no length, with an end before
    // their start, and at the largest possible sector.
    for (first, last, wanted) in [
        (1 << 40, 1 << 41, None),
        (20, 10, None),
        (u64::MAX, u64::MAX, None),
        (0, u64::MAX, Some(MIB)),
        (2040, 1 << 30, Some(MIB - 2040 * 512)),
    ] {
        let disk = folder.file("gpt", gpt(512, MIB, first, last));
        let lengths: Vec<u64> = found(&disk)
            .iter()
            .map(|partition| partition.length)
            .collect();
        assert_eq!(lengths, Vec::from_iter(wanted), "{first} to {last}");
    }

    let whole = gpt(512, MIB, 40, 80);
    let mut rng = Rng::new(13);
    for _ in 0..2000 {
        let mut disk = whole.clone();
        for _ in 0..1 + rng.below(20) {
            let at = 446 + rng.below(512 + 92 - 446) as usize;
            let at = if (510..512).contains(&at) { 446 } else { at };
            disk[at] = rng.next() as u8;
        }
        for partition in partitions(&disk).unwrap() {
            assert!(partition.start + partition.length <= MIB, "{partition:?}");
        }
    }
}
