//! The manifest of a VM's workspace at the start of its work, for `vmcell
//! diff`.

use std::path::{Component, Path};

use vmcell::{
    Error, Vm,
    diff::{Manifest, ManifestKind},
    files::{FileFailureKind, ManifestOptions},
};

use super::path::WORKSPACE;
use crate::failure::report;

/// How many bytes of file contents a manifest keeps, so that a diff can show
/// lines.
const MAX_TEXT_BYTES: u64 = 32 << 20;

/// Returns options for a manifest that keeps contents.
pub(super) fn with_texts() -> ManifestOptions {
    ManifestOptions::new().keep_texts(MAX_TEXT_BYTES)
}

/// Stores a manifest of the workspace with the VM, for `vmcell diff`.
pub(crate) async fn store_baseline(vm: &Vm) -> Result<(), Error> {
    match vm.files().manifest(WORKSPACE, with_texts()).await {
        Ok(manifest) => vm.set_baseline(&manifest),
        // Not every image has a workspace.
        Err(Error::File(failure)) if failure.kind == FileFailureKind::NotFound => Ok(()),
        Err(error @ (Error::File(_) | Error::Invalid(_))) => {
            report(&format!(
                "`vmcell diff` will have nothing to compare with: {error}"
            ));
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Returns the part of the baseline that is below a directory.
pub(super) async fn baseline_below(vm: &Vm, directory: &Path) -> Result<Manifest, Error> {
    let Ok(below) = directory.strip_prefix(WORKSPACE) else {
        return Err(nothing_to_compare_with(&format!(
            "only {WORKSPACE} has a manifest of its initial contents"
        )));
    };
    if below.components().any(|part| part == Component::ParentDir) {
        return Err(Error::Invalid("PATH must not contain `..`".to_owned()));
    }
    match vm.baseline().await? {
        Some(baseline) => Ok(part_of(baseline, below)),
        None => Err(nothing_to_compare_with(
            "the program that runs the VM has stored no manifest",
        )),
    }
}

fn nothing_to_compare_with(why: &str) -> Error {
    Error::Invalid(format!(
        "{why}: create one with `vmcell diff ID PATH --save FILE`, \
         and compare later with `--against FILE`"
    ))
}

fn part_of(whole: Manifest, below: &Path) -> Manifest {
    if below.as_os_str().is_empty() {
        return whole;
    }
    let mut part = Manifest::new();
    for (path, entry) in whole.iter() {
        let Ok(path) = path.strip_prefix(below) else {
            continue;
        };
        // A manifest has no entry for its own top directory.
        if part.insert(path, entry.clone()).is_err() {
            continue;
        }
        if let ManifestKind::File { sha256, .. } = entry.kind
            && let Some(text) = whole.text(&sha256)
        {
            part.keep_text(sha256, text.to_vec());
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use vmcell::diff::ManifestEntry;

    use super::*;

    fn entry(digit: u8) -> ManifestEntry {
        ManifestEntry {
            kind: ManifestKind::File {
                size: 1,
                sha256: [digit; 32],
            },
            mode: 0o644,
        }
    }

    #[test]
    fn a_part_begins_at_its_directory_and_has_its_texts() {
        let mut whole = Manifest::new();
        let directory = ManifestEntry {
            kind: ManifestKind::Directory,
            mode: 0o755,
        };
        whole.insert("src".as_ref(), directory).unwrap();
        for (path, digit) in [("src/a", 1), ("srcs", 2), ("src/b/c", 3)] {
            whole.insert(path.as_ref(), entry(digit)).unwrap();
            whole.keep_text([digit; 32], vec![digit]);
        }
        let part = part_of(whole, "src".as_ref());
        let paths: Vec<_> = part.iter().map(|(path, _)| path.to_owned()).collect();
        assert_eq!(paths, ["a", "b/c"].map(std::path::PathBuf::from));
        assert_eq!(part.text(&[3; 32]), Some(&[3][..]));
        assert_eq!(part.text(&[2; 32]), None);
    }
}
