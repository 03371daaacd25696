//! `vmcell snapshot`: saves a VM with its memory.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use serde_json::json;
use tokio::time::timeout;
use vmcell::{
    Vm,
    snapshot::{SnapshotOptions, SnapshotReport},
};
use vmcell_cli::{
    options::size::human_readable,
    show::{Spinner, name},
    signals::Signals,
};

use crate::{
    failure::{print_json, report},
    runtime::block_on,
    stop::owner_not_responding,
    target,
};

/// How long a VM may take to end once its snapshot is written.
const END_TIMEOUT: Duration = Duration::from_secs(10);

const EXAMPLES: &str = "\
Examples:
  vmcell snapshot build ./build.snapshot
  vmcell run --from ./build.snapshot -- uname -a
  vmcell restore --detach --id copy ./build.snapshot";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SnapshotArguments {
    /// ID of the VM, as listed by `vmcell ps`.
    #[arg(value_name = "ID")]
    id: String,
    /// Folder to create. It contains everything that is in the memory of the
    /// VM, also secrets.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    options: SaveOptions,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a VM is saved.
#[derive(Debug, Args)]
pub(crate) struct SaveOptions {
    /// Compress the files: they take less space, and longer to restore.
    #[arg(long)]
    compress: bool,
    /// End the VM when it is saved.
    #[arg(long)]
    end: bool,
}

impl SaveOptions {
    pub(crate) fn to_options(&self) -> SnapshotOptions {
        SnapshotOptions::new()
            .compress(self.compress)
            .end_vm(self.end)
    }

    /// Waits until a VM that ends has ended: its id is free when this returns.
    pub(crate) async fn wait_for_end(&self, vm: &Vm) -> anyhow::Result<()> {
        if self.end {
            let ended = timeout(END_TIMEOUT, vm.ended()).await;
            ended.map_err(|_| owner_not_responding(vm))?;
        }
        Ok(())
    }
}

pub(crate) fn snapshot(arguments: SnapshotArguments) -> anyhow::Result<u8> {
    // The program that owns the VM writes it, and may be in another folder.
    let path = std::path::absolute(&arguments.path)
        .with_context(|| format!("snapshot {}", arguments.path.display()))?;
    block_on(async move {
        let mut signals = Signals::new()?;
        let message = format!("taking a snapshot of {}", arguments.id);
        let taking = Spinner::show_during(message, take(&arguments, &path));
        let taken = tokio::select! {
            taken = taking => taken?,
            code = signals.next() => return Ok(code),
        };
        if arguments.json {
            let mut object = json!({
                "sandbox_id": arguments.id,
                "bytes": taken.bytes,
                "pause_ms": taken.pause.as_secs_f64() * 1000.0,
            });
            name::insert(&mut object, "path", &path);
            print_json(&object);
        } else if io::stderr().is_terminal() {
            report(&describe(&arguments.path, &taken));
        }
        Ok(0)
    })
}

async fn take(arguments: &SnapshotArguments, path: &Path) -> anyhow::Result<SnapshotReport> {
    let vm = target::attach(&arguments.id).await?;
    let options = arguments.options.to_options();
    let taken = vm.snapshot_with(path, options).await?;
    arguments.options.wait_for_end(&vm).await?;
    Ok(taken)
}

fn describe(path: &Path, taken: &SnapshotReport) -> String {
    format!(
        "{}: {}, the VM stood still for {} ms",
        name::printable(path),
        human_readable(taken.bytes),
        taken.pause.as_millis()
    )
}
