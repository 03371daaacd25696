use super::*;

/// Creates an image with a directory of `count` names, indexed by `e2fsck`.
fn large(count: usize, options: &[&str]) -> Image {
    let tree = tempfile::tempdir().unwrap();
    let folder = tree.path().join("large");
    fs::create_dir(&folder).unwrap();
    let first = folder.join(name(0));
    fs::write(&first, b"").unwrap();
    for number in 1..count {
        fs::hard_link(&first, folder.join(name(number))).unwrap();
    }
    let image = Image::new(options, 16, Some(tree.path()));
    let fixed = tool("e2fsck")
        .args(["-fyD"])
        .arg(image.path())
        .output()
        .unwrap();
    assert!(
        fixed.status.code().is_some_and(|code| code < 4),
        "{fixed:?}"
    );
    image
}

fn name(number: usize) -> String {
    format!("{number:05} of them")
}

#[test]
fn an_indexed_directory_has_all_its_names() {
    for options in [
        &["-t", "ext4", "-b", "1024"][..],
        &["-t", "ext4", "-b", "1024", "-O", "^metadata_csum"],
        &["-t", "ext3", "-b", "4096"],
    ] {
        let image = large(4000, options);
        let ext4 = image.open();
        let directory = find(&ext4, "large");
        assert_ne!(directory.flags & 0x1000, 0, "it has no index");
        let mut names: Vec<_> = ext4
            .directory(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().name)
            .collect();
        names.sort_unstable();
        let expected: Vec<_> = (0..4000).map(|number| name(number).into_bytes()).collect();
        assert_eq!(names, expected);
        find(&ext4, "large/03999 of them");
    }
}

#[test]
fn a_directory_of_fifty_thousand_names_is_read_to_the_end() {
    // Adding them one by one would take debugfs minutes, so the directory is
    // written here.
    let image = Image::new(
        &["-t", "ext4", "-b", "4096", "-O", "^metadata_csum"],
        16,
        None,
    );
    let mut blocks = Vec::new();
    let mut block = Vec::new();
    for number in 0..50_000 {
        let name = name(number);
        let length = (8 + name.len()).next_multiple_of(4);
        let last = block.len() + 2 * length > 4096;
        let room = if last { 4096 - block.len() } else { length };
        block.extend_from_slice(&11_u32.to_le_bytes());
        block.extend_from_slice(&u16::try_from(room).unwrap().to_le_bytes());
        block.extend_from_slice(&[u8::try_from(name.len()).unwrap(), 2]);
        block.extend_from_slice(name.as_bytes());
        if last {
            block.resize(4096, 0);
            blocks.append(&mut block);
        } else {
            block.resize(block.len().next_multiple_of(4), 0);
        }
    }
    // The rest of the last block is a removed entry.
    if !block.is_empty() {
        let rest = 4096 - block.len();
        block.extend_from_slice(&[0; 4]);
        block.extend_from_slice(&u16::try_from(rest).unwrap().to_le_bytes());
        block.resize(4096, 0);
        blocks.append(&mut block);
    }
    let file = image.file("blocks", &blocks);
    image.change(&format!(
        "write {file} large\nset_inode_field large mode 040755"
    ));

    let ext4 = image.open();
    let directory = find(&ext4, "large");
    let names = ext4.directory(&directory).unwrap().map(Result::unwrap);
    assert!(
        names
            .enumerate()
            .all(|(number, entry)| entry.name == name(number).as_bytes())
    );
    find(&ext4, "large/49999 of them");

    let mut options = Options::default();
    options.limits.directory = 1 << 20;
    let limited = image.try_open(options).unwrap();
    let last = limited.directory(&directory).unwrap().last().unwrap();
    assert!(matches!(
        last,
        Err(Error::Limit {
            what: Limit::Directory,
            ..
        })
    ));
}

#[test]
fn nobody_waits_for_a_name_longer_than_the_limit() {
    let image = large(4000, &["-t", "ext4", "-b", "1024"]);
    let mut options = Options::default();
    options.limits.time = std::time::Duration::from_nanos(1);
    let ext4 = image.try_open(options).unwrap();
    let directory = || ext4.directory(&ext4.inode(12).unwrap()).unwrap();
    assert_eq!(ext4.inode(12).unwrap(), find(&image.open(), "large"));
    let is_late = |error: &Error| {
        let what = Limit::Time;
        matches!(error, Error::Limit { what: found, inode: 12, .. } if *found == what)
    };
    let error = directory().find(b"not there").unwrap_err();
    assert!(is_late(&error), "{error}");
    let last = directory().last().unwrap().unwrap_err();
    assert!(is_late(&last), "{last}");
    assert!(directory().count() < 4000);
}

