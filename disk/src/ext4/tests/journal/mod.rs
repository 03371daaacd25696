//! Journals that wait, written by `debugfs`.

mod ends;
mod replay;

use super::*;

/// How `debugfs` writes a journal: without and with checksums of each kind.
const KINDS: [(&str, &[&str]); 5] = [
    ("", &["-t", "ext3", "-b", "1024"]),
    (
        "",
        &["-t", "ext4", "-b", "4096", "-O", "64bit,^metadata_csum"],
    ),
    ("-c -v 2", &["-t", "ext4", "-b", "1024", "-O", "^64bit"]),
    ("-c -v 3", &["-t", "ext4", "-b", "1024"]),
    ("-c -v 3", &["-t", "ext4", "-b", "4096", "-J", "size=8"]),
];

/// The blocks in which two images differ, but the journal and the superblock's
/// times do not matter.
fn changes(old: &[u8], new: &[u8], size: usize) -> Vec<(usize, Vec<u8>)> {
    assert_eq!(old.len(), new.len());
    old.chunks(size)
        .zip(new.chunks(size))
        .enumerate()
        .filter(|(_, (old, new))| old != new)
        .map(|(number, (_, new))| (number, new.to_vec()))
        .collect()
}

/// A command that writes those blocks into the journal.
fn transaction(image: &Image, name: &str, blocks: &[(usize, Vec<u8>)], more: &str) -> String {
    let numbers: Vec<_> = blocks
        .iter()
        .map(|(number, _)| number.to_string())
        .collect();
    let bytes: Vec<_> = blocks.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    let file = image.file(name, &bytes);
    format!("jw -b {} {more} {file}\n", numbers.join(","))
}

/// An image of which only the journal is written.
struct Logged {
    image: Image,
    /// How many bytes a block has.
    size: usize,
    /// The first of some blocks that nothing uses.
    unused: usize,
    open: String,
}

impl Logged {
    fn new(journal: &str, options: &[&str]) -> Self {
        let image = Image::new(options, 24, None);
        let info = image.open().info();
        Self {
            image,
            size: usize::try_from(info.block_size).unwrap(),
            unused: usize::try_from(info.blocks).unwrap() - 10,
            open: format!("jo {journal}\n"),
        }
    }

    /// Writes transactions, and marks the journal as one that waits.
    fn write(&self, transactions: &[String]) {
        self.image
            .change(&format!("{}{}jc\n", self.open, transactions.concat()));
    }

    /// New contents for some of the unused blocks.
    fn copies(&self, count: usize, byte: u8) -> Vec<(usize, Vec<u8>)> {
        (self.unused..self.unused + count)
            .map(|number| (number, vec![byte; self.size]))
            .collect()
    }

    fn read(&self, ext4: &Ext4, number: usize) -> Vec<u8> {
        let mut block = vec![0; self.size];
        let offset = (number * self.size) as u64;
        ext4.store.read(offset, &mut block).unwrap();
        block
    }
}

fn replayed(ext4: &Ext4) -> (u64, usize) {
    match ext4.info().journal {
        JournalState::Replayed {
            transactions,
            blocks,
            damage: None,
        } => (transactions, blocks),
        other => panic!("{other:?}"),
    }
}
