use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::{
    diff::{ChangeKind, ManifestError},
    patch::BadName,
};

fn rich() -> Manifest {
    let mut manifest = manifest([
        ("dir", entry(ManifestKind::Directory, 0o755)),
        ("dir/file", file(0o4755, b"text")),
        ("dir.file", file(0o600, b"")),
        ("link", symlink(b"\xff/../nowhere//x")),
        ("pipe", entry(ManifestKind::Other, 0o600)),
    ]);
    manifest.keep_text(digest(b"text"), b"text".to_vec());
    manifest
}

#[test]
fn a_manifest_survives_being_stored() {
    let manifest = rich();
    let bytes = manifest.to_bytes().unwrap();
    let read = Manifest::from_bytes(&bytes).unwrap();
    assert_eq!(read, manifest);
    assert_eq!(read.text(&digest(b"text")), Some(&b"text"[..]));
    assert_eq!(read.text(&digest(b"other")), None);
}

#[test]
fn a_directory_comes_right_before_what_is_in_it() {
    let manifest = rich();
    let paths: Vec<_> = manifest.iter().map(|(path, _)| path).collect();
    let expected = ["dir", "dir/file", "dir.file", "link", "pipe"];
    assert_eq!(paths, expected.map(Path::new));
}

#[test]
fn only_paths_beneath_the_root_are_noted() {
    let mut manifest = Manifest::new();
    for (path, error) in [
        ("/x", BadName::Absolute("/x".to_owned())),
        ("x/../y", BadName::ParentDir("x/../y".to_owned())),
        ("", BadName::Empty),
        (".", BadName::Empty),
    ] {
        let result = manifest.insert(Path::new(path), symlink(b"x"));
        assert_eq!(result, Err(error));
    }
    manifest
        .insert(Path::new("./x//y/"), symlink(b"x"))
        .unwrap();
    assert!(manifest.get(Path::new("x/y")).is_some());
}

#[test]
fn changes_are_told_by_path() {
    let old = manifest([
        ("a-dir", entry(ManifestKind::Directory, 0o755)),
        ("gone", file(0o644, b"1")),
        ("link", symlink(b"1")),
        ("mode", file(0o644, b"1")),
        ("modified", file(0o644, b"1")),
        ("same", file(0o644, b"1")),
        ("same-link", entry(symlink(b"1").kind, 0o700)),
        ("type", file(0o644, b"1")),
        ("both", file(0o644, b"1")),
    ]);
    let new = manifest([
        ("a-dir", entry(ManifestKind::Directory, 0o700)),
        ("link", symlink(b"2")),
        ("mode", file(0o755, b"1")),
        ("modified", file(0o644, b"2")),
        ("new", entry(ManifestKind::Directory, 0o755)),
        ("same", file(0o644, b"1")),
        ("same-link", symlink(b"1")),
        ("type", entry(ManifestKind::Directory, 0o755)),
        ("both", file(0o755, b"2")),
    ]);
    let changes = Manifest::compare(&old, &new);
    let found: Vec<_> = changes
        .iter()
        .map(|change| {
            (
                change.path.to_str().unwrap(),
                change.kind(),
                change.mode_changed(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("a-dir", ChangeKind::ModeChanged, true),
            ("both", ChangeKind::Modified, true),
            ("gone", ChangeKind::Removed, false),
            ("link", ChangeKind::Modified, false),
            ("mode", ChangeKind::ModeChanged, true),
            ("modified", ChangeKind::Modified, false),
            ("new", ChangeKind::Added, false),
            ("type", ChangeKind::TypeChanged, true),
        ]
    );
    assert_eq!(Manifest::compare(&new, &new), []);
}

#[test]
fn bytes_that_are_no_manifest_are_refused() {
    let bytes = rich().to_bytes().unwrap();
    let error = |bytes: &[u8]| Manifest::from_bytes(bytes).unwrap_err();
    assert!(matches!(error(b""), ManifestError::NotManifest));
    assert!(matches!(
        error(b"something else"),
        ManifestError::NotManifest
    ));
    for length in 8..bytes.len() {
        assert!(
            matches!(error(&bytes[..length]), ManifestError::Damaged),
            "{length}"
        );
    }
    let mut later = bytes.clone();
    later[8] = 2;
    assert!(matches!(error(&later), ManifestError::Version(2)));
}

#[test]
fn a_small_file_cannot_fill_the_memory() {
    let zeros = vec![0; 600 << 20];
    let mut bytes = b"vmcellMF\x01".to_vec();
    bytes.extend(zstd::bulk::compress(&zeros, 1).unwrap());
    assert!(bytes.len() < 1 << 20);
    let error = Manifest::from_bytes(&bytes).unwrap_err();
    assert!(matches!(error, ManifestError::TooLarge), "{error}");
    // An announced number of entries that do not follow takes no memory either.
    let mut bytes = b"vmcellMF\x01".to_vec();
    bytes.extend(zstd::bulk::compress(&[0xff, 0xff, 0xff, 0xff, 0x0f], 1).unwrap());
    let error = Manifest::from_bytes(&bytes).unwrap_err();
    assert!(matches!(error, ManifestError::Damaged), "{error}");
}

proptest! {
    #[test]
    fn any_content_is_a_manifest_or_an_error(content in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = b"vmcellMF\x01".to_vec();
        bytes.extend(zstd::bulk::compress(&content, 1).unwrap());
        if let Ok(manifest) = Manifest::from_bytes(&bytes) {
            let stored = manifest.to_bytes().unwrap();
            prop_assert_eq!(Manifest::from_bytes(&stored).unwrap(), manifest);
        }
    }
}
