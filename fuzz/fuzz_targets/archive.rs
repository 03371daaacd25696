//! For arbitrary bytes, reading a tar archive ends without a panic, and no entry has more
//! bytes than its header says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmcell_archive::{ArchiveReader, EntryKind};

/// As long as this, a fuzzer tries what one header can do, and not how many fit.
const MAX_ENTRIES: usize = 1000;

fuzz_target!(|input: &[u8]| {
    for has_end in [true, false] {
        let mut archive = ArchiveReader::new(input);
        if !has_end {
            archive = archive.with_optional_end();
        }
        for _ in 0..MAX_ENTRIES {
            let Ok(Some(entry)) = archive.next_entry() else {
                break;
            };
            let _ = (archive.name().len(), archive.header_name().len());
            let stored = match entry.kind {
                EntryKind::File { stored, .. } => stored,
                // What follows these entries can be read, and is not used.
                EntryKind::Directory | EntryKind::Unknown(_) => input.len() as u64,
                _ => 0,
            };
            let mut read = 0_u64;
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = archive.read(&mut buffer) {
                read += count as u64;
                assert!(read <= stored, "{read} bytes of {stored}");
            }
        }
    }
});
