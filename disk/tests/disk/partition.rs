use std::{
    fs,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use vmcell_disk::{
    Disk, DiskError,
    image::partition::PartitionError::{Ambiguous, NoSuchPartition},
};

use crate::sample::Sample;

const MIB: u64 = 1 << 20;

/// Creates a disk with an MBR and two partitions, and copies the file system to
/// some of them.
fn disk(sample: &Sample, with_file_system: &[u64]) -> PathBuf {
    let path = sample.path("disk.img");
    let file = fs::File::create(&path).unwrap();
    file.set_len(100 * MIB).unwrap();
    for number in 0..2_u64 {
        let start = u32::try_from((1 + number * 40) * MIB / 512).unwrap();
        let length = u32::try_from(32 * MIB / 512).unwrap();
        let mut entry = [0; 16];
        entry[4] = 0x83;
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry[12..].copy_from_slice(&length.to_le_bytes());
        file.write_all_at(&entry, 446 + number * 16).unwrap();
    }
    file.write_all_at(&[0x55, 0xaa], 510).unwrap();
    let image = fs::read(sample.image()).unwrap();
    for number in with_file_system {
        file.write_all_at(&image, (1 + number * 40) * MIB).unwrap();
    }
    path
}

#[test]
fn the_only_partition_with_a_file_system_is_taken_and_others_by_number() {
    let sample = Sample::new();
    let path = disk(&sample, &[1]);
    let second = Disk::open(&path).unwrap();
    assert!(second.exists("etc/passwd").unwrap());
    assert_eq!(second.partitions().unwrap().len(), 2);
    assert_eq!(second.size(), 100 * MIB);
    let error = |path: &Path, index| {
        let opened = Disk::options().partition(index).open(path);
        opened.unwrap_err()
    };
    assert!(matches!(error(&path, 1), DiskError::FileSystem(_)));
    let missing = error(&path, 3);
    assert!(matches!(
        missing,
        DiskError::Partition(NoSuchPartition { index: 3, .. })
    ));

    let path = disk(&sample, &[0, 1]);
    let several = Disk::open(&path).unwrap_err();
    assert!(matches!(several, DiskError::Partition(Ambiguous(_))));
    assert!(Disk::options().partition(2).open(&path).is_ok());
}
