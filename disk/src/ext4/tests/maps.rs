use std::io::{Seek, SeekFrom, Write};

use super::{sample::random_bytes, *};

/// Creates a file with data in every other block of 4 KiB.
fn alternating(count: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut file = fs::File::create(folder.path().join("alternating")).unwrap();
    for index in 0..count {
        file.seek(SeekFrom::Start(index * 8192)).unwrap();
        file.write_all(&random_bytes(4096, index)).unwrap();
    }
    folder
}

/// Parses the leaves of an extent tree from the output of `debugfs`: first
/// block, first block on the disk, length, whether it is written.
fn leaves(listing: &str) -> Vec<(u64, u64, u64, bool)> {
    listing
        .lines()
        .skip(1)
        .filter_map(|line| {
            let words: Vec<_> = line
                .split([' ', '/', '-'])
                .filter(|word| !word.is_empty())
                .collect();
            let [level, depth, _, _, first, _, start, _, length, rest @ ..] = &words[..] else {
                return None;
            };
            let number = |word: &str| word.parse().unwrap();
            (level == depth).then(|| {
                (
                    number(first),
                    number(start),
                    number(length),
                    rest.is_empty(),
                )
            })
        })
        .collect()
}

fn our_leaves(ext4: &Ext4, inode: &Inode) -> Vec<(u64, u64, u64, bool)> {
    let block = u64::from(ext4.info().block_size);
    let mut position = 0;
    let mut leaves = Vec::new();
    for run in ext4.runs(inode) {
        let run = run.unwrap();
        assert_eq!(run.offset, position, "there is a gap");
        position += run.length;
        let (start, written) = match run.place {
            RunPlace::Data(start) => (start, true),
            RunPlace::Unwritten(start) => (start, false),
            RunPlace::Hole => continue,
            RunPlace::Inline => panic!("inline"),
        };
        leaves.push((
            run.offset / block,
            start / block,
            run.length.div_ceil(block),
            written,
        ));
    }
    assert_eq!(position, inode.size);
    leaves
}

#[test]
fn a_deep_tree_of_extents_is_the_one_that_debugfs_shows() {
    let tree = alternating(1500);
    for options in [
        &["-t", "ext4", "-b", "1024"][..],
        &["-t", "ext4", "-b", "1024", "-O", "^metadata_csum"],
        &["-t", "ext4", "-b", "4096"],
    ] {
        let image = Image::new(options, 20, Some(tree.path()));
        let ext4 = image.open();
        let alternating = find(&ext4, "alternating");
        let ours = our_leaves(&ext4, &alternating);
        assert_eq!(ours, leaves(&image.ask("ex alternating")));
        assert!(ours.len() >= 1500);
        assert!(content(&ext4, &alternating) == fs::read(tree.path().join("alternating")).unwrap());
    }
}

#[test]
fn room_that_was_never_written_reads_as_zeros() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("file"), random_bytes(10_000, 1)).unwrap();
    let image = Image::new(&["-t", "ext4", "-b", "1024"], 16, Some(tree.path()));
    image.change("fallocate file 20 90\nset_inode_field file size 80000");
    // Overwrite the unwritten blocks on the disk.
    let ext4 = image.open();
    let file = find(&ext4, "file");
    assert_eq!(our_leaves(&ext4, &file)[1].2, 59);
    let start = ext4
        .runs(&file)
        .find_map(|run| match run.unwrap().place {
            RunPlace::Unwritten(start) => Some(start),
            _ => None,
        })
        .unwrap();
    let disk = fs::OpenOptions::new()
        .write(true)
        .open(image.path())
        .unwrap();
    std::os::unix::fs::FileExt::write_all_at(&disk, &random_bytes(1024, 2), start).unwrap();

    let ext4 = image.open();
    let mut expected = random_bytes(10_000, 1);
    expected.resize(80_000, 0);
    assert!(content(&ext4, &find(&ext4, "file")) == expected);
}

