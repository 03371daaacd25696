//! Snapshots of directories, for comparisons.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

/// Everything below a directory, the directory itself included.
pub(crate) type Snapshot = BTreeMap<PathBuf, EntryState>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryState {
    pub(crate) mode: u32,
    pub(crate) modified: (i64, i64),
    /// The bytes of a file, the target of a link.
    pub(crate) content: Vec<u8>,
    /// The first path of the same file.
    pub(crate) first: PathBuf,
    pub(crate) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

pub(crate) fn snapshot(top: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut firsts = BTreeMap::new();
    let mut paths = vec![top.to_path_buf()];
    let mut all = Vec::new();
    while let Some(path) = paths.pop() {
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            paths.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        all.push(path);
    }
    all.sort();
    for path in all {
        let status = fs::symlink_metadata(&path).unwrap();
        let relative = path.strip_prefix(top).unwrap().to_path_buf();
        let first = firsts
            .entry(status.ino())
            .or_insert(relative.clone())
            .clone();
        let content = if status.is_symlink() {
            fs::read_link(&path)
                .unwrap()
                .as_os_str()
                .as_bytes()
                .to_vec()
        } else if status.is_file() {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        let xattrs = if status.is_symlink() {
            Vec::new()
        } else {
            xattrs(&path)
        };
        let state = EntryState {
            mode: status.mode(),
            modified: (status.mtime(), status.mtime_nsec()),
            content,
            first,
            xattrs,
        };
        found.insert(relative, state);
    }
    found
}

fn xattrs(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; 64 * 1024];
    let length = rustix::fs::listxattr(path, names.as_mut_slice()).unwrap_or(0);
    let names = names[..length].split(|byte| *byte == 0);
    let mut all: Vec<_> = names
        .filter(|name| name.starts_with(b"user."))
        .map(|name| {
            let mut value = vec![0; 64 * 1024];
            let length = rustix::fs::getxattr(path, name, value.as_mut_slice()).unwrap();
            (name.to_vec(), value[..length].to_vec())
        })
        .collect();
    all.sort();
    all
}
