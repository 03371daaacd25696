use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot};

use super::{
    End, Vm, VmBuilder, attached,
    driver::{DriverRequest, change},
    facts::VmFacts,
    handle::Control,
    pauser::{Change, PauseRequest},
    saving::{SaveJob, Saved},
};
use crate::{
    error::Error,
    on_thread::on_thread,
    snapshot::{PartialSnapshot, SnapshotOptions, SnapshotReport},
};

impl Vm {
    /// Takes a snapshot of the VM: its memory, its devices and its disk at one instant,
    /// in a new folder. The VM goes on: it stands still only while its memory is copied.
    /// [`restore`](Self::restore) starts a VM from it.
    ///
    /// **It contains everything that was in the memory**: see [`snapshot`](crate::snapshot).
    ///
    /// The folder is there when all of it is written, or not at all. It needs the image
    /// below the VM's disk, which is not in it, unless the backend has no layers.
    ///
    /// With Firecracker and Cloud Hypervisor, file operations and connections to ports that
    /// are under way fail with [`Error::Transport`]: the link to the VM is made anew.
    ///
    /// A paused VM stays paused; its processors run for some milliseconds before the
    /// snapshot is taken, its processes hardly.
    ///
    /// # Errors
    /// [`Error::Snapshot`] if it cannot be written, [`Error::BackendLacks`] if the
    /// backend cannot do it, or not with the link that the VM has, [`Error::Control`] if
    /// the VMM does not, [`Error::Unsupported`] if the VM has an older agent,
    /// [`Error::Gone`] if the VM has ended. On an [attached](Self::attach) handle
    /// [`Error::OwnerFailed`] if its owner cannot.
    ///
    /// # Cancel safety
    /// If the future is dropped, the VM goes on, and the snapshot is there or not.
    pub async fn snapshot(&self, path: impl AsRef<Path>) -> Result<SnapshotReport, Error> {
        self.snapshot_with(path, SnapshotOptions::new()).await
    }

    /// Same as [`snapshot`](Self::snapshot), and can compress it or end the VM with it.
    ///
    /// # Errors
    /// Same as [`snapshot`](Self::snapshot).
    ///
    /// # Cancel safety
    /// Same as [`snapshot`](Self::snapshot).
    pub async fn snapshot_with(
        &self,
        path: impl AsRef<Path>,
        options: SnapshotOptions,
    ) -> Result<SnapshotReport, Error> {
        let path = std::path::absolute(path.as_ref())
            .map_err(Error::host("find the folder of the snapshot"))?;
        if options.leave_disk && !self.shared.keeps_disk {
            return Err(Error::Invalid(
                "the disk of the VM ends with it: it cannot be left out of a snapshot".to_owned(),
            ));
        }
        match &self.shared.control {
            Control::Owner { requests, .. } => {
                let facts = self.shared.facts.clone();
                match take(requests, facts, path, options).await {
                    Err(Error::Gone(_)) => Err(Error::Gone(self.ended().await.reason)),
                    taken => taken,
                }
            }
            Control::Attached(name) => attached::snapshot(name, path, options).await,
        }
    }

    /// Starts a VM from a [snapshot](Self::snapshot). It has an identity of its own, and
    /// a disk that ends with it.
    ///
    /// All of the snapshot is checked before anything is started. Use
    /// [`VmBuilder::snapshot`] for settings.
    ///
    /// # Errors
    /// [`Error::Snapshot`] if it is damaged or does not fit, and those of
    /// [`VmBuilder::start`].
    ///
    /// # Cancel safety
    /// If the future is dropped, the VM ends and nothing is left behind.
    pub async fn restore(path: impl Into<PathBuf>) -> Result<Self, Error> {
        VmBuilder::default().snapshot(path).start().await
    }
}

/// What blocking work is done for.
const DOING: &str = "take a snapshot";

/// Takes a snapshot of a VM with this driver.
pub(super) async fn take(
    requests: &mpsc::UnboundedSender<DriverRequest>,
    facts: Option<VmFacts>,
    path: PathBuf,
    options: SnapshotOptions,
) -> Result<SnapshotReport, Error> {
    let snapshot = on_thread(DOING, move || Ok(PartialSnapshot::create(&path)?)).await?;
    // A VM that is to end stands still until the snapshot is whole.
    let resuming = options.end_vm.then(|| ResumeOnDrop(requests.clone()));
    let (saved, saving) = oneshot::channel();
    let job = SaveJob {
        snapshot,
        stay_paused: options.end_vm,
        leave_disk: options.leave_disk,
        saved,
    };
    change(requests, Change::Save(job)).await?;
    let Ok(saved) = saving.await else {
        return Err(Error::Gone(End::Died));
    };
    let facts = facts.ok_or_else(Error::unexpected_reply)?;
    let Saved {
        snapshot,
        vm,
        pause,
    } = saved;
    let finishing = move || Ok(snapshot.finish(facts.record(), vm, options.compress)?);
    let finished = on_thread(DOING, finishing).await;
    if options.end_vm && finished.is_ok() {
        // The driver takes it before the request to resume.
        let _ = requests.send(DriverRequest::Kill);
    }
    drop(resuming);
    Ok(SnapshotReport {
        pause,
        bytes: finished?,
    })
}

/// Resumes a VM that is paused only because it was saved, also if the future that saves it
/// is dropped.
struct ResumeOnDrop(mpsc::UnboundedSender<DriverRequest>);

impl Drop for ResumeOnDrop {
    fn drop(&mut self) {
        // Fails only if the driver has ended, and the VM with it.
        let _ = self.0.send(DriverRequest::Pause(PauseRequest {
            change: Change::ResumeSaved,
            reply: None,
        }));
    }
}
