use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    fs,
    os::unix::{
        ffi::OsStringExt as _,
        fs::{FileTypeExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{lgetxattr, llistxattr};

/// The visible properties of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    mode: u32,
    modified: (i64, i64),
    kind: Kind,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Directory,
    File(Vec<u8>),
    /// A hard link to this file.
    SameAs(PathBuf),
    Symlink(PathBuf),
    Other,
}

/// Returns everything at and below a path.
pub(super) fn snapshot(top: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut seen = BTreeMap::new();
    let mut first_names = HashMap::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(path) = waiting.pop() {
        let place = if path == Path::new("") {
            top.to_owned()
        } else {
            top.join(&path)
        };
        let found = fs::symlink_metadata(&place).unwrap();
        let kind = found.file_type();
        let first = first_names
            .entry((found.dev(), found.ino()))
            .or_insert_with(|| path.clone());
        let kind = if kind.is_dir() {
            let mut names: Vec<OsString> = fs::read_dir(&place)
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            // Visit names in order, so that the first path of a file is the
            // smallest.
            names.sort_unstable_by(|a, b| b.cmp(a));
            waiting.extend(names.iter().map(|name| path.join(name)));
            Kind::Directory
        } else if kind.is_symlink() {
            Kind::Symlink(fs::read_link(&place).unwrap())
        } else if kind.is_fifo() || kind.is_socket() {
            Kind::Other
        } else if *first != path {
            Kind::SameAs(first.clone())
        } else {
            Kind::File(fs::read(&place).unwrap())
        };
        let seen_here = Seen {
            mode: found.mode() & 0o7777,
            modified: (found.mtime(), found.mtime_nsec()),
            kind,
            xattrs: xattrs(&place),
        };
        seen.insert(path, seen_here);
    }
    seen
}

pub(super) fn name(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

fn xattrs(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 65536];
    let length = llistxattr(path, &mut names[..]).unwrap_or(0);
    let mut xattrs = BTreeMap::new();
    for name in names[..length].split(|byte| *byte == 0) {
        if name.starts_with(b"user.") {
            let mut value = vec![0; 65536];
            let length = lgetxattr(path, name, &mut value[..]).unwrap();
            xattrs.insert(name.to_vec(), value[..length].to_vec());
        }
    }
    xattrs
}
