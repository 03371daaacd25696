//! `vmcell workspace sync push` and `export`: copy files into a workspace and
//! out of it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use vmcell::Error;
use vmcell_cli::{
    show::{Summary, name},
    signals::Signals,
};

use super::{arguments::WorkspaceId, attach, file::files};
use crate::{
    failure::{print_json, report},
    files::{PullArgument, PushSource, WORKSPACE, guest_path},
    target::Target,
};

#[derive(Debug, Args)]
pub(super) struct SyncArguments {
    #[command(subcommand)]
    command: SyncCommand,
}

#[derive(Debug, Subcommand)]
enum SyncCommand {
    /// Copy a directory, an archive or a file of this machine into a running
    /// workspace.
    Push(PushArguments),
}

#[derive(Debug, Args)]
struct PushArguments {
    #[command(flatten)]
    workspace: WorkspaceId,
    /// What to copy: of a directory, the contents are copied; a .tar, .tar.gz,
    /// .tgz or .tar.zst is unpacked; another file keeps its name.
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// Directory below /workspace to copy into.
    #[arg(long, value_name = "PATH", default_value = WORKSPACE)]
    dest: OsString,
}

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    #[command(flatten)]
    workspace: WorkspaceId,
    /// File or directory. A relative path starts at /workspace.
    #[arg(value_name = "PATH")]
    path: OsString,
    /// Where the copy goes. If it ends with `/`, the copy is placed in it under
    /// its own name. No component may be a symbolic link.
    #[arg(long, value_name = "HOST_PATH")]
    output: PathBuf,
    /// Allow PATH to be a symbolic link. The link is created on this machine
    /// with whatever target the workspace has set.
    #[arg(long)]
    allow_symlink: bool,
}

pub(super) async fn sync(arguments: SyncArguments, json: bool) -> anyhow::Result<u8> {
    let SyncCommand::Push(arguments) = arguments.command;
    let source = PushSource::check(&arguments.source).map_err(|error| Error::BadFile {
        what: "source",
        path: arguments.source.clone(),
        reason: error.to_string(),
    })?;
    let target = attach(&arguments.workspace.id).await?;
    let to = guest_path(&arguments.dest);
    let pushing = async { Ok(source.push(&files(&target), &to).await?) };
    finish(pushing, &target, ("destination", &to), json).await
}

pub(super) async fn export(arguments: ExportArguments, json: bool) -> anyhow::Result<u8> {
    let target = attach(&arguments.workspace.id).await?;
    let pull = PullArgument::new(&arguments.path, arguments.output.as_os_str());
    let files = files(&target);
    let pulling = async { Ok(pull.pull(&files, arguments.allow_symlink).await?) };
    finish(pulling, &target, ("output_path", &arguments.output), json).await
}

/// Waits for a transfer, and prints what was copied. A signal cancels it, and
/// leaves no partial files.
async fn finish(
    copying: impl Future<Output = anyhow::Result<Summary>>,
    target: &Target,
    (key, path): (&str, &Path),
    json: bool,
) -> anyhow::Result<u8> {
    let mut signals = Signals::new()?;
    let summary = tokio::select! {
        summary = copying => summary?,
        code = signals.next() => return Ok(code),
    };
    if json {
        let mut object = summary.as_json();
        target.add_to(&mut object);
        name::insert(&mut object, key, path);
        print_json(&object);
    } else {
        summary.lines().iter().for_each(|line| report(line));
    }
    Ok(0)
}
