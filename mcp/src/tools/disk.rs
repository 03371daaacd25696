//! The disk of a stopped workspace, without a VM.

use std::{
    ops::ControlFlow,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use vmcell::{
    disk::{Disk, DiskError, image::flatten},
    files::WalkOptions,
};

use super::files::{List, ListInput, Listed, Read, ReadInput};
use crate::{call::Call, failure::Failure, hints::Hints, tool::Tool};

pub(super) struct WorkspaceDiskExport;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportInput {
    workspace_id: String,
    /// New file of the host, in a folder that the server may write.
    output_path: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Exported {
    workspace_id: String,
    output_path: String,
    /// The size of the disk.
    size_bytes: u64,
    /// How much of it is not empty.
    written_bytes: u64,
}

/// Stops a copy when the call is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Tool for WorkspaceDiskExport {
    const NAME: &'static str = "workspace_disk_export";
    const TITLE: &'static str = "Export the disk of a workspace";
    const DESCRIPTION: &'static str = "\
Copy the disk of a stopped workspace to a raw ext4 image on the host. The file must not exist.";
    const HINTS: Hints = Hints::ADDS;
    type Input = ExportInput;
    type Output = Exported;

    async fn run(call: Call, input: ExportInput) -> Result<Exported, Failure> {
        let output = call.shared.paths.new_file(&input.output_path)?;
        let workspace = call.workspace(&input.workspace_id).await?;
        let disk = workspace.disk().await?;
        let stop = StopOnDrop(Arc::default());
        let (to, is_stopped) = (output.clone(), stop.0.clone());
        let copying = spawn_blocking(move || {
            let flattened = flatten(disk.image(), &to, disk.size(), &mut |_| match is_stopped
                .load(Ordering::Relaxed)
            {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
            flattened.map_err(DiskError::from)
        });
        let copied = copying.await.map_err(|error| Failure::internal(&error))??;
        Ok(Exported {
            workspace_id: workspace.id().to_owned(),
            output_path: output.to_string_lossy().into_owned(),
            size_bytes: copied.size,
            written_bytes: copied.written,
        })
    }
}

pub(super) struct WorkspaceDiskList;

impl Tool for WorkspaceDiskList {
    const NAME: &'static str = "workspace_disk_list";
    const TITLE: &'static str = "List files of a stopped workspace";
    const DESCRIPTION: &'static str =
        "List the entries of a folder of a stopped workspace, without starting it.";
    const HINTS: Hints = Hints::READS;
    type Input = ListInput;
    type Output = List;

    async fn run(call: Call, input: ListInput) -> Result<List, Failure> {
        let workspace = call.workspace(&input.workspace_id).await?;
        let disk = workspace.disk().await?;
        let id = workspace.id().to_owned();
        on_thread(move || list(&disk, input, id)).await
    }
}

fn list(disk: &Disk, input: ListInput, workspace_id: String) -> Result<List, Failure> {
    let depth = if input.recursive { u32::MAX } else { 1 };
    let mut entries = Vec::new();
    let mut truncated = false;
    for entry in disk.walk(Path::new(&input.path), WalkOptions::new().depth(depth))? {
        // Damaged ones are left out.
        let Ok(entry) = entry else {
            continue;
        };
        if entries.len() == input.max_entries {
            truncated = true;
            break;
        }
        entries.push(Listed::new(Path::new("/"), &entry));
    }
    Ok(List {
        workspace_id,
        path: input.path,
        entries,
        truncated,
    })
}

pub(super) struct WorkspaceDiskRead;

impl Tool for WorkspaceDiskRead {
    const NAME: &'static str = "workspace_disk_read";
    const TITLE: &'static str = "Read a file of a stopped workspace";
    const DESCRIPTION: &'static str = "\
Read a file of a stopped workspace, without starting it. The path is that of the guest, such as \
/workspace/notes or /etc/passwd.";
    const HINTS: Hints = Hints::READS;
    type Input = ReadInput;
    type Output = Read;

    async fn run(call: Call, input: ReadInput) -> Result<Read, Failure> {
        let options = input.check()?;
        let workspace = call.workspace(&input.workspace_id).await?;
        let disk = workspace.disk().await?;
        let id = workspace.id().to_owned();
        on_thread(move || {
            let size = disk.stat(Path::new(&input.path))?.size;
            let bytes = disk.read_with(Path::new(&input.path), options)?;
            Ok(input.answer(&id, size, bytes))
        })
        .await
    }
}

async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| Failure::internal(&error))?
}