#[test]
fn the_tables_of_ext2_lead_to_every_block() {
    // Around the ends of the direct, indirect, double and triple indirect
    // blocks.
    let tree = tempfile::tempdir().unwrap();
    let path = tree.path().join("far");
    let mut far = fs::File::create(&path).unwrap();
    let places = [
        0, 11, 12, 13, 267, 268, 269, 65_803, 65_804, 65_805, 131_340, 200_000,
    ];
    for place in places {
        far.seek(SeekFrom::Start(place * 1024)).unwrap();
        far.write_all(&random_bytes(3000, place)).unwrap();
    }
    let image = Image::new(&["-t", "ext2", "-b", "1024"], 8, Some(tree.path()));
    let ext4 = image.open();
    let inode = find(&ext4, "far");
    for place in places {
        let mut ours = vec![0; 3000];
        ext4.read(&inode, place * 1024, &mut ours).unwrap();
        let mut expected = vec![0; 3000];
        let file = fs::File::open(&path).unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut expected, place * 1024).unwrap();
        assert!(ours == expected, "{place}");
    }

    // The blocks that debugfs lists include the indirect blocks: skip those.
    let output = image.ask("stat far");
    let mut expected: Vec<u64> = Vec::new();
    let (_, blocks) = output.split_once("BLOCKS:\n").unwrap();
    for part in blocks.lines().next().unwrap().split(", ") {
        let (place, disk) = part.trim_matches(['(', ' ']).split_once("):").unwrap();
        let (first, last) = disk.split_once('-').unwrap_or((disk, disk));
        if !place.contains("IND") {
            expected.extend(first.parse::<u64>().unwrap()..=last.parse().unwrap());
        }
    }
    let ours: Vec<_> = our_leaves(&ext4, &inode)
        .into_iter()
        .flat_map(|(_, start, length, _)| start..start + length)
        .collect();
    assert_eq!(ours, expected);
}

#[test]
fn any_part_of_a_file_can_be_read() {
    let tree = alternating(40);
    let whole = fs::read(tree.path().join("alternating")).unwrap();
    for options in [
        &["-t", "ext4", "-b", "1024"][..],
        &["-t", "ext2", "-b", "1024"],
    ] {
        let image = Image::new(options, 8, Some(tree.path()));
        let ext4 = image.open();
        let alternating = find(&ext4, "alternating");
        for offset in (0..whole.len() + 5000).step_by(777) {
            for length in [1, 1023, 5000, 20_000] {
                let mut part = vec![0xaa; length];
                let read = ext4.read(&alternating, offset as u64, &mut part).unwrap();
                let expected = whole.get(offset..).unwrap_or_default();
                assert_eq!(part[..read], expected[..length.min(expected.len())]);
            }
        }
    }
}

#[test]
fn a_damaged_leaf_does_not_hide_the_others() {
    let tree = alternating(500);
    let image = Image::new(&["-t", "ext4", "-b", "1024"], 8, Some(tree.path()));
    let ext4 = image.open();
    // The third leaf of the tree.
    let listing = image.ask("ex alternating");
    let block: u64 = listing
        .lines()
        .filter(|line| line.trim_start().starts_with("1/ 2"))
        .nth(2)
        .and_then(|line| line.split_whitespace().nth_back(1))
        .and_then(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("{listing}"));
    let whole = content(&ext4, &find(&ext4, "alternating"));
    let disk = fs::OpenOptions::new()
        .write(true)
        .open(image.path())
        .unwrap();
    std::os::unix::fs::FileExt::write_all_at(&disk, &[0xff], block * 1024 + 20).unwrap();

    let ext4 = image.open();
    let alternating = find(&ext4, "alternating");
    let (mut good, mut bad) = (0, 0);
    for offset in (0..whole.len()).step_by(4096) {
        let mut part = vec![0; 4096.min(whole.len() - offset)];
        match ext4.read(&alternating, offset as u64, &mut part) {
            Ok(_) => {
                assert_eq!(part, whole[offset..offset + part.len()]);
                good += 1;
            }
            Err(error) => {
                let damage = damage(&error);
                assert_eq!(damage.block, Some(block));
                assert_eq!(damage.problem, DamageKind::Checksum);
                assert_eq!(damage.inode, Some(alternating.number));
                bad += 1;
            }
        }
    }
    assert!(bad > 50 && good > 700, "{good} good, {bad} bad");
}
