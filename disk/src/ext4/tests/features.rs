use super::{
    sample::{compare, sample},
    *,
};

/// Options of `mke2fs`. An image made with each of them must read as the tree
/// it was made from.
const READABLE: &[&[&str]] = &[
    &["-t", "ext4"],
    &["-t", "ext4", "-b", "1024"],
    &["-t", "ext4", "-b", "2048"],
    &["-t", "ext4", "-b", "4096"],
    &["-t", "ext4", "-b", "65536"],
    &["-t", "ext2"],
    &["-t", "ext2", "-b", "1024"],
    &["-t", "ext2", "-b", "4096", "-I", "128"],
    &["-t", "ext2", "-r", "0", "-O", "none"],
    &["-t", "ext3", "-b", "1024"],
    &["-t", "ext3"],
    &["-t", "ext4", "-I", "128", "-O", "^extra_isize"],
    &["-t", "ext4", "-I", "1024"],
    &["-t", "ext4", "-O", "^64bit"],
    &["-t", "ext4", "-O", "^metadata_csum,uninit_bg"],
    &[
        "-t",
        "ext4",
        "-O",
        "^metadata_csum,^64bit,^flex_bg,^huge_file",
    ],
    &["-t", "ext4", "-O", "^extent,^64bit"],
    &["-t", "ext4", "-O", "^filetype"],
    &["-t", "ext4", "-O", "^has_journal"],
    &["-t", "ext4", "-O", "^sparse_super,^resize_inode"],
    &["-t", "ext4", "-O", "sparse_super2"],
    &["-t", "ext4", "-O", "inline_data"],
    &["-t", "ext4", "-O", "inline_data", "-I", "1024"],
    &[
        "-t",
        "ext4",
        "-O",
        "inline_data,^metadata_csum",
        "-b",
        "1024",
    ],
    &["-t", "ext4", "-O", "bigalloc", "-C", "16384"],
    &["-t", "ext4", "-O", "bigalloc", "-b", "1024", "-C", "8192"],
    &["-t", "ext4", "-O", "meta_bg,^resize_inode"],
    &[
        "-t",
        "ext4",
        "-O",
        "meta_bg,^resize_inode",
        "-b",
        "1024",
        "-g",
        "512",
    ],
    &["-t", "ext4", "-O", "metadata_csum_seed"],
    &["-t", "ext4", "-O", "encrypt"],
    &["-t", "ext4", "-O", "casefold", "-E", "encoding=utf8"],
    &["-t", "ext4", "-O", "ea_inode"],
    &["-t", "ext4", "-O", "large_dir"],
    &[
        "-t",
        "ext4",
        "-O",
        "quota",
        "-E",
        "quotatype=usrquota:grpquota:prjquota",
    ],
    &["-t", "ext4", "-O", "project,quota"],
    &["-t", "ext4", "-O", "mmp"],
    &["-t", "ext4", "-O", "orphan_file"],
    &["-t", "ext4", "-O", "fast_commit"],
    &["-t", "ext4", "-O", "verity"],
    &["-t", "ext4", "-O", "stable_inodes"],
    &["-t", "ext4", "-J", "size=8"],
];

#[test]
fn a_tree_is_read_as_it_was_put_in_whatever_the_features() {
    let tree = sample();
    for options in READABLE {
        let image = Image::new(options, 24, Some(tree.path()));
        let case = options.join(" ");
        let ext4 = image
            .try_open(Options::default())
            .unwrap_or_else(|error| panic!("{case}: {error}"));
        compare(&ext4, tree.path(), &case);
    }
}

#[test]
fn a_file_system_with_an_external_journal_is_read_unless_it_has_to_be_replayed() {
    let tree = sample();
    let journal = Image::new(&["-O", "journal_dev", "-b", "4096"], 8, None);
    let error = journal.try_open(Options::default()).unwrap_err();
    assert!(
        matches!(&error, Error::Unsupported { feature } if feature == "journal_dev"),
        "{error}"
    );

    let image = Image::new(&["-t", "ext4", "-b", "4096"], 24, Some(tree.path()));
    // The effect of `tune2fs -J device=`, which accepts only devices.
    image.change(
        "feature ^has_journal\n\
         feature has_journal\n\
         set_super_value journal_inum 0\n\
         set_super_value journal_dev 0x700",
    );
    let ext4 = image.open();
    assert_eq!(ext4.info().journal, JournalState::External);
    compare(&ext4, tree.path(), "external journal");

    image.change("feature needs_recovery");
    let error = image.try_open(Options::default()).unwrap_err();
    assert!(error.to_string().contains("external journal"), "{error}");
    let options = Options {
        replay: Replay::Never,
        ..Options::default()
    };
    let ext4 = image.try_open(options).unwrap();
    assert_eq!(ext4.info().journal, JournalState::Ignored);
    compare(&ext4, tree.path(), "external journal, ignored");
}

/// Like a power loss before anything was journaled.
#[test]
fn what_was_not_unmounted_is_not_clean_though_its_journal_is_empty() {
    let image = Image::new(&["-t", "ext4"], 16, None);
    assert!(image.open().info().clean);
    image.change("feature needs_recovery");
    let info = image.open().info();
    assert_eq!((info.journal, info.clean), (JournalState::Clean, false));
}

