//! Journals that need recovery, written by `debugfs`.

mod ends;
mod replay;

use super::*;

/// The kinds of journal that `debugfs` writes: without checksums and with each
/// version of them.
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

/// Returns the blocks in which two images differ.
fn changes(old: &[u8], new: &[u8], size: usize) -> Vec<(usize, Vec<u8>)> {
    assert_eq!(old.len(), new.len());
    old.chunks(size)
        .zip(new.chunks(size))
        .enumerate()
        .filter(|(_, (old, new))| old != new)
        .map(|(number, (_, new))| (number, new.to_vec()))
        .collect()
}

/// Returns a `debugfs` command that writes these blocks into the journal.
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
struct JournaledImage {
    image: Image,
    /// The block size in bytes.
    size: usize,
    /// The first of ten unused blocks.
    unused: usize,
    open: String,
}

impl JournaledImage {
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

    /// Writes transactions and marks the journal as in need of recovery.
    fn write(&self, transactions: &[String]) {
        self.image
            .change(&format!("{}{}jc\n", self.open, transactions.concat()));
    }

    /// Returns new contents for the first `count` unused blocks.
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
