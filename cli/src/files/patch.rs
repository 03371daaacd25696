//! `vmcell patch`: applies a patch to files of a VM.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use vmcell::{
    Error,
    files::{AppliedPatch, PatchOptions, PatchedFile},
    patch::{FilePatchKind, Strip},
};
use vmcell_cli::show::{self, SafeStdout, name};

use super::{PatchArguments, path::guest_path};
use crate::{
    failure::{self, print_json},
    runtime::block_on,
    target::Target,
};

/// The exit code for a patch that does not apply, so that nothing was changed.
const MISMATCH: u8 = 1;

/// The exit code for a patch of which binary files were left out.
const OMITTED: u8 = 1;

/// How many of the files that were left out a message names.
const MAX_NAMED: usize = 10;

/// The largest patch that is accepted.
const MAX_PATCH: u64 = 512 << 20;

pub(crate) fn patch(arguments: PatchArguments) -> anyhow::Result<u8> {
    let text = read_patch(arguments.file.as_deref())?;
    let mut options = PatchOptions::new().fuzz(arguments.fuzz);
    if let Some(count) = arguments.strip {
        options = options.strip(Strip::Exactly(count));
    }
    block_on(async move {
        let target = Target::attach(&arguments.id).await?;
        let directory = guest_path(&arguments.directory);
        let files = target.vm.files();
        let applied = files.apply_patch(directory, text, options).await;
        report_patch(&target, applied, arguments.json)
    })
}

/// Prints what a patch has changed, or why it does not apply.
pub(crate) fn report_patch(
    target: &Target,
    applied: Result<AppliedPatch, Error>,
    json: bool,
) -> anyhow::Result<u8> {
    let applied = match applied {
        Err(error @ Error::PatchMismatch(_)) => {
            failure::report_error(&error.into(), json);
            return Ok(MISMATCH);
        }
        applied => applied?,
    };
    let code = if json {
        let mut object = show::json::value(&applied);
        target.add_to(&mut object);
        print_json(&object);
        0
    } else {
        let code = print(&applied.files)?;
        report_omitted(&applied);
        code
    };
    Ok(match code {
        0 if !applied.omitted.is_empty() => OMITTED,
        code => code,
    })
}

/// Reads the patch from a file, or from standard input without one or for `-`.
pub(crate) fn read_patch(file: Option<&Path>) -> Result<Vec<u8>, Error> {
    let named = file.filter(|path| *path != Path::new("-"));
    let mut text = Vec::new();
    let most = MAX_PATCH + 1;
    let read = match named {
        Some(path) => File::open(path).and_then(|file| file.take(most).read_to_end(&mut text)),
        None => io::stdin().take(most).read_to_end(&mut text),
    };
    let reason = match read {
        Ok(count) if (count as u64) < most => return Ok(text),
        Ok(_) => format!("it is larger than {} MiB: split it", MAX_PATCH >> 20),
        Err(error) => error.to_string(),
    };
    Err(Error::BadFile {
        what: "patch",
        path: named.unwrap_or(Path::new("on standard input")).to_owned(),
        reason,
    })
}

fn print(files: &[PatchedFile]) -> anyhow::Result<u8> {
    let mut out = SafeStdout::new();
    let written = files.iter().try_for_each(|file| {
        let letter = match file.kind {
            FilePatchKind::Added => "A ",
            FilePatchKind::Deleted => "D ",
            FilePatchKind::Renamed => "R ",
            FilePatchKind::Copied => "C ",
            _ => "M ",
        };
        out.path_line(letter, &file.path, "", "")
    });
    out.finish(written)
}

fn report_omitted(applied: &AppliedPatch) {
    let named = applied.omitted.iter().take(MAX_NAMED);
    let mut names: Vec<_> = named.map(name::printable).collect();
    match applied.omitted.len().checked_sub(MAX_NAMED) {
        _ if names.is_empty() => return,
        None | Some(0) => {}
        Some(more) => names.push(format!("{more} more")),
    }
    failure::report(&format!(
        "binary files, which were left out, so copy them instead: {}",
        names.join(", ")
    ));
}
