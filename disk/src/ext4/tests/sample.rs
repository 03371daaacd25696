//! A sample tree with all kinds of entries, and a comparison with it.

use std::{
    ffi::OsStr,
    fs,
    io::{Seek, SeekFrom, Write},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink},
    },
    path::Path,
};

use tempfile::TempDir;

use super::*;

/// Returns deterministic random bytes.
pub(super) fn random_bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(length)
    .collect()
}

pub(super) fn sample() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    // Sizes around what fits in an inode, a block and twelve blocks.
    for length in [
        0, 1, 59, 60, 61, 120, 160, 1023, 1024, 4097, 12_288, 12_289, 300_000,
    ] {
        let path = root.join(format!("file-{length}"));
        fs::write(&path, random_bytes(length, length as u64)).unwrap();
    }
    let mut sparse = fs::File::create(root.join("sparse")).unwrap();
    for place in [0, 5, 6, 20, 300] {
        sparse.seek(SeekFrom::Start(place * 8192)).unwrap();
        sparse.write_all(&random_bytes(100, place)).unwrap();
    }

    let deep = root.join("a/b/c/d/e/f/g");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("at the bottom"), b"deep").unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    fs::set_permissions(root.join("empty"), fs::Permissions::from_mode(0o2711)).unwrap();
    let many = root.join("many");
    fs::create_dir(&many).unwrap();
    for number in 0..300 {
        let name = format!("{number} {}", "n".repeat(number % 90));
        fs::write(many.join(name), format!("{number}")).unwrap();
    }
    // A directory that fits in an inode, with inline data.
    fs::create_dir(root.join("small")).unwrap();
    for name in ["x", "y", "some longer name of a file"] {
        fs::write(root.join("small").join(name), name).unwrap();
    }
    for length in [1, 30, 59, 60, 61, 100, 155, 200, 1000] {
        let target: String = "target/".chars().cycle().take(length).collect();
        symlink(target, root.join(format!("link-{length}"))).unwrap();
    }
    let odd = OsStr::from_bytes(b"odd \x1b[31m\xff\n name");
    fs::write(root.join(odd), b"odd").unwrap();
    fs::write(root.join("n".repeat(255)), b"long").unwrap();
    fs::hard_link(root.join("file-1"), root.join("a/another name")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), 0o640.into()).unwrap();
    folder
}

/// Checks that the file system has the same contents as the directory.
pub(super) fn compare(ext4: &Ext4, folder: &Path, case: &str) {
    assert_eq!(ext4.damage(), [], "{case}");
    let mut found = everything(ext4);
    found.remove(&b"lost+found"[..]);
    let mut numbers = std::collections::HashMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().as_os_str().as_bytes();
            let case = format!("{case}: {}", name.escape_ascii());
            let inode = found
                .remove(name)
                .unwrap_or_else(|| panic!("{case} is missing"));
            let metadata = path.symlink_metadata().unwrap();

            compare_inode(&inode, &metadata, &case);
            let number = *numbers.entry(metadata.ino()).or_insert(inode.number);
            assert_eq!(number, inode.number, "{case}");
            match inode.kind {
                Kind::File => assert!(content(ext4, &inode) == fs::read(&path).unwrap(), "{case}"),
                Kind::Symlink => assert_eq!(
                    ext4.read_link(&inode).unwrap(),
                    fs::read_link(&path).unwrap().into_os_string().into_vec(),
                    "{case}"
                ),
                Kind::Directory => pending.push(path),
                _ => {}
            }
        }
    }
    assert!(found.is_empty(), "{case}: nobody made {:?}", found.keys());
}

fn compare_inode(inode: &Inode, metadata: &fs::Metadata, case: &str) {
    let kind = metadata.file_type();
    assert_eq!(inode.kind == Kind::File, kind.is_file(), "{case}");
    assert_eq!(inode.kind == Kind::Directory, kind.is_dir(), "{case}");
    assert_eq!(inode.kind == Kind::Symlink, kind.is_symlink(), "{case}");
    assert_eq!(inode.kind == Kind::Fifo, kind.is_fifo(), "{case}");
    assert_eq!(u32::from(inode.mode), metadata.mode() & 0o7777, "{case}");
    assert_eq!(
        (inode.uid, inode.gid),
        (metadata.uid(), metadata.gid()),
        "{case}"
    );
    assert_eq!(inode.modified.seconds, metadata.mtime(), "{case}");
    assert_eq!(u64::from(inode.links), metadata.nlink(), "{case}");
    if kind.is_file() || kind.is_symlink() {
        assert_eq!(inode.size, metadata.size(), "{case}");
    }
}
