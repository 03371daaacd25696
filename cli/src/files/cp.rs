//! `vmcell cp`: copies files into and out of a VM.

use std::{fs, path::Path};

use vmcell::{
    Error,
    files::{Entry, EntryKind, FileFailureKind, Files},
    tree::ArchiveFormat,
};
use vmcell_cli::{
    options::copy_target::{copy_target, is_real_directory},
    show::{Progress, Summary},
    signals::Signals,
};

use super::{
    CpArguments,
    path::{PathArgument, normalized},
    transfer::TransferOptions,
};
use crate::{
    failure::{print_json, report},
    runtime::block_on,
    target,
};

pub(crate) fn cp(arguments: CpArguments) -> anyhow::Result<u8> {
    let CpArguments {
        source,
        destination,
        archive,
        options,
        json,
    } = arguments;
    block_on(async move {
        let mut signals = Signals::new()?;
        let copying = async {
            let (vm, summary) = match (source, destination) {
                (PathArgument::Host(from), PathArgument::Guest { id, path: to }) => {
                    let vm = target::attach(&id).await?;
                    let summary = push(&vm.files(), &from, &to, archive, options).await?;
                    (vm, summary)
                }
                (PathArgument::Guest { id, path: from }, PathArgument::Host(to)) => {
                    let vm = target::attach(&id).await?;
                    let summary = pull(&vm.files(), &from, &to, archive, options).await?;
                    (vm, summary)
                }
                _ => return Err(Error::Invalid(WRONG_PATHS.to_owned())),
            };
            match json {
                true => {
                    let mut object = summary.as_json();
                    object["sandbox_id"] = vm.id().into();
                    print_json(&object);
                }
                false => summary.lines().iter().for_each(|line| report(line)),
            }
            Ok(0)
        };
        // Dropping the future cancels the transfer, and leaves no partial
        // files.
        tokio::select! {
            copied = copying => Ok(copied?),
            code = signals.next() => Ok(code),
        }
    })
}

const WRONG_PATHS: &str = "one of SRC and DST must be ID:PATH, the other a path of this machine";

async fn push(
    files: &Files,
    from: &Path,
    to: &Path,
    archive: bool,
    options: TransferOptions,
) -> Result<Summary, Error> {
    let push = if archive {
        files.push_archive(from, normalized(to))?
    } else {
        let is_directory = entry_at(files, to)
            .await?
            .is_some_and(|entry| entry.kind == EntryKind::Directory);
        files.push(from, normalized(&copy_target(from, to, is_directory)))
    };
    // The unpacked size of an archive is not known.
    let progress = Progress::new(size_of_file(from).filter(|_| !archive));
    let mut push = options.apply_to_push(push)?;
    if let Some(callback) = progress.callback() {
        push = push.progress(callback);
    }
    Ok(push.run().await?.into())
}

async fn pull(
    files: &Files,
    from: &Path,
    to: &Path,
    archive: bool,
    options: TransferOptions,
) -> Result<Summary, Error> {
    let source = normalized(from);
    let pull = if archive {
        files.pull_archive(&source, to, format_of(to)?)
    } else {
        files.pull(&source, copy_target(from, to, is_real_directory(to)))
    };
    let mut pull = options.apply_to_pull(pull)?;
    let entry = files.stat_link(&source).await?;
    let progress = Progress::new((entry.kind == EntryKind::File).then_some(entry.size));
    if let Some(callback) = progress.callback() {
        pull = pull.progress(callback);
    }
    Ok(pull.run().await?.into())
}

async fn entry_at(files: &Files, path: &Path) -> Result<Option<Entry>, Error> {
    match files.stat(normalized(path)).await {
        Ok(entry) => Ok(Some(entry)),
        Err(Error::File(failure)) if failure.kind == FileFailureKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the size of a regular file.
fn size_of_file(path: &Path) -> Option<u64> {
    let found = fs::symlink_metadata(path).ok()?;
    found.is_file().then_some(found.len())
}

fn format_of(archive: &Path) -> Result<ArchiveFormat, Error> {
    ArchiveFormat::from_path(archive).ok_or_else(|| Error::BadFile {
        what: "archive",
        path: archive.to_owned(),
        reason: "its name must end with .tar, .tar.gz, .tgz or .tar.zst".to_owned(),
    })
}
