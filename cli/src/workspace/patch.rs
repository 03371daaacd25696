//! `vmcell workspace patch apply`: applies a patch below `/workspace`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use vmcell::files::PatchOptions;

use super::{arguments::WorkspaceId, attach, file::files};
use crate::files::{read_patch, report_patch};

#[derive(Debug, Args)]
pub(super) struct PatchArguments {
    #[command(subcommand)]
    command: PatchCommand,
}

#[derive(Debug, Subcommand)]
enum PatchCommand {
    /// Apply a unified diff to files below /workspace, completely or not at all.
    Apply(ApplyArguments),
}

#[derive(Debug, Args)]
struct ApplyArguments {
    #[command(flatten)]
    workspace: WorkspaceId,
    #[command(flatten)]
    source: PatchSource,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct PatchSource {
    /// The patch, as written by `git diff`, `diff -u` or `diff -c`.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    patch: Option<String>,
    /// A file of this machine with the patch; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    patch_file: Option<PathBuf>,
}

pub(super) async fn patch(arguments: PatchArguments, json: bool) -> anyhow::Result<u8> {
    let PatchCommand::Apply(arguments) = arguments.command;
    let text = match arguments.source.patch {
        Some(text) => text.into_bytes(),
        None => read_patch(arguments.source.patch_file.as_deref())?,
    };
    let target = attach(&arguments.workspace.id).await?;
    let applied = files(&target)
        .apply_patch("", text, PatchOptions::new())
        .await;
    report_patch(&target, applied, json)
}
