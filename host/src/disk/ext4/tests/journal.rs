use super::{
    sample::{compare, sample},
    *,
};

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

#[test]
fn a_tree_that_is_only_in_the_journal_is_read() {
    let tree = sample();
    for (journal, options) in KINDS {
        // Two images that only differ in the tree.
        let fixed = [
            "-U",
            "12345678-1234-5678-9abc-def012345678",
            "-E",
            "hash_seed=12345678-1234-5678-9abc-def012345678",
        ];
        let all: Vec<_> = options.iter().chain(&fixed).copied().collect();
        let logged = Logged::new(journal, &all);
        let image = &logged.image;
        let full = Image::new(&all, 24, Some(tree.path()));
        let blocks = changes(&image.bytes(), &full.bytes(), logged.size);
        assert!(blocks.len() > 100);
        let (first, second) = blocks.split_at(blocks.len() / 2);
        logged.write(&[
            transaction(image, "1", first, ""),
            transaction(image, "2", second, ""),
        ]);

        let before = image.bytes();
        let ext4 = image.open();
        let case = format!("{journal} {options:?}");
        assert_eq!(replayed(&ext4), (2, blocks.len()), "{case}");
        compare(&ext4, tree.path(), &case);
        assert!(!ext4.info().clean);
        let file = find(&ext4, "file-300000");
        assert!(
            ext4.runs(&file)
                .all(|run| ext4.is_in_journal(&run.unwrap()))
        );
        assert!(before == image.bytes(), "the image was written");

        // Without the journal there is nothing yet.
        let options = Options {
            replay: Replay::Never,
            ..Options::default()
        };
        let ext4 = image.try_open(options).unwrap();
        assert_eq!(ext4.info().journal, JournalState::Ignored);
        assert_eq!(everything(&ext4).len(), 1);
    }
}

#[test]
fn what_was_not_committed_never_happened() {
    for (journal, options) in KINDS {
        let logged = Logged::new(journal, options);
        logged.write(&[
            transaction(&logged.image, "1", &logged.copies(1, 1), ""),
            transaction(&logged.image, "2", &logged.copies(5, 2), "-c"),
        ]);
        let ext4 = logged.image.open();
        assert_eq!(replayed(&ext4), (1, 1), "{journal} {options:?}");
        assert_eq!(logged.read(&ext4, logged.unused), vec![1; logged.size]);
    }
}

#[test]
fn the_newest_copy_counts_and_revoked_ones_do_not() {
    for (journal, options) in KINDS {
        let logged = Logged::new(journal, options);
        let (image, unused) = (&logged.image, logged.unused);
        logged.write(&[
            transaction(image, "1", &logged.copies(4, 1), ""),
            transaction(image, "2", &logged.copies(3, 2), ""),
            // One of them is written again later.
            format!("jw -r {},{}\n", unused + 1, unused + 2),
            transaction(image, "3", &logged.copies(2, 3)[1..], ""),
        ]);
        let ext4 = image.open();
        assert_eq!(replayed(&ext4), (4, 3), "{journal} {options:?}");
        let blocks = (unused..unused + 4).map(|number| logged.read(&ext4, number));
        let expected = [2, 3, 0, 1].map(|byte| vec![byte; logged.size]);
        assert!(blocks.eq(expected), "{journal} {options:?}");
    }
}

#[test]
fn a_block_that_looks_like_one_of_the_journal_comes_back_as_it_was() {
    for (journal, options) in KINDS {
        let logged = Logged::new(journal, options);
        let mut copies = logged.copies(1, 9);
        copies[0].1[..4].copy_from_slice(&0xc03b_3998_u32.to_be_bytes());
        logged.write(&[transaction(&logged.image, "1", &copies, "")]);
        let ext4 = logged.image.open();
        // Whole, and from any byte on.
        for skipped in 0..6 {
            let mut part = vec![0; logged.size - skipped];
            let offset = (logged.unused * logged.size + skipped) as u64;
            ext4.store.read(offset, &mut part).unwrap();
            assert_eq!(part, copies[0].1[skipped..], "{journal} {options:?}");
        }
    }
}

#[test]
fn a_copy_with_a_wrong_checksum_ends_the_replay_and_is_told() {
    let (journal, options) = KINDS[3];
    let logged = Logged::new(journal, options);
    let image = &logged.image;
    logged.write(&[
        transaction(image, "1", &logged.copies(1, 1), ""),
        transaction(image, "2", &logged.copies(1, 2), ""),
    ]);

    let mut bytes = image.bytes();
    let copy = bytes
        .chunks(logged.size)
        .position(|block| block == vec![2; logged.size])
        .unwrap()
        * logged.size;
    bytes[copy + 20] ^= 4;
    let ext4 = Ext4::open(bytes, Options::default()).unwrap();
    let JournalState::Replayed {
        transactions: 1,
        blocks: 1,
        damage: Some(damage),
    } = ext4.info().journal
    else {
        panic!("{:?}", ext4.info().journal);
    };
    assert_eq!(damage.problem, Problem::Checksum);
    assert_eq!(damage.structure, Structure::Journal);
    assert_eq!(logged.read(&ext4, logged.unused), vec![1; logged.size]);
}

#[test]
fn fast_commits_that_wait_are_refused_by_name() {
    let features = "fast_commit,^metadata_csum";
    let image = Image::new(&["-t", "ext4", "-b", "1024", "-O", features], 24, None);
    let blocks = vec![(20_000, vec![5; 1024])];
    image.change(&format!(
        "jo\n{}jc\n",
        transaction(&image, "1", &blocks, "")
    ));
    assert_eq!(replayed(&image.open()), (1, 1));

    let options = Options {
        replay: Replay::Never,
        ..Options::default()
    };
    let ext4 = image.try_open(options).unwrap();
    let journal = ext4.inode(8).unwrap();
    let place = |block: u32| match ext4.runs_from(&journal, u64::from(block) * 1024).next() {
        Some(Ok(Run {
            place: RunPlace::Data(start),
            ..
        })) => usize::try_from(start).unwrap(),
        other => panic!("{other:?}"),
    };
    let mut bytes = image.bytes();
    let header = place(0);
    let number =
        |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[header + at..][..4].try_into().unwrap());
    // The kernel starts to use them when it mounts.
    bytes[header + 0x2b] |= 0x20;
    let head = place(number(&bytes, 0x10) - number(&bytes, 0x54) + 1);
    bytes[head..head + 4].copy_from_slice(&[9, 0, 8, 0]);

    // Those of a transaction that is complete are old.
    for (later, waits) in [(0, false), (1, true), (2, false)] {
        let transaction = number(&bytes, 0x18) + later;
        bytes[head + 8..head + 12].copy_from_slice(&transaction.to_le_bytes());
        match Ext4::open(bytes.clone(), Options::default()) {
            Ok(ext4) => assert_eq!((replayed(&ext4), waits), ((1, 1), false)),
            Err(error) => assert!(
                waits && error.to_string().contains("fast_commit"),
                "{error}"
            ),
        }
    }
}

#[test]
fn a_journal_longer_than_the_limit_is_not_replayed() {
    let (journal, options) = KINDS[0];
    let logged = Logged::new(journal, options);
    let transactions = (0..8).map(|byte| {
        let name = byte.to_string();
        transaction(&logged.image, &name, &logged.copies(2, byte), "")
    });
    logged.write(&transactions.collect::<Vec<_>>());
    let mut options = Options::default();
    options.limits.journal = 20;
    let error = logged.image.try_open(options).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Limit {
                what: Limit::Journal,
                limit: 20,
                ..
            }
        ),
        "{error}"
    );
}
