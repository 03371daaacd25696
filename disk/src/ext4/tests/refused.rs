//! What the kernel refuses to read or to mount.

use super::{hostile::one_file, *};

/// Returns the damage that keeps an entry from being read, after these
/// `debugfs` commands.
fn damage_after(options: &[&str], commands: &str, path: &str) -> Damage {
    let image = one_file(options);
    image.change(commands);
    let ext4 = image.open();
    let inode = ext4.lookup(path.as_bytes(), SymlinkPolicy::Never);
    let error = match inode {
        Ok(inode) if inode.kind == Kind::Symlink => ext4.read_link(&inode).unwrap_err(),
        Ok(inode) => panic!("{path} is readable: {inode:?}"),
        Err(error) => error,
    };
    damage(&error).clone()
}

#[test]
fn an_inode_that_the_kernel_rejects_is_damaged() {
    let inode = Structure::Inode;
    for (commands, path, structure, problem) in [
        ("sif file links_count 0", "file", inode, DamageKind::Deleted),
        (
            "sif file flags 0x10080000",
            "file",
            inode,
            DamageKind::Flags(0x1008_0000),
        ),
        (
            "sif file flags 0x280000",
            "file",
            inode,
            DamageKind::Flags(0x28_0000),
        ),
        (
            "sif link flags 0x10",
            "link",
            inode,
            DamageKind::Flags(0x10),
        ),
        // The target is longer than the size.
        (
            "sif link size 3",
            "link",
            Structure::Symlink,
            DamageKind::Size(3),
        ),
        (
            "sif file file_acl 0x7fffffff",
            "file",
            Structure::Attributes,
            DamageKind::Block(0x7fff_ffff),
        ),
        (
            "sif file file_acl 2",
            "file",
            Structure::Attributes,
            DamageKind::Overlap(2),
        ),
    ] {
        let damage = damage_after(&["-t", "ext4"], commands, path);
        assert_eq!((damage.structure, damage.problem), (structure, problem));
    }
}

#[test]
fn such_an_inode_is_read_if_checksums_are_ignored() {
    let image = one_file(&["-t", "ext4"]);
    let before = content(&image.open(), &find(&image.open(), "file"));
    image.change("sif file links_count 0\nsif file file_acl 0x7fffffff");
    let options = Options {
        checksums: Checksums::Ignore,
        ..Options::default()
    };
    let ext4 = image.try_open(options).unwrap();
    assert!(content(&ext4, &find(&ext4, "file")) == before);
}

#[test]
fn blocks_of_the_file_system_are_not_the_contents_of_a_file() {
    let extents = &["-t", "ext4", "-b", "1024"][..];
    let direct = &["-t", "ext2", "-b", "1024"][..];
    // The superblock, and the first block of the first extent.
    for (options, commands, block) in [
        (direct, "sif file block[2] 1", 1),
        (extents, "sif file block[5] 2", 2),
    ] {
        let damage = damage_after(options, commands, "file");
        assert_eq!(damage.structure, Structure::BlockMap);
        assert_eq!(damage.problem, DamageKind::Overlap(block));
    }
}

#[test]
fn a_root_that_is_no_directory_is_damaged() {
    let image = one_file(&["-t", "ext2"]);
    image.change("sif <2> mode 0100644");
    let error = image.open().root().unwrap_err();
    assert_eq!(damage(&error).structure, Structure::Directory);
}

/// The value of the attribute with the rest of the data starts in the header of
/// the attribute.
#[test]
fn an_attribute_is_not_the_end_of_a_file() {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("file"), [b'x'; 100]).unwrap();
    let options = [
        "-t",
        "ext4",
        "-I",
        "256",
        "-O",
        "inline_data,^metadata_csum",
    ];
    let image = Image::new(&options, 8, Some(tree.path()));
    let ext4 = image.open();
    assert!(content(&ext4, &find(&ext4, "file")) == [b'x'; 100]);
    // The length and index of the name, and behind the entry the name.
    let mut bytes = image.bytes();
    let entry = bytes
        .windows(20)
        .position(|entry| entry.starts_with(&[4, 7]) && entry.ends_with(b"data"));
    let offset = entry.unwrap() + 2;
    // Up to the last one, the value begins before the end of the entries.
    for value in 0_u8..=5 {
        bytes[offset] = value * 4;
        for checksums in [Checksums::Check, Checksums::Ignore] {
            let options = Options {
                checksums,
                ..Options::default()
            };
            let ext4 = Ext4::open(bytes.clone(), options).unwrap();
            let inode = ext4.lookup(b"file", SymlinkPolicy::Never);
            let read = inode.and_then(|inode| ext4.read(&inode, 0, &mut [0; 100]));
            let problem = damage(&read.unwrap_err()).problem;
            assert!(matches!(problem, DamageKind::Size(_)), "{problem}");
        }
    }
}

#[test]
fn a_file_system_that_the_kernel_does_not_mount_is_read_and_the_reason_told() {
    for (commands, structure) in [
        ("set_bg 0 block_bitmap 99999", Structure::Group),
        ("set_bg 0 inode_bitmap 1", Structure::Group),
        ("set_bg 0 checksum calc\nsif <8> mode 0", Structure::Inode),
        ("sif <8> block[5] 0x7fffffff", Structure::BlockMap),
    ] {
        let image = one_file(&["-t", "ext4", "-b", "1024", "-O", "^metadata_csum"]);
        assert_eq!(image.open().damage(), []);
        image.change(commands);
        let ext4 = image.open();
        let structures: Vec<_> = ext4
            .damage()
            .iter()
            .map(|damage| damage.structure)
            .collect();
        assert_eq!(structures, [structure], "{commands}");
        assert_eq!(content(&ext4, &find(&ext4, "file")).len(), 5000);
    }
}
