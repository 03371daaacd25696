use proptest::prelude::*;

use super::{
    random_damage::{DamagedImage, exercise},
    sample::random_bytes,
    *,
};

pub(super) fn one_file(options: &[&str]) -> Image {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("file"), random_bytes(5000, 1)).unwrap();
    fs::create_dir(tree.path().join("dir")).unwrap();
    fs::create_dir(tree.path().join("dir/sub")).unwrap();
    std::os::unix::fs::symlink("target", tree.path().join("link")).unwrap();
    Image::new(options, 8, Some(tree.path()))
}

#[test]
fn a_symlink_that_claims_four_gibibytes_takes_none() {
    for flags in ["0", "0x80000"] {
        let image = one_file(&["-t", "ext4"]);
        image.change(&format!(
            "set_inode_field link size 0xffffffff\nset_inode_field link flags {flags}"
        ));
        let ext4 = image.open();
        let error = ext4.read_link(&find(&ext4, "link")).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Limit {
                    what: Limit::Symlink,
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[test]
fn directories_that_contain_themselves_are_entered_once() {
    let image = one_file(&["-t", "ext4"]);
    image.change("ln dir dir/sub/again\nln / dir/root\nln dir beside");
    let ext4 = image.open();
    let root = ext4.root().unwrap();
    let items: Vec<_> = ext4.walk(&root).take(100).collect();
    let loops = items.iter().filter(|item| {
        matches!(item, Err(WalkError { error: Error::Damaged(damage), .. }) if damage.problem == DamageKind::Loop)
    });
    assert_eq!(loops.count(), 3);
    let found = items.iter().flatten().map(|found| found.path.clone());
    let mut found: Vec<_> = found.map(|path| String::from_utf8(path).unwrap()).collect();
    found.sort_unstable();
    let below = if found.contains(&"dir/sub".to_owned()) {
        "dir"
    } else {
        "beside"
    };
    for name in ["sub", "sub/again", "root"] {
        assert!(found.contains(&format!("{below}/{name}")), "{found:?}");
    }
    assert_eq!(found.len(), 8, "{found:?}");
}

#[test]
fn a_walk_ends_at_its_limits_and_says_so() {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir_all(tree.path().join("d/".repeat(40))).unwrap();
    fs::write(tree.path().join("other"), b"").unwrap();
    let image = Image::new(&["-t", "ext4"], 8, Some(tree.path()));
    let mut options = Options::default();
    options.limits.depth = 10;
    let ext4 = image.try_open(options).unwrap();
    let items: Vec<_> = ext4.walk(&ext4.root().unwrap()).collect();
    // Ten levels, what is next to the first, and one that is too deep.
    assert_eq!(items.iter().flatten().count(), 12);
    let problem = items.iter().find_map(|item| item.as_ref().err()).unwrap();
    assert!(matches!(
        problem.error,
        Error::Limit {
            what: Limit::Depth,
            limit: 10,
            ..
        }
    ));
    assert_eq!(problem.path.len(), 19);

    options.limits.entries = 5;
    let ext4 = image.try_open(options).unwrap();
    let items: Vec<_> = ext4.walk(&ext4.root().unwrap()).collect();
    assert_eq!(items.len(), 6);
    let last = items.last().unwrap().as_ref().unwrap_err();
    assert!(matches!(
        last.error,
        Error::Limit {
            what: Limit::Entries,
            limit: 5,
            ..
        }
    ));
}

#[test]
fn a_file_that_claims_to_be_huge_is_zeros_behind_its_data() {
    for options in [&["-t", "ext4"][..], &["-t", "ext2"]] {
        let image = one_file(options);
        image.change("set_inode_field file size 0x7fffffffffffffff");
        let ext4 = image.open();
        let file = find(&ext4, "file");
        assert!(ext4.runs(&file).take(100_000).count() < 50_000);
        let mut buffer = vec![1; 5000];
        for offset in [1 << 20, 1 << 40, 1 << 60, i64::MAX as u64 - 5000] {
            assert_eq!(ext4.read(&file, offset, &mut buffer).unwrap(), 5000);
            assert_eq!(buffer, [0; 5000]);
        }

        image.change("set_inode_field file size 0x8000000000000000");
        let error = image
            .open()
            .lookup(b"file", SymlinkPolicy::Never)
            .unwrap_err();
        assert_eq!(damage(&error).problem, DamageKind::Size(1 << 63));
    }
}

#[test]
fn a_directory_that_claims_to_be_huge_is_read_as_far_as_it_is() {
    let image = one_file(&["-t", "ext4"]);
    image.change("set_inode_field dir size 0xfffff000");
    let ext4 = image.open();
    let entries: Vec<_> = ext4
        .directory(&find(&ext4, "dir"))
        .unwrap()
        .take(100)
        .collect();
    assert_eq!(entries.iter().flatten().count(), 1);
    // The entry, and the hole.
    assert_eq!(entries.len(), 2);
    assert_eq!(
        damage(entries[1].as_ref().unwrap_err()).problem,
        DamageKind::Missing
    );
}

/// Opens an image whose file has this block map.
fn with_map(options: &[&str], map: &[u8; 60]) -> Ext4 {
    let image = one_file(options);
    let inode = find(&image.open(), "file");
    let mut bytes = image.bytes();
    let place = bytes
        .windows(60)
        .position(|window| window == inode.map)
        .unwrap();
    bytes[place..place + 60].copy_from_slice(map);
    let options = Options {
        checksums: Checksums::Ignore,
        ..Options::default()
    };
    Ext4::open(bytes, options).unwrap()
}

fn extents(records: &[(u32, u16, u32)]) -> [u8; 60] {
    let mut map = [0; 60];
    map[..2].copy_from_slice(&0xf30a_u16.to_le_bytes());
    map[2] = u8::try_from(records.len()).unwrap();
    map[4] = 4;
    for (record, (first, length, start)) in map[12..].chunks_mut(12).zip(records) {
        record[..4].copy_from_slice(&first.to_le_bytes());
        record[4..6].copy_from_slice(&length.to_le_bytes());
        record[8..].copy_from_slice(&start.to_le_bytes());
    }
    map
}

#[test]
fn maps_that_make_no_sense_are_damage() {
    for (records, problem) in [
        (&[(0, 3, 100), (2, 3, 200)][..], DamageKind::Order),
        // A binary search for block 3 would find a hole.
        (&[(0, 3, 100), (4, 1, 200), (3, 1, 300)], DamageKind::Order),
        (&[(0, 5, 100), (7, 0, 200)], DamageKind::Size(0)),
        (&[(0, 0, 100)], DamageKind::Size(0)),
        (&[(0, 5, 0)], DamageKind::Block(0)),
        (&[(0, 5, 0xffff_fff0)], DamageKind::Block(0xffff_fff0)),
        (&[(0, 5, 8190)], DamageKind::Block(8190)),
    ] {
        let ext4 = with_map(&["-t", "ext4", "-b", "1024"], &extents(records));
        let error = ext4
            .read(&find(&ext4, "file"), 0, &mut [0; 5000])
            .unwrap_err();
        assert_eq!(damage(&error).problem, problem);
        assert_eq!(damage(&error).structure, Structure::BlockMap);
    }
    let deep = |depth: u8| {
        let mut map = extents(&[(0, 1, 100)]);
        map[6] = depth;
        map
    };
    for depth in [1, 5, 6, 255] {
        let ext4 = with_map(&["-t", "ext4", "-b", "1024"], &deep(depth));
        let error = ext4
            .read(&find(&ext4, "file"), 0, &mut [0; 5000])
            .unwrap_err();
        assert_eq!(damage(&error).structure, Structure::BlockMap, "{error}");
    }
}

#[test]
fn tables_that_lead_to_themselves_do_not_hold_up_anyone() {
    let image = one_file(&["-t", "ext2", "-b", "1024"]);
    let table = u32::to_le_bytes(4000);
    let inode = find(&image.open(), "file");
    let mut bytes = image.bytes();
    bytes[4000 * 1024..4001 * 1024].copy_from_slice(&table.repeat(256));
    let place = bytes
        .windows(60)
        .position(|window| window == inode.map)
        .unwrap();
    bytes[place + 48..place + 60].copy_from_slice(&table.repeat(3));
    // The lower and upper half of the size.
    let start = place - 0x28;
    bytes[start + 4..start + 8].copy_from_slice(&[0xff; 4]);
    bytes[start + 0x6c..start + 0x70].copy_from_slice(&[3, 0, 0, 0]);

    let ext4 = Ext4::open(bytes, Options::default()).unwrap();
    let file = find(&ext4, "file");
    assert_eq!(ext4.runs(&file).take(10_000).count(), 10_000);
    let mut part = [0; 1024];
    ext4.read(&file, 10_000_000 * 1024, &mut part).unwrap();
    assert_eq!(part[..], table.repeat(256));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_superblock_is_opened_or_refused(
        changes in prop::collection::vec((0_usize..0x290, prop_oneof![any::<u8>(), Just(0), Just(0xff)]), 1..6),
    ) {
        static IMAGE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let mut bytes = IMAGE
            .get_or_init(|| one_file(&["-t", "ext4", "-b", "1024", "-J", "size=1"]).bytes())
            .clone();
        for (place, byte) in changes {
            bytes[1024 + place] = byte;
        }
        let options = Options {
            checksums: Checksums::Ignore,
            ..Options::default()
        };
        if let Ok(ext4) = Ext4::open(DamagedImage::new(bytes), options) {
            exercise(&ext4);
        }
    }
}
