//! Creates and describes trees on this machine.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, symlink},
    },
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// A name that is not UTF-8 and has an escape sequence.
pub(crate) const ODD_NAME: &[u8] = b"odd \xff\n\x1b[2J";

/// Creates a tree with everything that a copy should preserve.
pub(crate) fn create_tree(top: &Path) {
    let write = |name: &OsStr, bytes: &[u8], mode: u32| {
        let path = top.join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::create_dir_all(top.join("src/deep")).unwrap();
    fs::create_dir(top.join("empty")).unwrap();
    write("notes".as_ref(), b"one\ntwo\nthree\n", 0o640);
    write("src/run.sh".as_ref(), b"#!/bin/sh\n", 0o755);
    write("src/deep/none".as_ref(), b"", 0o600);
    write("src/deep/large".as_ref(), &vec![7; 300_000], 0o644);
    write(OsStr::from_bytes(ODD_NAME), b"odd", 0o644);
    fs::hard_link(top.join("notes"), top.join("src/notes")).unwrap();
    symlink("../notes", top.join("src/link")).unwrap();
    symlink("nowhere", top.join("broken")).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_000_000);
    let file = fs::File::options().append(true).open(top.join("notes"));
    file.unwrap().set_modified(old).unwrap();
    fs::set_permissions(top.join("empty"), fs::Permissions::from_mode(0o700)).unwrap();
}

/// Describes everything below a directory that a copy should preserve.
pub(crate) fn describe(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut described = BTreeMap::new();
    let mut pending = vec![top.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let found = path.symlink_metadata().unwrap();
            let text = if found.is_symlink() {
                format!("-> {:?}", fs::read_link(&path).unwrap())
            } else if found.is_dir() {
                pending.push(path.clone());
                format!("directory {:o}", found.mode())
            } else {
                let (mode, links) = (found.mode(), found.nlink());
                let time = (found.mtime(), found.mtime_nsec());
                let bytes = fs::read(&path).unwrap();
                let kept = &bytes[..bytes.len().min(40)];
                format!("{mode:o} {links} {time:?} {} {kept:?}", bytes.len())
            };
            described.insert(path.strip_prefix(top).unwrap().to_owned(), text);
        }
    }
    described
}
