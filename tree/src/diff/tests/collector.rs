use std::path::PathBuf;

use super::super::{
    Change, DiffOptions, ManifestEntry, ManifestKind, PatchDetail,
    collector::{DiffCollector, DiffLimits, DiffTooLarge},
};

fn added(path: String, kind: ManifestKind) -> Change {
    Change {
        path: PathBuf::from(path),
        old: None,
        new: Some(ManifestEntry { kind, mode: 0o644 }),
    }
}

#[test]
fn a_text_with_thousands_of_names_is_shown_until_the_limit_and_then_named() {
    let limits = DiffLimits::default();
    let text = "x".repeat(1 << 20) + "\n";
    let kind = ManifestKind::File {
        size: text.len() as u64,
        sha256: [7; 32],
    };
    let mut collector = DiffCollector::new(DiffOptions::default(), limits);
    let mut read = 0;
    for number in 0..8000 {
        // The callers read a text only if there is room for it.
        let new = collector.has_room(text.len() as u64).then_some(&text);
        read += usize::from(new.is_some());
        let change = added(format!("name{number:04}"), kind.clone());
        let added = collector.add(change, None, new.map(String::as_bytes));
        assert_eq!(added, Ok(()));
    }
    let diff = collector.finish();
    assert_eq!(diff.files().len(), 8000);
    let shown = |how| {
        diff.files()
            .iter()
            .filter(|file| file.detail() == how)
            .count()
    };
    assert_eq!(
        (read, shown(PatchDetail::Full), shown(PatchDetail::NameOnly)),
        (63, 63, 8000 - 63)
    );
    let sum: usize = diff.files().iter().map(|file| file.patch().len()).sum();
    assert!(sum < limits.full_patch_bytes + (2 << 20), "{sum}");
}

/// A patch names a new path three times, and escapes an unusual byte as four.
#[test]
fn names_and_links_count_too() {
    let limits = DiffLimits {
        full_patch_bytes: 500_000,
        total_bytes: 1_000_000,
    };
    let mut collector = DiffCollector::new(DiffOptions::default(), limits);
    let kind = ManifestKind::Symlink {
        target: vec![b'x'; 4000],
    };
    let (path, length) = ("\u{1}".repeat(4000), 3 * 4 * 4000 + 4000);
    let mut add = || collector.add(added(path.clone(), kind.clone()), None, None);
    for _ in 0..limits.total_bytes / (length + 200) {
        assert_eq!(add(), Ok(()));
    }
    assert_eq!((0..2).try_for_each(|_| add()), Err(DiffTooLarge));
}
