//! Commands that run in a workspace.

use super::{CommandRecord, Workspace, attached::WhenPaused, specification::Specification};
use crate::{
    error::Error,
    on_thread::on_thread,
    process::{Command, ExecRecorder as _, ExecStream, Output},
};

impl Workspace {
    /// Runs a command in `/workspace`, unless it says otherwise, with the user and the
    /// variables of the workspace, and returns its output. The workspace goes on, and its
    /// [history](Self::history) has the command. One that is paused is started first.
    ///
    /// # Errors
    /// As for [`Vm::exec_command`](crate::Vm::exec_command) and [`vm`](Self::vm).
    ///
    /// # Cancel safety
    /// If the future is dropped, the command is killed.
    pub async fn exec(&self, mut command: Command) -> Result<Output, Error> {
        command.timeout.get_or_insert(Command::DEFAULT_TIMEOUT);
        let stream = self.exec_stream(command).await?;
        stream.wait_with_output().await
    }

    /// As [`exec`](Self::exec), as a stream of events. The history has the output that is
    /// read from it with [`ExecStream::next`], and not what is read from its
    /// [parts](ExecStream::into_parts).
    ///
    /// # Errors
    /// As for [`Vm::exec_stream`](crate::Vm::exec_stream) and [`vm`](Self::vm).
    ///
    /// # Cancel safety
    /// If the future is dropped, nothing runs.
    pub async fn exec_stream(&self, command: Command) -> Result<ExecStream, Error> {
        let (history, last) = (self.folder().history(), self.last_command());
        let begin = move |specification: &Specification| {
            let command = specification.apply_to(command);
            let recording = history.begin(&command, &last);
            Ok((
                command,
                recording.map_err(Error::host("record the command"))?,
            ))
        };
        let (vm, (command, mut recording)) = self.use_vm(WhenPaused::Start, begin).await?;
        match vm.exec_stream(command) {
            Ok(stream) => Ok(stream.recorded_by(Box::new(recording))),
            Err(error) => {
                recording.failed(&error);
                Err(error)
            }
        }
    }

    /// Returns a command with what [`exec`](Self::exec) gives it: the user, the variables
    /// and the folder of the workspace, unless it has its own. For services, terminals and
    /// commands in the background of its [VM](Self::vm), which the history does not have.
    /// Counts as a use of the workspace.
    ///
    /// # Errors
    /// [`WorkspaceError::NotFound`](super::WorkspaceError::NotFound)
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn prepare(&self, command: Command) -> Result<Command, Error> {
        let (folder, missing) = (self.folder(), self.not_found());
        on_thread("read the workspace", move || {
            let record = folder.read()?.ok_or(missing)?;
            folder.touch();
            Ok(record.specification.apply_to(command))
        })
        .await
    }

    /// Returns what was run in it with [`exec`](Self::exec), the oldest first, since it was
    /// created or reset. Arguments of commands are in it; values of variables are not.
    ///
    /// # Errors
    /// [`WorkspaceError::NotFound`](super::WorkspaceError::NotFound)
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn history(&self) -> Result<Vec<CommandRecord>, Error> {
        let (folder, missing) = (self.folder(), self.not_found());
        on_thread("read the history of the workspace", move || {
            folder.read()?.ok_or(missing)?;
            Ok(folder.history().list())
        })
        .await
    }
}
