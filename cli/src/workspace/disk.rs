//! `vmcell workspace disk`: the disk of a stopped workspace.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::json;
use tokio::task::spawn_blocking;
use vmcell::{
    Error,
    disk::{
        Disk, DiskError,
        image::{Flattened, flatten},
    },
};
use vmcell_cli::{
    show::{Progress, name},
    signals::Signals,
};

use super::{
    arguments::WorkspaceId,
    content::Content,
    file::{ListArguments, ReadArguments},
    find,
};
use crate::{
    failure::print_json,
    files::{Listing, guest_path},
};

#[derive(Debug, Args)]
pub(super) struct DiskArguments {
    #[command(subcommand)]
    command: DiskCommand,
}

#[derive(Debug, Subcommand)]
enum DiskCommand {
    /// Copy the disk to a raw ext4 image.
    Export(ExportArguments),
    /// List a directory, with permissions, owners, sizes and times.
    List(ListArguments),
    /// Print a file.
    Read(ReadArguments),
}

#[derive(Debug, Args)]
struct ExportArguments {
    #[command(flatten)]
    workspace: WorkspaceId,
    /// New file, which must not exist.
    #[arg(long, value_name = "HOST_PATH")]
    output: PathBuf,
}

pub(super) async fn disk(arguments: DiskArguments, json: bool) -> anyhow::Result<u8> {
    match arguments.command {
        DiskCommand::Export(arguments) => export(&arguments, json).await,
        DiskCommand::List(arguments) => list(&arguments, json).await,
        DiskCommand::Read(arguments) => read(&arguments, json).await,
    }
}

async fn export(arguments: &ExportArguments, json: bool) -> anyhow::Result<u8> {
    let workspace = find(&arguments.workspace.id).await?;
    let disk = workspace.disk().await?;
    let mut signals = Signals::new()?;
    let is_cancelled = Arc::new(AtomicBool::new(false));
    let (to, cancel) = (arguments.output.clone(), is_cancelled.clone());
    let mut flattening = spawn_blocking(move || flatten_to(&disk, &to, &cancel));
    let flattened = tokio::select! {
        flattened = &mut flattening => flattened.context("cannot copy the disk")?,
        code = signals.next() => {
            is_cancelled.store(true, Ordering::Relaxed);
            // It leaves no incomplete file.
            let _ = flattening.await;
            return Ok(code);
        }
    };
    let flattened = flattened.map_err(Error::from)?;
    if json {
        let mut object = json!(flattened);
        object["workspace_id"] = workspace.id().into();
        name::insert(&mut object, "output_path", &arguments.output);
        print_json(&object);
    }
    Ok(0)
}

fn flatten_to(disk: &Disk, to: &Path, cancel: &AtomicBool) -> Result<Flattened, DiskError> {
    let bar = Progress::new(Some(disk.size()));
    let flattened = flatten(disk.image(), to, disk.size(), &mut |progress| {
        bar.set_position(progress.done);
        match cancel.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    Ok(flattened?)
}

async fn list(arguments: &ListArguments, json: bool) -> anyhow::Result<u8> {
    let workspace = find(&arguments.workspace.id).await?;
    let disk = workspace.disk().await?;
    let path = guest_path(&arguments.path);
    let listing = Listing::of_disk(&disk, path, arguments.walk())?;
    listing.print(arguments.style(workspace.id(), json)).await
}

async fn read(arguments: &ReadArguments, json: bool) -> anyhow::Result<u8> {
    let workspace = find(&arguments.workspace.id).await?;
    let disk = workspace.disk().await?;
    let path = guest_path(&arguments.path);
    let max_bytes = arguments.max_bytes;
    let read = || {
        Ok(Content {
            bytes: disk.read_with(&path, Content::range(max_bytes))?,
            size: disk.stat(&path)?.size,
            path: path.clone(),
            max_bytes,
        })
    };
    let content = read().map_err(|error: DiskError| Error::from(error))?;
    content.print(workspace.id(), json)
}
