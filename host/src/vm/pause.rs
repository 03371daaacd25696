use super::{Vm, attached, driver, handle::Control, pauser::Change};
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
        let request = match requests {
            WhilePaused::Wait => ControlRequest::Pause,
            WhilePaused::Fail => ControlRequest::PauseAndRefuse,
        };
        self.change(Change::Pause(requests), request, "pause it")
            .await
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
        let request = ControlRequest::Resume;
        self.change(Change::Resume, request, "resume it").await
    }

    async fn change(
        &self,
        change: Change,
        request: ControlRequest,
        doing: &'static str,
    ) -> Result<(), Error> {
        match &self.shared.control {
            Control::Owner { requests, .. } => match driver::change(requests, change).await {
                Err(Error::Gone(_)) => Err(Error::Gone(self.ended().await.reason)),
                changed => changed,
            },
            Control::Attached(name) => attached::change(name, request, doing).await,
        }
    }
}
