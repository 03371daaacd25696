use vmcell_disk::{Comparison, DiffSide, DiskChangeKind, ext4::JournalState};

use crate::sample::{Sample, debugfs_output, open};

/// A block that is replayed from the journal is not the one that both disks
/// share.
#[test]
fn what_only_the_journal_has_changed_is_a_difference() {
    let sample = Sample::new();
    let block = debugfs_output(&sample.image(), "bmap /src/main.rs 0");
    let block = block.trim();
    let mut bytes = b"fn main() {\n    println!(\"jello\");\n}\n".to_vec();
    bytes.resize(4096, 0);
    let file = sample.file("block", &bytes);
    let commands = format!("jo -c -v 3\njw -b {block} {file}\njc\n");
    let (base, child) = (sample.open(), open(&sample.child(&commands)));
    let journal = child.info().journal;
    assert!(matches!(journal, JournalState::Replayed { .. }));
    assert!(child.read("src/main.rs").unwrap() != base.read("src/main.rs").unwrap());

    let (old, new) = (DiffSide::disk(&base, "/"), DiffSide::disk(&child, "/"));
    let diff = Comparison::new(old, new).run().unwrap();
    let kinds: Vec<_> = diff.changes().iter().map(|change| change.kind()).collect();
    assert_eq!(kinds, [DiskChangeKind::Modified; 2], "{:?}", diff.changes());
}
