//! `vmcell cp`: copies files into and out of a VM.

use std::{fs, path::Path};

use vmcell::{
    Error, Vm,
    files::{Entry, EntryKind, FileFailureKind, Files},
    tree::ArchiveFormat,
};
use vmcell_cli::{
    options::landing::{is_directory_to_enter, landing},
    show::{Progress, Summary},
    signals::Signals,
};

use super::{
    CpArguments,
    place::{Place, tidy},
    transfer::TransferOptions,
};
use crate::{
    failure::{print_json, say},
    runtime::block_on,
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
                (Place::Host(from), Place::Guest { id, path: to }) => {
                    let vm = Vm::attach(&id).await?;
                    let summary = push(&vm.files(), &from, &to, archive, options).await?;
                    (vm, summary)
                }
                (Place::Guest { id, path: from }, Place::Host(to)) => {
                    let vm = Vm::attach(&id).await?;
                    let summary = pull(&vm.files(), &from, &to, archive, options).await?;
                    (vm, summary)
                }
                _ => return Err(Error::Invalid(ONE_OF_EACH.to_owned())),
            };
            match json {
                true => {
                    let mut told = summary.as_json();
                    told["sandbox_id"] = vm.id().into();
                    print_json(&told);
                }
                false => summary.lines().iter().for_each(|line| say(line)),
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

const ONE_OF_EACH: &str = "one of SRC and DST must be ID:PATH, the other a path of this machine";

async fn push(
    files: &Files,
    from: &Path,
    to: &Path,
    archive: bool,
    options: TransferOptions,
) -> Result<Summary, Error> {
    let push = if archive {
        files.push_archive(from, tidy(to))?
    } else {
        let is_directory = entry_at(files, to)
            .await?
            .is_some_and(|entry| entry.kind == EntryKind::Directory);
        files.push(from, tidy(&landing(from, to, is_directory)))
    };
    // The unpacked size of an archive is not known.
    let progress = Progress::new(size_of_file(from).filter(|_| !archive));
    let mut push = options.push(push)?;
    if let Some(watcher) = progress.watcher() {
        push = push.progress(watcher);
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
    let source = tidy(from);
    let pull = if archive {
        files.pull_archive(&source, to, format_of(to)?)
    } else {
        files.pull(&source, landing(from, to, is_directory_to_enter(to)))
    };
    let mut pull = options.pull(pull)?;
    let entry = files.stat_link(&source).await?;
    let progress = Progress::new((entry.kind == EntryKind::File).then_some(entry.size));
    if let Some(watcher) = progress.watcher() {
        pull = pull.progress(watcher);
    }
    Ok(pull.run().await?.into())
}

async fn entry_at(files: &Files, path: &Path) -> Result<Option<Entry>, Error> {
    match files.stat(tidy(path)).await {
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
    ArchiveFormat::of_name(archive).ok_or_else(|| Error::BadFile {
        what: "archive",
        path: archive.to_owned(),
        reason: "its name must end with .tar, .tar.gz, .tgz or .tar.zst".to_owned(),
    })
}
