//! `vmcell diff`: prints what has changed in a directory of a VM.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use serde_json::json;
use vmcell::{
    Error, Vm,
    diff::{Diff, Manifest, PatchDetail},
    files::{EntryKind, ManifestOptions},
};
use vmcell_cli::{
    atomic_file,
    show::{SafeStdout, change, name},
};

use super::{
    DiffArguments,
    baseline::{baseline_below, with_texts},
    path::guest_path,
};
use crate::{
    failure::{print_json, report},
    runtime::block_on,
    target,
};

/// The exit code for changes, with `--exit-code`.
const CHANGED: u8 = 1;

/// The size above which a file cannot be one of our manifests.
const MAX_MANIFEST: u64 = 512 << 20;

pub(crate) fn diff(arguments: DiffArguments) -> anyhow::Result<u8> {
    let against = arguments.against.as_deref().map(read).transpose()?;
    block_on(async move {
        let vm = target::attach(&arguments.id).await?;
        let directory = guest_path(&arguments.path);
        let entry = vm.files().stat(&directory).await?;
        if entry.kind != EntryKind::Directory {
            let directory = name::printable(&directory);
            return Err(Error::Invalid(format!("{directory} is not a directory")).into());
        }
        if let Some(file) = &arguments.save {
            let manifest = vm.files().manifest(&directory, with_texts()).await?;
            save(&manifest, file)?;
            return Ok(0);
        }
        let since = match against {
            Some(manifest) => manifest,
            None => baseline_below(&vm, &directory).await?,
        };
        let options = ManifestOptions::new();
        let diff = vm.files().diff(&directory, &since, options).await?;
        let code = print(&vm, &directory, &diff, &arguments)?;
        Ok(match code {
            0 if arguments.exit_code && !diff.is_empty() => CHANGED,
            code => code,
        })
    })
}

fn print(vm: &Vm, directory: &Path, diff: &Diff, arguments: &DiffArguments) -> anyhow::Result<u8> {
    if arguments.json {
        print_as_json(vm.id(), directory, diff);
        return Ok(0);
    }
    print_changes(diff, arguments.name_status)
}

/// Prints a patch, or only the kind and the name of each change.
pub(crate) fn print_changes(diff: &Diff, name_status: bool) -> anyhow::Result<u8> {
    let mut out = SafeStdout::new();
    let written = diff.files().iter().try_for_each(|file| match name_status {
        true => change::print_name(file.change(), "", &mut out),
        false => change::print_patch(file, &mut out),
    });
    let code = out.finish(written)?;
    if !name_status {
        report_omitted_contents(diff);
    }
    Ok(code)
}

fn report_omitted_contents(diff: &Diff) {
    let files = diff.files().iter();
    let omitted = files
        .filter(|file| file.detail() == PatchDetail::NameOnly)
        .count();
    if omitted > 0 {
        report(&format!(
            "binary or large files, or too many, which the patch only names, so that it leaves \
             them out: {omitted}"
        ));
    }
}

fn print_as_json(vm: &str, directory: &Path, diff: &Diff) {
    let mut object = json!({ "sandbox_id": vm, "changes": diff.files() });
    name::insert(&mut object, "directory", directory);
    print_json(&object);
}

fn read(path: &Path) -> Result<Manifest, Error> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_MANIFEST).read_to_end(&mut bytes))
        .map_err(|error| bad_file(path, error))?;
    Manifest::from_bytes(&bytes).map_err(|error| bad_file(path, error))
}

/// Writes the file atomically.
fn save(manifest: &Manifest, path: &Path) -> Result<(), Error> {
    let bytes = manifest.to_bytes().map_err(|error| bad_file(path, error))?;
    atomic_file::write_private(path, &bytes).map_err(|error| bad_file(path, error))
}

fn bad_file(path: &Path, reason: impl ToString) -> Error {
    Error::BadFile {
        what: "manifest",
        path: PathBuf::from(path),
        reason: reason.to_string(),
    }
}
