use tokio::sync::oneshot;

use super::{
    Vm, attached,
    driver::DriverRequest,
    handle::Control,
    pauser::{Change, PauseRequest},
};
use crate::{attach::ControlRequest, error::Error};

/// What becomes of requests to a paused VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhilePaused {
    /// They wait until the VM is resumed.
    #[default]
    Wait,
    /// They fail with [`Error::Paused`]. Those of an [attached](Vm::attach) handle fail as
    /// if the guest had refused them, with the kind `Conflict` and this text.
    Fail,
}

impl Vm {
    /// Pauses the VM: its processors stand still, and it uses none of the host's.
    /// Requests wait until it is [resumed](Self::resume). Pausing a paused VM has no
    /// further effect.
    ///
    /// The time of a pause does not count towards the timeouts of commands and of
    /// other requests. Connections to [published](crate::port) ports stay open.
    /// A VM that is stopped while it is paused is resumed first.
    ///
    /// ```no_run
    /// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
    /// vm.pause().await?;
    /// // Hours later:
    /// vm.resume().await?;
    /// vm.exec(["date"]).await?; // prints the time of the host
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::BackendLacks`] if the backend cannot do it, or not with the link that the
    /// VM has (QEMU's [hybrid-vsock](crate::LinkKind::HybridVsock)), [`Error::Control`] if the
    /// VMM does not, [`Error::Gone`] if the VM has ended. On an
    /// [attached](Self::attach) handle [`Error::OwnerFailed`] if its owner cannot.
    ///
    /// # Cancel safety
    /// If the future is dropped, the VM may or may not be paused.
    pub async fn pause(&self) -> Result<(), Error> {
        self.pause_with(WhilePaused::Wait).await
    }

    /// Same as [`pause`](Self::pause), and sets what becomes of requests meanwhile. If
    /// the VM is paused already, only this changes.
    ///
    /// # Errors
    /// Same as [`pause`](Self::pause).
    ///
    /// # Cancel safety
    /// If the future is dropped, the VM may or may not be paused.
    pub async fn pause_with(&self, requests: WhilePaused) -> Result<(), Error> {
        self.change(Change::Pause(requests)).await
    }

    /// Resumes a paused VM, and sets its clock before it takes any request. Resuming
    /// a VM that runs has no effect.
    ///
    /// # Errors
    /// Same as [`pause`](Self::pause).
    ///
    /// # Cancel safety
    /// If the future is dropped, the VM may or may not be resumed.
    pub async fn resume(&self) -> Result<(), Error> {
        self.change(Change::Resume).await
    }

    async fn change(&self, change: Change) -> Result<(), Error> {
        match &self.shared.control {
            Control::Owner { requests, .. } => {
                let (reply, replied) = oneshot::channel();
                let request = PauseRequest {
                    change,
                    reply: Some(reply),
                };
                // Fails only if the driver has ended, and the VM with it.
                let _ = requests.send(DriverRequest::Pause(request));
                match replied.await {
                    Ok(result) => result,
                    Err(_) => Err(Error::Gone(self.ended().await.reason)),
                }
            }
            Control::Attached(name) => {
                let (request, doing) = match change {
                    Change::Pause(WhilePaused::Wait) => (ControlRequest::Pause, "pause it"),
                    Change::Pause(WhilePaused::Fail) => {
                        (ControlRequest::PauseAndRefuse, "pause it")
                    }
                    Change::Resume => (ControlRequest::Resume, "resume it"),
                };
                attached::change(name, request, doing).await
            }
        }
    }
}
