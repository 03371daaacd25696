//! `vmcell diff`: what has changed in a directory of a VM.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use vmcell::{
    Error, Vm,
    diff::{Change, ChangeKind, Diff, Manifest, ManifestEntry, ManifestKind, Shown},
    files::{EntryKind, ManifestOptions},
};

use super::{
    DiffArguments,
    baseline::{baseline_of, with_texts},
    colour, name,
    page::Page,
    place::guest_path,
};
use crate::{failure::print_json, runtime::block_on, saving};

/// There are changes, and somebody wants to know from the exit code.
const CHANGED: u8 = 1;

/// A longer file is no manifest of ours.
const MAX_MANIFEST: u64 = 512 << 20;

pub(crate) fn diff(arguments: DiffArguments) -> anyhow::Result<u8> {
    let against = arguments.against.as_deref().map(read).transpose()?;
    block_on(async move {
        let vm = Vm::attach(&arguments.id).await?;
        let directory = guest_path(&arguments.path);
        let entry = vm.files().stat(&directory).await?;
        if entry.kind != EntryKind::Directory {
            let directory = name::shown(&directory);
            return Err(Error::Invalid(format!("{directory} is not a directory")).into());
        }
        if let Some(file) = &arguments.save {
            let manifest = vm.files().manifest(&directory, &with_texts()).await?;
            save(&manifest, file)?;
            return Ok(0);
        }
        let since = match against {
            Some(manifest) => manifest,
            None => baseline_of(&vm, &directory).await?,
        };
        let options = ManifestOptions::new();
        let diff = vm.files().diff(&directory, &since, &options).await?;
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
    let mut page = Page::new();
    let written = if arguments.name_status {
        print_names(diff, &mut page)
    } else {
        print_patch(diff, &mut page)
    };
    page.finish(written)
}

/// Into a pipe the patch goes as it is, so that it can be applied.
fn print_patch(diff: &Diff, page: &mut Page) -> io::Result<()> {
    if !page.is_terminal() {
        return diff.write_patch(page);
    }
    let coloured = std::env::var_os("NO_COLOR").is_none();
    diff.files()
        .iter()
        .try_for_each(|file| colour::write(file.patch(), coloured, page))
}

fn print_names(diff: &Diff, page: &mut Page) -> io::Result<()> {
    diff.files().iter().try_for_each(|file| {
        let change = file.change();
        let letter = match change.kind() {
            ChangeKind::Added => "A ",
            ChangeKind::Removed => "D ",
            ChangeKind::TypeChanged => "T ",
            _ => "M ",
        };
        page.named(letter, &change.path, &mode_change(change))
    })
}

fn mode_change(change: &Change) -> String {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) if change.mode_changed() => {
            format!(" (mode {:04o} -> {:04o})", old.mode, new.mode)
        }
        _ => String::new(),
    }
}

fn print_as_json(vm: &str, directory: &Path, diff: &Diff) {
    let changes = diff.files().iter().map(|file| {
        let change = file.change();
        let mut told = json!({
            "change": match change.kind() {
                ChangeKind::Added => "added",
                ChangeKind::Removed => "removed",
                ChangeKind::TypeChanged => "type-changed",
                ChangeKind::ModeChanged => "mode-changed",
                _ => "modified",
            },
            "old": change.old.as_ref().map(side_as_json),
            "new": change.new.as_ref().map(side_as_json),
            "patch": match file.shown() {
                Shown::Whole => String::from_utf8_lossy(file.patch()).into(),
                _ => Value::Null,
            },
        });
        name::put(&mut told, "path", &change.path);
        told
    });
    let mut told = json!({ "sandbox_id": vm, "changes": changes.collect::<Vec<_>>() });
    name::put(&mut told, "directory", directory);
    print_json(&told);
}

fn side_as_json(entry: &ManifestEntry) -> Value {
    let mut told = json!({ "mode": format!("{:04o}", entry.mode) });
    told["type"] = match &entry.kind {
        ManifestKind::File { size, sha256 } => {
            told["size"] = (*size).into();
            told["sha256"] = name::hex(sha256).into();
            "file".into()
        }
        ManifestKind::Directory => "directory".into(),
        ManifestKind::Symlink { target } => {
            name::put_bytes(&mut told, "target", target);
            "symlink".into()
        }
        ManifestKind::Other => "other".into(),
    };
    told
}

fn read(path: &Path) -> Result<Manifest, Error> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_MANIFEST).read_to_end(&mut bytes))
        .map_err(|error| bad(path, error))?;
    Manifest::from_bytes(&bytes).map_err(|error| bad(path, error))
}

/// The file gets its name when it is complete.
fn save(manifest: &Manifest, path: &Path) -> Result<(), Error> {
    let bytes = manifest.to_bytes().map_err(|error| bad(path, error))?;
    saving::write(path, &bytes).map_err(|error| bad(path, error))
}

fn bad(path: &Path, reason: impl ToString) -> Error {
    Error::BadFile {
        what: "manifest",
        path: PathBuf::from(path),
        reason: reason.to_string(),
    }
}