/// Returns the offset of the only block of a directory.
fn block_of(ext4: &Ext4, inode: &Inode) -> usize {
    match ext4.runs(inode).next().unwrap().unwrap().place {
        RunPlace::Data(start) => usize::try_from(start).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Creates an image with a directory of five names. Returns it, the inode of
/// the directory and the offsets of the entries.
fn five(options: &[&str]) -> (Vec<u8>, u32, Vec<usize>) {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir(tree.path().join("five")).unwrap();
    for name in ["one", "two", "three", "four", "five"] {
        fs::write(tree.path().join("five").join(name), name).unwrap();
    }
    let image = Image::new(options, 8, Some(tree.path()));
    let ext4 = image.open();
    let directory = find(&ext4, "five");
    let start = block_of(&ext4, &directory);
    let bytes = image.bytes();
    let mut places = vec![start];
    while places.len() < 7 {
        let last = places[places.len() - 1];
        let length = u16::from_le_bytes([bytes[last + 4], bytes[last + 5]]);
        places.push(last + usize::from(length));
    }
    (bytes, directory.number, places.split_off(2))
}

fn list(bytes: Vec<u8>, number: u32) -> (Vec<Vec<u8>>, Vec<Error>) {
    let ext4 = Ext4::open(bytes, Options::default()).unwrap();
    let directory = ext4.inode(number).unwrap();
    let (mut names, mut errors) = (Vec::new(), Vec::new());
    for entry in ext4.directory(&directory).unwrap().take(1000) {
        match entry {
            Ok(entry) => names.push(entry.name),
            Err(error) => errors.push(error),
        }
    }
    names.sort_unstable();
    (names, errors)
}

#[test]
fn one_bad_entry_does_not_hide_its_neighbours() {
    let (image, number, places) = five(&["-t", "ext4", "-O", "^metadata_csum"]);
    let victim = places[2];
    let length = image[victim + 6];
    let name = image[victim + 8..][..usize::from(length)].to_vec();
    let (all, _) = list(image.clone(), number);
    let others: Vec<_> = all
        .iter()
        .filter(|other| **other != name)
        .cloned()
        .collect();

    // Lengths that point out of the block, into the entry itself, or nowhere.
    for bad in [0_u16, 4, 7, 13, 60_000] {
        let mut bytes = image.clone();
        bytes[victim + 4..victim + 6].copy_from_slice(&bad.to_le_bytes());
        let (names, errors) = list(bytes, number);
        assert_eq!(names, all, "length {bad}");
        assert_eq!(errors.len(), 1);
        assert_eq!(damage(&errors[0]).problem, DamageKind::Size(bad.into()));
    }
    // Invalid names and inode numbers.
    for (place, value) in [(8, b'/'), (8, 0), (2, 0xff), (6, 0)] {
        let mut bytes = image.clone();
        bytes[victim + place] = value;
        let (names, errors) = list(bytes, number);
        assert_eq!(names, others, "{place}");
        assert_eq!(errors.len(), 1);
        assert_eq!(damage(&errors[0]).inode, Some(number));
    }
}

#[test]
fn a_wrong_checksum_is_told_and_the_names_as_well() {
    let (mut image, number, places) = five(&["-t", "ext4"]);
    image[places[0] + 8] ^= 0x20;
    let (names, errors) = list(image, number);
    assert_eq!(names.len(), 5);
    assert_eq!(errors.len(), 1);
    assert_eq!(damage(&errors[0]).problem, DamageKind::Checksum);
    assert_eq!(damage(&errors[0]).structure, Structure::Directory);
}

#[test]
fn names_of_an_encrypted_directory_are_letters_and_its_contents_are_refused() {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir(tree.path().join("secret")).unwrap();
    fs::write(tree.path().join("secret/file"), b"x").unwrap();
    std::os::unix::fs::symlink("target", tree.path().join("secret/link")).unwrap();
    let image = Image::new(&["-t", "ext4", "-O", "encrypt"], 8, Some(tree.path()));
    image.change(
        "set_inode_field secret flags 0x80800\n\
         set_inode_field secret/file flags 0x80800\n\
         set_inode_field secret/link flags 0x800",
    );
    let ext4 = image.open();
    let found = everything(&ext4);
    // The names in base64.
    let file = &found[&b"secret/ZmlsZQ"[..]];
    let link = &found[&b"secret/bGluaw"[..]];
    assert!(file.is_encrypted());
    let error = ext4.read(file, 0, &mut [0]).unwrap_err();
    assert!(matches!(error, Error::Encrypted { inode } if inode == file.number));
    assert!(matches!(ext4.read_link(link), Err(Error::Encrypted { .. })));
    assert_eq!(find(&ext4, "secret/ZmlsZQ").number, file.number);
}

#[test]
fn threads_may_share_a_file_system() {
    let image = large(500, &["-t", "ext4", "-b", "1024"]);
    let mut options = Options::default();
    // Almost no cache.
    options.limits.cache = 1;
    let ext4 = image.try_open(options).unwrap();
    let expected = everything(&ext4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(everything(&ext4), expected));
        }
    });
}
