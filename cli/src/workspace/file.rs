//! `vmcell workspace file`: lists, reads and writes files below `/workspace`.

use std::{ffi::OsString, fs, io::Write as _, path::PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use vmcell::{
    Error,
    files::{Files, WalkOptions},
};
use vmcell_cli::{options::size, show::name};

use super::{arguments::WorkspaceId, attach, content::Content};
use crate::{
    failure::print_json,
    files::{Listing, ListingStyle, WORKSPACE, guest_path},
    target::Target,
};

#[derive(Debug, Args)]
pub(super) struct FileArguments {
    #[command(subcommand)]
    command: FileCommand,
}

#[derive(Debug, Subcommand)]
enum FileCommand {
    /// List a directory, with permissions, owners, sizes and times.
    List(ListArguments),
    /// Print a file.
    Read(ReadArguments),
    /// Create or replace a file, and the directories that it is in.
    Write(WriteArguments),
}

#[derive(Debug, Args)]
pub(super) struct ListArguments {
    #[command(flatten)]
    pub(super) workspace: WorkspaceId,
    /// Directory. A relative path starts at /workspace.
    #[arg(value_name = "PATH", default_value = WORKSPACE)]
    pub(super) path: OsString,
    /// List subdirectories recursively.
    #[arg(long, short = 'R')]
    recursive: bool,
}

#[derive(Debug, Args)]
pub(super) struct ReadArguments {
    #[command(flatten)]
    pub(super) workspace: WorkspaceId,
    /// File. A relative path starts at /workspace.
    #[arg(value_name = "PATH")]
    pub(super) path: OsString,
    /// Print at most this much, in bytes or with a suffix (k, m, g).
    #[arg(long, value_name = "SIZE", default_value_t = Content::DEFAULT_MAX_BYTES, value_parser = size::parse)]
    pub(super) max_bytes: u64,
}

#[derive(Debug, Args)]
struct WriteArguments {
    #[command(flatten)]
    workspace: WorkspaceId,
    /// File. A relative path starts at /workspace.
    #[arg(value_name = "PATH")]
    path: OsString,
    #[command(flatten)]
    source: TextSource,
}

/// What is written to a file.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct TextSource {
    /// Write this text.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// Write the contents of a file of this machine.
    #[arg(long, value_name = "FILE")]
    text_file: Option<PathBuf>,
}

pub(super) async fn file(arguments: FileArguments, json: bool) -> anyhow::Result<u8> {
    match arguments.command {
        FileCommand::List(arguments) => list(&arguments, json).await,
        FileCommand::Read(arguments) => read(&arguments, json).await,
        FileCommand::Write(arguments) => write(arguments, json).await,
    }
}

async fn list(arguments: &ListArguments, json: bool) -> anyhow::Result<u8> {
    let target = attach(&arguments.workspace.id).await?;
    let path = guest_path(&arguments.path);
    let listing = Listing::of_guest(&files(&target), path, arguments.walk()).await?;
    listing.print(arguments.style(target.vm.id(), json)).await
}

impl ListArguments {
    pub(super) fn walk(&self) -> WalkOptions {
        let depth = if self.recursive { u32::MAX } else { 1 };
        WalkOptions::new().depth(depth)
    }

    pub(super) fn style(&self, workspace: &str, json: bool) -> ListingStyle {
        match json {
            true => ListingStyle::Json(json!({ "workspace_id": workspace })),
            false => ListingStyle::Long,
        }
    }
}

async fn read(arguments: &ReadArguments, json: bool) -> anyhow::Result<u8> {
    let target = attach(&arguments.workspace.id).await?;
    let files = files(&target);
    let path = guest_path(&arguments.path);
    let max_bytes = arguments.max_bytes;
    let bytes = files.read_with(&path, Content::range(max_bytes)).await?;
    let content = Content {
        size: files.stat(&path).await?.size,
        path,
        bytes,
        max_bytes,
    };
    content.print(target.vm.id(), json)
}

async fn write(arguments: WriteArguments, json: bool) -> anyhow::Result<u8> {
    let bytes = arguments.source.read()?;
    let target = attach(&arguments.workspace.id).await?;
    let path = guest_path(&arguments.path);
    let written = files(&target).write(&path, bytes).await?;
    if json {
        let mut object = target.as_json();
        name::insert(&mut object, "path", &path);
        object["bytes_written"] = written.size.into();
        print_json(&object);
    } else {
        let path = name::printable(&path);
        writeln!(std::io::stdout(), "wrote {} bytes to {path}", written.size)?;
    }
    Ok(0)
}

impl TextSource {
    fn read(self) -> Result<Vec<u8>, Error> {
        match (self.text, self.text_file) {
            (None, Some(path)) => fs::read(&path).map_err(|error| Error::BadFile {
                what: "text file",
                path,
                reason: error.to_string(),
            }),
            (text, _) => Ok(text.unwrap_or_default().into()),
        }
    }
}

/// Returns the files below `/workspace`. No link leads outside.
pub(super) fn files(target: &Target) -> Files {
    target.vm.files().at(WORKSPACE)
}
