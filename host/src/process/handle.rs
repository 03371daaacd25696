use super::{ExecStream, Exit, ProcessId, ReadFrom, Signal};
use crate::{error::Error, vm::Vm};

/// A handle of a process in a VM. Dropping it does not affect the process. Any
/// number of handles may refer to the same process.
///
/// ```no_run
/// # async fn example(vm: vmcell::Vm) -> Result<(), vmcell::Error> {
/// use vmcell::{Command, ReadFrom};
///
/// let server = vm.spawn(Command::new("httpd").tag("web")).await?;
/// // Later, perhaps in another program:
/// let mut log = vm.processes().attach("web", ReadFrom::Start)?;
/// while let Some(event) = log.next().await? {
///     println!("{event:?}");
/// }
/// let exit = server.kill().await?;
/// assert_eq!(exit.tree_ended, Some(true));
/// server.forget().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Process {
    vm: Vm,
    id: ProcessId,
    pid: u32,
    tag: String,
}

impl Process {
    pub(crate) fn new(vm: Vm, id: ProcessId, pid: u32, tag: String) -> Self {
        Self { vm, id, pid, tag }
    }

    /// Returns the id that the agent assigned to it.
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// Returns its pid in the guest.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns its tag.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// See [`Processes::attach`](crate::Processes::attach).
    ///
    /// # Errors
    /// See there.
    pub fn attach(&self, from: ReadFrom) -> Result<ExecStream, Error> {
        self.vm.processes().attach(self, from)
    }

    /// See [`Processes::attach_with_input`](crate::Processes::attach_with_input).
    ///
    /// # Errors
    /// See there.
    pub fn attach_with_input(&self, from: ReadFrom) -> Result<ExecStream, Error> {
        self.vm.processes().attach_with_input(self, from)
    }

    /// See [`Processes::signal`](crate::Processes::signal).
    ///
    /// # Errors
    /// See there.
    pub async fn signal(&self, signal: Signal) -> Result<(), Error> {
        self.vm.processes().signal(self, signal).await
    }

    /// See [`Processes::kill`](crate::Processes::kill).
    ///
    /// # Errors
    /// See there.
    pub async fn kill(&self) -> Result<Exit, Error> {
        self.vm.processes().kill(self).await
    }

    /// See [`Processes::wait`](crate::Processes::wait).
    ///
    /// # Errors
    /// See there.
    pub async fn wait(&self) -> Result<Exit, Error> {
        self.vm.processes().wait(self).await
    }

    /// See [`Processes::forget`](crate::Processes::forget).
    ///
    /// # Errors
    /// See there.
    pub async fn forget(&self) -> Result<(), Error> {
        self.vm.processes().forget(self).await
    }
}
