//! For arbitrary text, parsing, printing and applying a patch succeed or fail
//! without a panic; and applying our own diff of two texts to the first gives the second.
//!
//! The input is read as
//!
//! ```text
//! byte   0 .. 2                1 + n         rest
//!        n, little endian      old text      patch, or new text
//! ```
#![no_main]

use std::path::{Component, Path};

use libfuzzer_sys::fuzz_target;
use vmcell_tree::{
    diff::{DiffOptions, FileDiff, Manifest, ManifestEntry, ManifestKind, PatchDetail},
    patch::{ApplyOptions, Patch},
};

fuzz_target!(|input: &[u8]| {
    let Some((length, rest)) = input.split_first_chunk() else {
        return;
    };
    let (old, other) = rest.split_at(rest.len().min(u16::from_le_bytes(*length).into()));
    check_patch(old, other);
    check_diff(old, other);
});

fn check_patch(old: &[u8], text: &[u8]) {
    let patch = match Patch::parse(text) {
        Ok(patch) => patch,
        Err(error) => return assert_is_printable(&error.to_string()),
    };
    assert!(!patch.files().is_empty());
    for path in patch.paths() {
        let is_normal = |part| matches!(part, Component::Normal(_));
        assert!(path.components().all(is_normal), "{path:?}");
        assert_ne!(path, Path::new(""));
    }
    check_printing(&patch);
    for file in patch.files() {
        for old in [None, Some(old)] {
            for fuzz in [0, 2] {
                if let Err(error) = file.apply(old, ApplyOptions { fuzz }) {
                    assert_is_printable(&error.to_string());
                }
            }
        }
    }
}

/// A printed patch is the same patch. Only a path that is almost too long does
/// not fit any more, because it is printed with a prefix.
fn check_printing(patch: &Patch<'_>) {
    let print = |patch: &Patch<'_>| {
        let mut text = Vec::new();
        patch.write_patch(&mut text).expect("writing to memory");
        text
    };
    if patch
        .paths()
        .iter()
        .all(|path| path.as_os_str().len() < 4000)
    {
        let text = print(patch);
        let again = Patch::parse(&text).expect("a printed patch is one");
        assert_eq!(print(&again), text);
    }
}

fn assert_is_printable(text: &str) {
    let is_safe = |character: char| !character.is_control() || character == '\t';
    assert!(text.chars().all(is_safe), "{text:?}");
}

fn check_diff(old: &[u8], new: &[u8]) {
    let manifest = |content: &[u8], digest: u8| {
        let mut manifest = Manifest::new();
        let kind = ManifestKind::File {
            size: content.len() as u64,
            sha256: [digest; 32],
        };
        let entry = ManifestEntry { kind, mode: 0o644 };
        manifest.insert(Path::new("x"), entry).expect("a good path");
        manifest
    };
    for change in Manifest::compare(&manifest(old, 1), &manifest(new, 2)) {
        for context in [0, 3] {
            let options = DiffOptions {
                context,
                ..DiffOptions::default()
            };
            let diff = FileDiff::new(change.clone(), Some(old), Some(new), options);
            if diff.detail() == PatchDetail::Full && old != new {
                let patch = Patch::parse(diff.patch()).expect("a patch of ours is one");
                let made = patch.files()[0].apply(Some(old), ApplyOptions::default());
                assert_eq!(made.expect("a patch of ours fits").as_deref(), Some(new));
            }
        }
    }
}
