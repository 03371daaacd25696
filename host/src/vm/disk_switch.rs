use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};

use super::{
    End, Vm, attached,
    driver::{DriverRequest, change},
    handle::Control,
    pauser::{Change, Done, PauseControl},
    standstill::{Standstill, StandstillOptions, at_standstill},
};
use crate::{backend::VmmControl, error::Error};

impl Vm {
    /// Makes the VM write to a new layer of its disk, a new file at `path`, and returns
    /// how long its processors stood still. The layer that it has written to until now
    /// is below, and does not change any more. It contains all that was written at that
    /// instant, and can be read, copied or be the base of other disks while the VM runs.
    ///
    /// The disk must be one that is [kept](crate::VmBuilder::disk). A paused VM stays
    /// paused; its processors run for some milliseconds before.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), vmcell::Error> {
    /// use vmcell::Vm;
    ///
    /// let vm = Vm::builder().disk("work/1.qcow2").start().await?;
    /// vm.exec(["touch", "/root/first"]).await?;
    /// vm.switch_disk("work/2.qcow2").await?;
    /// vm.exec(["touch", "/root/second"]).await?; // is in 2.qcow2 only
    /// vm.stop().await?;
    /// // To go on, start from the topmost layer.
    /// let vm = Vm::builder().disk("work/2.qcow2").start().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Disk`] if the layer cannot be created, [`Error::Invalid`] if the disk is
    /// not kept, [`Error::OwnerFailed`] in place of the others on an
    /// [attached](Self::attach) handle, [`Error::BackendLacks`] if the backend cannot do it, or not with the link that the VM
    /// has, [`Error::Control`] if the VMM does not, [`Error::Unsupported`] if the VM has an
    /// older agent, [`Error::Gone`] if the VM has ended. The VM then writes to the layer as
    /// before, and no file is left behind.
    ///
    /// # Cancel safety
    /// If the future is dropped, the VM may or may not write to the new layer.
    pub async fn switch_disk(&self, path: impl AsRef<Path>) -> Result<Duration, Error> {
        let path = std::path::absolute(path.as_ref())
            .map_err(Error::host("find the folder of the layer"))?;
        if !self.shared.keeps_disk {
            return Err(Error::Invalid(
                "the disk of the VM ends with it: start it with `VmBuilder::disk`".to_owned(),
            ));
        }
        let switched = match &self.shared.control {
            Control::Owner { requests, .. } => request(requests, path).await,
            Control::Attached(name) => attached::switch_disk(name, &path).await,
        };
        match switched {
            Err(Error::Gone(_)) => Err(Error::Gone(self.ended().await.reason)),
            switched => switched,
        }
    }
}

/// Has the driver switch the disk. Returns how long the processors stood still.
pub(super) async fn request(
    requests: &mpsc::UnboundedSender<DriverRequest>,
    path: PathBuf,
) -> Result<Duration, Error> {
    let (switched, switching) = oneshot::channel();
    let job = SwitchJob { path, switched };
    change(requests, Change::SwitchDisk(job)).await?;
    switching.await.map_err(|_| Error::Gone(End::Died))
}

/// A request to switch the disk.
#[derive(Debug)]
pub(super) struct SwitchJob {
    path: PathBuf,
    /// Where the length of the pause is wanted.
    switched: oneshot::Sender<Duration>,
}

/// Switches the disk. The VM goes on afterwards, unless it was paused before.
pub(super) async fn switch(control: &PauseControl, job: SwitchJob, is_paused: bool) -> Done {
    let SwitchJob { path, switched } = job;
    let switching = move |vmm: &mut dyn VmmControl| vmm.switch_disk(&path);
    let options = StandstillOptions {
        is_paused,
        stay_paused: false,
        sync: true,
    };
    let Standstill { result, event } = at_standstill(control, options, switching).await;
    Done {
        result: result.map(|((), pause)| {
            // Fails if nobody waits for it any more.
            let _ = switched.send(pause);
        }),
        event,
    }
}
