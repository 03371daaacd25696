use std::{collections::HashMap, fs, os::unix::fs::MetadataExt as _, path::Path};

use sha2::{Digest as _, Sha256};
use vmcell_wire::files::{FileKind, Time};

use super::{received, round_trip::fill, sent_with, slices, snapshot::snapshot};
use crate::transfer::{ExistingEntry, SendOptions, Sent, Source};

/// The entries that a guest would list.
#[derive(Default)]
struct Listing(HashMap<Vec<u8>, Listed>);

/// The metadata of an entry, the target of a link, and the digest of a file.
type Listed = (fs::Metadata, Vec<u8>, Option<[u8; 32]>);

impl Listing {
    fn new(top: &Path, with_digests: bool) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        let mut listing = Self::default();
        for path in snapshot(top).into_keys() {
            let place = match path.as_os_str().is_empty() {
                true => top.to_owned(),
                false => top.join(&path),
            };
            let found = fs::symlink_metadata(&place).unwrap();
            let target = fs::read_link(&place).unwrap_or_default();
            let digest = (with_digests && found.is_file())
                .then(|| Sha256::digest(fs::read(&place).unwrap()).into());
            let target = target.as_os_str().as_bytes().to_vec();
            let path = path.as_os_str().as_bytes().to_vec();
            listing.0.insert(path, (found, target, digest));
        }
        listing
    }

    fn send(&self, from: &Path) -> (Vec<bytes::Bytes>, Sent) {
        let lookup = |path: &[u8]| {
            let (found, target, digest) = self.0.get(path)?;
            let kind = match found.file_type() {
                kind if kind.is_dir() => FileKind::Directory,
                kind if kind.is_symlink() => FileKind::Symlink,
                _ => FileKind::File,
            };
            Some(ExistingEntry {
                kind,
                mode: (found.mode() & 0o7777) as u16,
                size: found.len(),
                modified: Time {
                    seconds: found.mtime(),
                    nanoseconds: found.mtime_nsec() as u32,
                },
                owner: None,
                target,
                digest: *digest,
            })
        };
        let options = SendOptions {
            existing: Some(&lookup),
            ..SendOptions::default()
        };
        sent_with(Source::Path(from.to_owned()), options).unwrap()
    }
}

#[test]
fn a_second_time_only_what_differs_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fill(&from);
    let (pieces, first) = Listing::default().send(&from);
    received(slices(&pieces), &to).unwrap();

    let (pieces, second) = Listing::new(&to, false).send(&from);
    assert_eq!(second.entries, 1, "the top alone");
    assert_eq!(second.unchanged, first.entries);
    assert!(slices(&pieces).map(<[u8]>::len).sum::<usize>() < 100);
    received(slices(&pieces), &to).unwrap();

    fs::write(from.join("deep/er/exact"), "changed").unwrap();
    fs::create_dir(from.join("empty/new")).unwrap();
    let (pieces, third) = Listing::new(&to, false).send(&from);
    received(slices(&pieces), &to).unwrap();
    assert_eq!(snapshot(&from), snapshot(&to));
    // The top, deep, er, exact, empty, new.
    assert_eq!(third.entries, 6);
}

#[test]
fn with_digests_a_time_alone_is_no_difference_and_bytes_are() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir(&from).unwrap();
    fs::write(from.join("same"), "same").unwrap();
    fs::write(from.join("other"), "other").unwrap();
    let (pieces, _) = Listing::default().send(&from);
    received(slices(&pieces), &to).unwrap();

    // Only the content differs.
    let time = fs::metadata(from.join("other"))
        .unwrap()
        .modified()
        .unwrap();
    fs::write(from.join("other"), "OTHER").unwrap();
    let file = fs::File::options().write(true).open(from.join("other"));
    file.unwrap().set_modified(time).unwrap();
    let file = fs::File::options().write(true).open(from.join("same"));
    file.unwrap()
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();

    let (pieces, sent) = Listing::new(&to, true).send(&from);
    assert_eq!(sent.bytes, 5);
    received(slices(&pieces), &to).unwrap();
    assert_eq!(fs::read(to.join("other")).unwrap(), b"OTHER");
    assert_eq!(fs::read(to.join("same")).unwrap(), b"same");
}

#[test]
fn all_names_of_a_changed_file_stay_names_of_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir_all(from.join("d")).unwrap();
    fs::write(from.join("d/a"), "old").unwrap();
    fs::hard_link(from.join("d/a"), from.join("d/b")).unwrap();
    let (pieces, _) = Listing::default().send(&from);
    received(slices(&pieces), &to).unwrap();
    fs::write(from.join("d/a"), "newer").unwrap();
    let (pieces, _) = Listing::new(&to, false).send(&from);
    received(slices(&pieces), &to).unwrap();
    assert_eq!(snapshot(&from), snapshot(&to));
}

#[test]
fn a_single_file_that_is_the_same_is_not_sent_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    fs::write(&from, "x").unwrap();
    let listing = Listing::new(&from, false);
    let (pieces, sent) = listing.send(&from);
    assert!(pieces.is_empty());
    assert_eq!((sent.entries, sent.unchanged), (0, 1));
}
