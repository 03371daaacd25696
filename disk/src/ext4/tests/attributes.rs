use super::{sample::random_bytes, *};

/// Returns the attributes of a path. Fails on any error.
fn attributes(ext4: &Ext4, path: &str) -> BTreeMap<Vec<u8>, Vec<u8>> {
    ext4.attributes(&find(ext4, path))
        .into_iter()
        .map(|attribute| {
            let attribute = attribute.unwrap();
            (attribute.name, attribute.value)
        })
        .collect()
}

fn one_file(options: &[&str]) -> Image {
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("file"), b"contents").unwrap();
    Image::new(options, 8, Some(tree.path()))
}

#[test]
fn attributes_are_found_in_the_inode_in_a_block_and_in_inodes_of_their_own() {
    for (options, long) in [
        (&["-t", "ext4"][..], 700),
        (&["-t", "ext4", "-I", "128", "-O", "^extra_isize"], 700),
        (&["-t", "ext4", "-O", "^metadata_csum"], 700),
        (&["-t", "ext2", "-b", "1024"], 700),
        (&["-t", "ext4", "-b", "4096", "-O", "ea_inode"], 4090),
        (&["-t", "ext4", "-O", "inline_data", "-I", "1024"], 500),
    ] {
        let image = one_file(options);
        let long = random_bytes(long, 7);
        let path = image.file("long", &long);
        image.change(&format!(
            "ea_set file user.short value\n\
             ea_set file security.some thing\n\
             ea_set file trusted.other thing\n\
             ea_set -f {path} file user.long\n\
             ea_set file user.empty \"\"",
        ));
        let ext4 = image.open();
        let expected: BTreeMap<Vec<u8>, Vec<u8>> = [
            ("user.short", &b"value"[..]),
            ("security.some", b"thing"),
            ("trusted.other", b"thing"),
            ("user.long", &long),
            ("user.empty", b""),
        ]
        .into_iter()
        .map(|(name, value)| (name.into(), value.to_vec()))
        .collect();
        assert_eq!(attributes(&ext4, "file"), expected, "{options:?}");
        assert_eq!(content(&ext4, &find(&ext4, "file")), b"contents");
        assert!(attributes(&ext4, "lost+found").is_empty());
    }
}

#[test]
fn an_access_control_list_is_as_getxattr_tells_it() {
    // Version 2: owner rwx, user 1000 r--, group r-x, group 7 -w-, mask, others.
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, bits, id) in [
        (1_u16, 7_u16, u32::MAX),
        (2, 4, 1000),
        (4, 5, u32::MAX),
        (8, 2, 7),
        (16, 7, u32::MAX),
        (32, 0, u32::MAX),
    ] {
        list.extend_from_slice(&tag.to_le_bytes());
        list.extend_from_slice(&bits.to_le_bytes());
        list.extend_from_slice(&id.to_le_bytes());
    }
    let image = one_file(&["-t", "ext4"]);
    let path = image.file("list", &list);
    image.change(&format!("ea_set -f {path} file system.posix_acl_access"));
    let ext4 = image.open();
    let found = attributes(&ext4, "file");
    assert_eq!(found[&b"system.posix_acl_access"[..]], list);
}

#[test]
fn a_damaged_block_of_attributes_does_not_hide_those_in_the_inode() {
    let image = one_file(&["-t", "ext4"]);
    let path = image.file("long", &random_bytes(500, 3));
    image.change(&format!(
        "ea_set file user.short value\nea_set -f {path} file user.long"
    ));
    let ext4 = image.open();
    let file = find(&ext4, "file");
    let block = file.attributes;
    assert_ne!(block, 0);
    let mut bytes = image.bytes();
    let size = u64::from(ext4.info().block_size);
    bytes[usize::try_from(block * size).unwrap() + 100] ^= 1;

    let ext4 = Ext4::open(bytes, Options::default()).unwrap();
    let found = ext4.attributes(&file);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].as_ref().unwrap().name, b"user.short");
    let damage = damage(found[1].as_ref().unwrap_err());
    assert_eq!(damage.structure, Structure::Attributes);
    assert_eq!(
        (damage.block, damage.inode),
        (Some(block), Some(file.number))
    );
}

#[test]
fn more_attributes_than_the_limit_are_not_read() {
    let image = one_file(&["-t", "ext4", "-b", "4096", "-O", "ea_inode"]);
    let path = image.file("long", &random_bytes(4090, 3));
    image.change(&format!(
        "ea_set file user.short value\nea_set -f {path} file user.long"
    ));
    let mut options = Options::default();
    options.limits.attributes = 4000;
    let ext4 = image.try_open(options).unwrap();
    let found = ext4.attributes(&find(&ext4, "file"));
    assert!(matches!(
        found.last().unwrap(),
        Err(Error::Limit {
            what: Limit::Attributes,
            limit: 4000,
            ..
        })
    ));
}
