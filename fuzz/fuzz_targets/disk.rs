//! For an arbitrary disk image, every operation terminates within its limits and
//! without a panic, and no error text contains control characters.
//!
//! The input is an image: qcow2 if it has its magic, else raw. The fuzzer cannot
//! compute checksums, so most of its changes would be rejected: checksums are
//! verified only for images of an odd length.
#![no_main]

use std::{io, path::PathBuf, sync::LazyLock, time::Duration};

use libfuzzer_sys::fuzz_target;
use vmcell_disk::{
    ArchiveFormat, Comparison, DiffSide, Disk, DiskError, DiskLimits, Find, Grep, TreeLimits,
    WalkOptions,
};

/// The image file, rewritten for each input.
static IMAGE: LazyLock<PathBuf> = LazyLock::new(|| {
    let name = format!("vmcell-fuzz-disk-{}", std::process::id());
    std::env::temp_dir().join(name)
});

fuzz_target!(|input: &[u8]| {
    std::fs::write(&*IMAGE, input).expect("the folder for temporary files can be written");
    let mut limits = DiskLimits::default();
    limits.entries = 10_000;
    limits.bytes = 64 << 20;
    limits.memory = 16 << 20;
    limits.time = Duration::from_secs(2);
    let mut options = Disk::options().limits(limits);
    if input.len() % 2 == 0 {
        options = options.ignore_checksums();
    }
    match options.open(&*IMAGE) {
        Ok(disk) => use_everything(&disk),
        Err(error) => check(&error),
    }
});

fn use_everything(disk: &Disk) {
    let _ = (disk.info(), disk.layers(), disk.partitions());
    for walk in [
        WalkOptions::new().with_sha256(),
        WalkOptions::new().unsorted(),
    ] {
        let Ok(entries) = disk.walk("/", walk) else {
            continue;
        };
        for entry in entries.take(1000) {
            match entry {
                Ok(entry) => {
                    let _ = disk.stat(&entry.path).map_err(|error| check(&error));
                    let _ = disk.details(&entry.path).map_err(|error| check(&error));
                    let _ = disk.xattrs(&entry.path).map_err(|error| check(&error));
                }
                Err(problem) => check(&problem.error),
            }
        }
    }
    let _ = disk.usage("/").map_err(|error| check(&error));
    let _ = disk.find("/", Find::new().name("*a*")).map(Iterator::count);
    let _ = disk.grep("/", &Grep::new("a.c")).map(Iterator::count);
    let mut limits = TreeLimits::default();
    limits.bytes = 16 << 20;
    let export = disk.export_archive_to("/", io::sink(), ArchiveFormat::Tar);
    let _ = export.limits(limits).run().map_err(|error| check(&error));
    let (old, new) = (DiffSide::disk(disk, "/"), DiffSide::disk(disk, "/"));
    if let Ok(diff) = Comparison::new(old, new).run() {
        assert!(diff.is_empty(), "a disk differs from itself: {diff:?}");
    }
}

fn check(error: &DiskError) {
    let mut next: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        assert!(!text.chars().any(char::is_control), "{text:?}");
        next = error.source();
    }
}
