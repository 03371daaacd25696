//! Contents after a replay.

use super::{
    super::sample::{compare, sample},
    *,
};

#[test]
fn a_tree_that_is_only_in_the_journal_is_read() {
    let tree = sample();
    for (journal, options) in KINDS {
        // Two images that differ only in the tree.
        let fixed = [
            "-U",
            "12345678-1234-5678-9abc-def012345678",
            "-E",
            "hash_seed=12345678-1234-5678-9abc-def012345678",
        ];
        let all: Vec<_> = options.iter().chain(&fixed).copied().collect();
        let logged = JournaledImage::new(journal, &all);
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

        // Without the journal, the tree is not there.
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
fn the_newest_copy_counts_and_revoked_ones_do_not() {
    for (journal, options) in KINDS {
        let logged = JournaledImage::new(journal, options);
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
        let logged = JournaledImage::new(journal, options);
        let mut copies = logged.copies(1, 9);
        copies[0].1[..4].copy_from_slice(&0xc03b_3998_u32.to_be_bytes());
        logged.write(&[transaction(&logged.image, "1", &copies, "")]);
        let ext4 = logged.image.open();
        // The whole block, and from each of its first bytes on.
        for skipped in 0..6 {
            let mut part = vec![0; logged.size - skipped];
            let offset = (logged.unused * logged.size + skipped) as u64;
            ext4.store.read(offset, &mut part).unwrap();
            assert_eq!(part, copies[0].1[skipped..], "{journal} {options:?}");
        }
    }
}

/// Returns the offsets of the journal's blocks in the image.
fn places(image: &Image, size: usize) -> Vec<usize> {
    let options = Options {
        replay: Replay::Never,
        ..Options::default()
    };
    let ext4 = image.try_open(options).unwrap();
    let mut places = Vec::new();
    for run in ext4.runs(&ext4.inode(8).unwrap()) {
        let run = run.unwrap();
        let RunPlace::Data(start) = run.place else {
            panic!("{run:?}");
        };
        let (start, length) = (start as usize, run.length as usize);
        places.extend((start..start + length).step_by(size));
    }
    places
}

#[test]
fn a_log_goes_on_at_the_start_of_its_ring_and_of_all_numbers() {
    let (journal, options) = KINDS[0];
    let logged = JournaledImage::new(journal, options);
    let transactions = (1..5).map(|byte| {
        let name = byte.to_string();
        transaction(&logged.image, &name, &logged.copies(2, byte), "")
    });
    logged.write(&transactions.collect::<Vec<_>>());

    let places = places(&logged.image, logged.size);
    let old = logged.image.bytes();
    let mut bytes = old.clone();
    let number =
        |place: usize, at: usize| u32::from_be_bytes(old[place + at..][..4].try_into().unwrap());
    let (header, ring) = (places[0], &places[1..]);
    assert_eq!(number(header, 0x14), 1, "the ring starts elsewhere");
    assert_eq!(number(header, 0x10) as usize, places.len());
    let start = number(header, 0x1c) as usize - 1;
    let sequence = number(header, 0x18);
    // The second transaction wraps around the end of the ring, and the third
    // has sequence number 0.
    let begin = ring.len() - 6;
    for (index, place) in ring.iter().enumerate() {
        let from = ring[(index + ring.len() - begin + start) % ring.len()];
        let mut block = old[from..from + logged.size].to_vec();
        if block[..4] == 0xc03b_3998_u32.to_be_bytes() {
            let later = number(from, 8).wrapping_sub(sequence);
            let renumbered = 0_u32.wrapping_sub(2).wrapping_add(later);
            block[8..12].copy_from_slice(&renumbered.to_be_bytes());
        }
        bytes[*place..place + logged.size].copy_from_slice(&block);
    }
    let begin = u32::try_from(begin + 1).unwrap();
    bytes[header + 0x1c..header + 0x20].copy_from_slice(&begin.to_be_bytes());
    bytes[header + 0x18..header + 0x1c].copy_from_slice(&0_u32.wrapping_sub(2).to_be_bytes());

    let ext4 = Ext4::open(bytes, Options::default()).unwrap();
    assert_eq!(replayed(&ext4), (4, 2));
    assert_eq!(logged.read(&ext4, logged.unused), vec![4; logged.size]);
}

#[test]
fn a_file_system_that_has_grown_only_in_the_journal_is_read() {
    let tree = sample();
    let image = Image::new(&["-t", "ext3", "-b", "1024"], 24, Some(tree.path()));
    let length = 40 << 20;
    let file = fs::OpenOptions::new()
        .write(true)
        .open(image.path())
        .unwrap();
    file.set_len(length).unwrap();
    let grown = image.folder.path().join("grown");
    fs::copy(image.path(), &grown).unwrap();
    run(tool("resize2fs").arg("-f").arg(&grown));
    // A file of one block beyond the old end.
    let file = image.file("content", &[b'x'; 1024]);
    let place = 39_000;
    let commands = format!(
        "write {file} new\nset_inode_field new block[0] {place}\nzap_block -p 0x61 {place}\n"
    );
    let script = image.file("more", commands.as_bytes());
    run(tool("debugfs").args(["-w", "-f", &script]).arg(&grown));
    let old = image.bytes();
    let blocks = changes(&old, &fs::read(&grown).unwrap(), 1024);
    assert!(blocks.iter().any(|(number, _)| *number == place));

    // Put all changes into the journal, then restore the old blocks.
    let commands = format!("jo\n{}jc\n", transaction(&image, "1", &blocks, ""));
    let script = image.file("journal", commands.as_bytes());
    run(tool("debugfs").args(["-w", "-f", &script]).arg(&grown));
    let mut bytes = fs::read(&grown).unwrap();
    for (number, _) in &blocks {
        let block = number * 1024..(number + 1) * 1024;
        bytes[block.clone()].copy_from_slice(&old[block]);
    }
    const NEEDS_RECOVERY: u8 = 4;
    bytes[1024 + 0x60] |= NEEDS_RECOVERY;

    let ext4 = Ext4::open(bytes, Options::default()).unwrap();
    assert_eq!(replayed(&ext4), (1, blocks.len()));
    assert_eq!(ext4.info().blocks, length >> 10);
    assert_eq!(content(&ext4, &find(&ext4, "new")), [b'a'; 1024]);
    let file = find(&ext4, "file-300000");
    assert!(content(&ext4, &file) == fs::read(tree.path().join("file-300000")).unwrap());
}
