//! Replays that end early or are refused.

use super::*;

#[test]
fn what_was_not_committed_never_happened() {
    for (journal, options) in KINDS {
        let logged = JournaledImage::new(journal, options);
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
fn a_writer_that_was_interrupted_has_damaged_nothing() {
    let (journal, options) = KINDS[3];
    let logged = JournaledImage::new(journal, options);
    logged.write(&[
        transaction(&logged.image, "1", &logged.copies(1, 1), ""),
        transaction(&logged.image, "2", &logged.copies(5, 2), "-c"),
    ]);
    // One of the copies did not reach the disk.
    let mut bytes = logged.image.bytes();
    let copy = bytes
        .chunks(logged.size)
        .position(|block| block == vec![2; logged.size])
        .unwrap();
    bytes[copy * logged.size..][..logged.size].fill(0);
    let ext4 = Ext4::open(bytes, Options::default()).unwrap();
    assert_eq!(replayed(&ext4), (1, 1));
}

#[test]
fn a_copy_or_commit_with_a_wrong_checksum_ends_the_replay_and_is_told() {
    let (journal, options) = KINDS[3];
    let logged = JournaledImage::new(journal, options);
    let image = &logged.image;
    logged.write(&[
        transaction(image, "1", &logged.copies(1, 1), ""),
        transaction(image, "2", &logged.copies(1, 2), ""),
    ]);

    let copy = image
        .bytes()
        .chunks(logged.size)
        .position(|block| block == vec![2; logged.size])
        .unwrap()
        * logged.size;
    // The commit follows.
    for place in [copy + 20, copy + logged.size + 0x34] {
        let mut bytes = image.bytes();
        bytes[place] ^= 4;
        let ext4 = Ext4::open(bytes, Options::default()).unwrap();
        let JournalState::Replayed {
            transactions: 1,
            blocks: 1,
            damage: Some(damage),
        } = ext4.info().journal
        else {
            panic!("{:?}", ext4.info().journal);
        };
        assert_eq!(damage.problem, DamageKind::Checksum);
        assert_eq!(damage.structure, Structure::Journal);
        assert_eq!(logged.read(&ext4, logged.unused), vec![1; logged.size]);
    }
}

#[test]
fn a_descriptor_with_a_wrong_checksum_is_told_unless_it_is_left_over() {
    let (journal, options) = KINDS[3];
    let logged = JournaledImage::new(journal, options);
    let image = &logged.image;
    logged.write(&[
        transaction(image, "1", &logged.copies(1, 1), ""),
        transaction(image, "2", &logged.copies(1, 2), ""),
    ]);
    let bytes = image.bytes();
    let mut blocks = bytes.chunks(logged.size);
    let copy = blocks.position(|block| block == vec![2; logged.size]);
    let copy = copy.unwrap() * logged.size;
    // The checksum at the end of the descriptor.
    let mut damaged = bytes.clone();
    damaged[copy - 1] ^= 1;
    let ext4 = Ext4::open(damaged.clone(), Options::default()).unwrap();
    let [damage] = ext4.damage() else {
        panic!("{:?}", ext4.damage());
    };
    assert_eq!(damage.structure, Structure::Journal);
    assert_eq!(damage.problem, DamageKind::Checksum);
    assert_eq!(logged.read(&ext4, logged.unused), vec![1; logged.size]);

    // The time of the commit, before that of the first transaction.
    assert_ne!(bytes[copy - 2 * logged.size + 0x30..][..8], [0; 8]);
    damaged[copy + logged.size + 0x30..][..8].fill(0);
    let ext4 = Ext4::open(damaged, Options::default()).unwrap();
    assert_eq!(ext4.damage(), []);
}

#[test]
fn a_list_of_revoked_blocks_longer_than_its_block_is_damage() {
    let (journal, options) = KINDS[0];
    let logged = JournaledImage::new(journal, options);
    let image = &logged.image;
    logged.write(&[
        transaction(image, "1", &logged.copies(1, 1), ""),
        format!("jw -r {}\n", logged.unused),
    ]);
    let mut bytes = image.bytes();
    let magic = [0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 5];
    let mut blocks = bytes.chunks(logged.size);
    let revoke = blocks.position(|block| block.starts_with(&magic)).unwrap();
    bytes[revoke * logged.size + 12..][..4].fill(0xff);
    let ext4 = Ext4::open(bytes, Options::default()).unwrap();
    let problem = ext4.damage()[0].problem;
    assert_eq!(problem, DamageKind::Size(u32::MAX.into()));
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
    // The kernel sets this feature when it mounts.
    bytes[header + 0x2b] |= 0x20;
    let head = place(number(&bytes, 0x10) - number(&bytes, 0x54) + 1);
    bytes[head..head + 4].copy_from_slice(&[9, 0, 8, 0]);

    // Fast commits of a complete transaction are outdated.
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
fn a_journal_that_takes_too_long_is_not_replayed() {
    let (journal, options) = KINDS[0];
    let logged = JournaledImage::new(journal, options);
    logged.write(&[transaction(&logged.image, "1", &logged.copies(9, 1), "")]);
    let mut options = Options::default();
    options.limits.time = std::time::Duration::from_nanos(1);
    let error = logged.image.try_open(options).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Limit {
                what: Limit::Time,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_journal_longer_than_the_limit_is_not_replayed() {
    let (journal, options) = KINDS[0];
    let logged = JournaledImage::new(journal, options);
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