#[test]
fn what_cannot_be_read_is_refused_by_its_name() {
    let image = Image::new(&["-t", "ext2"], 2, None);
    for (bits, name) in [
        (0x1, "compression"),
        (0x8, "journal_dev"),
        (0x1000, "dirdata"),
        (0x800_0000, "FEATURE_I27"),
    ] {
        let mut bytes = image.bytes();
        bytes[1024 + 0x60..1024 + 0x64].copy_from_slice(&u32::to_le_bytes(bits | 2));
        let error = Ext4::open(bytes, Options::default()).unwrap_err();
        assert!(
            matches!(&error, Error::Unsupported { feature } if feature == name),
            "{error}"
        );
    }
}

#[test]
fn features_count_whatever_the_revision() {
    let image = Image::new(&["-t", "ext2", "-r", "0", "-O", "none"], 2, None);
    let mut bytes = image.bytes();
    bytes[1024 + 0x60] = 1;
    let error = Ext4::open(bytes, Options::default()).unwrap_err();
    assert!(
        matches!(&error, Error::Unsupported { feature } if feature == "compression"),
        "{error}"
    );
}

#[test]
fn what_is_no_file_system_is_told_apart_from_a_damaged_one() {
    for bytes in [vec![], vec![0; 1024], vec![0; 2048], vec![0xff; 100_000]] {
        let error = Ext4::open(bytes, Options::default()).unwrap_err();
        assert!(matches!(error, Error::NoExtFileSystem), "{error}");
    }
    let mut bytes = Image::new(&["-t", "ext4"], 8, None).bytes();
    bytes[1024 + 0x78] = b'x';
    let error = Ext4::open(bytes, Options::default()).unwrap_err();
    assert_eq!(damage(&error).problem, DamageKind::Checksum);
}

#[test]
fn a_backup_of_the_superblock_is_as_good() {
    let tree = sample();
    for options in [
        &["-t", "ext4", "-b", "1024"][..],
        &["-t", "ext4", "-b", "2048"],
        &["-t", "ext4", "-b", "4096", "-g", "32768"],
        &["-t", "ext4", "-b", "1024", "-O", "meta_bg,^resize_inode"],
        &["-t", "ext2", "-b", "1024", "-r", "0"],
    ] {
        let image = Image::new(options, 200, Some(tree.path()));
        // The superblock and the descriptors after it.
        let file = fs::OpenOptions::new()
            .write(true)
            .open(image.path())
            .unwrap();
        let wiped = if options.len() > 4 && options[4] == "-O" {
            1024
        } else {
            4096
        };
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![0; wiped], 1024).unwrap();

        let error = image.try_open(Options::default()).unwrap_err();
        assert_eq!(damage(&error).structure, Structure::Superblock, "{error}");
        let options = Options {
            superblock: SuperblockCopy::Backup,
            ..Options::default()
        };
        compare(&image.try_open(options).unwrap(), tree.path(), "backup");
    }
}

#[test]
fn the_file_system_tells_about_itself() {
    let image = Image::new(
        &[
            "-t",
            "ext4",
            "-L",
            "a label",
            "-U",
            "12345678-1234-5678-9abc-def012345678",
        ],
        16,
        None,
    );
    image.change(
        "set_super_value mtime 20300102030405\n\
         set_super_value last_mounted /some/where\n\
         set_super_value error_count 3\n\
         set_super_value first_error_ino 12\n\
         set_super_value first_error_func some_function",
    );
    let ext4 = image.open();
    let info = ext4.info();
    assert_eq!(info.label, b"a label");
    assert_eq!(info.uuid[..4], [0x12, 0x34, 0x56, 0x78]);
    assert_eq!(info.mounted.unwrap().seconds, 1_893_553_445);
    assert_eq!(info.mounted_at, b"/some/where");
    assert_eq!(info.in_use, None);
    assert_eq!(info.journal, JournalState::Clean);
    assert!(info.clean);
    assert_eq!(info.error_count, 3);
    let error = info.first_error.unwrap();
    assert_eq!(
        (error.inode, &error.function[..]),
        (12, &b"some_function"[..])
    );

    let output = String::from_utf8(run(tool("dumpe2fs").arg("-h").arg(image.path())).0).unwrap();
    let value = |name: &str| {
        let line = output.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_once(':').unwrap().1.trim().to_owned()
    };
    let mut features: Vec<_> = info.features.iter().map(String::as_str).collect();
    let expected = value("Filesystem features");
    let mut expected: Vec<_> = expected.split(' ').collect();
    features.sort_unstable();
    expected.sort_unstable();
    assert_eq!(features, expected);
    assert_eq!(info.blocks.to_string(), value("Block count"));
    assert_eq!(info.free_blocks.to_string(), value("Free blocks"));
    assert_eq!(
        info.reserved_blocks.to_string(),
        value("Reserved block count")
    );
    assert_eq!(info.inodes.to_string(), value("Inode count"));
    assert_eq!(info.free_inodes.to_string(), value("Free inodes"));
    assert_eq!(info.inode_size.to_string(), value("Inode size"));
    assert_eq!(info.block_size.to_string(), value("Block size"));
}

#[test]
fn whether_somebody_has_it_mounted_is_told_where_it_is_known() {
    let image = Image::new(&["-t", "ext4", "-b", "1024", "-O", "mmp"], 16, None);
    let ext4 = image.open();
    assert_eq!(ext4.info().in_use, Some(false));
    let mut bytes = image.bytes();
    let block = usize::try_from(ext4.superblock.mmp_block).unwrap() * 1024;
    // The kernel increments this number while it is mounted.
    bytes[block + 4..block + 8].copy_from_slice(&[7, 0, 0, 0]);
    let ext4 = Ext4::open(bytes, Options::default()).unwrap();
    assert_eq!(ext4.info().in_use, Some(true));
}
