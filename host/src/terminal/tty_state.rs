use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf};

use vmcell_wire::{FailureKind, Request, Selector, terminal::TerminalRequest};

use super::TerminalSize;
use crate::{
    error::Error,
    printable,
    process::{ExecFailure, ProcessId},
    session::{Closing, StreamEvent, TerminalSnapshot},
    vm::Vm,
};

/// The TTY modes and the foreground process of a terminal, as the guest reports
/// them.
#[derive(Clone, Debug)]
pub(super) struct TtyState {
    pub(super) size: TerminalSize,
    pub(super) echo: bool,
    pub(super) canonical: bool,
    pub(super) foreground: Option<Foreground>,
}

#[derive(Clone, Debug)]
pub(super) struct Foreground {
    pub(super) pid: u32,
    pub(super) command: String,
    pub(super) cwd: Option<PathBuf>,
}

impl TtyState {
    /// Queries the guest. Returns `None` if the terminal has ended.
    pub(super) async fn query(vm: &Vm, terminal: ProcessId) -> Result<Option<Self>, Error> {
        let process = Selector::Id(terminal.0);
        let mut stream = vm.open(&Request::Terminal(TerminalRequest::GetState { process }))?;
        match vm.explained(stream.next().await).await? {
            StreamEvent::Closed(Closing::Terminal(snapshot)) => {
                Ok(Some(Self::from_guest(*snapshot)))
            }
            StreamEvent::Closed(Closing::Failed(failed))
                if failed.kind == FailureKind::NotFound =>
            {
                Ok(None)
            }
            // For example, the process has no terminal.
            StreamEvent::Closed(Closing::Failed(failed)) => {
                let subject = format!("process {terminal}");
                Err(ExecFailure::from_guest(failed, subject).into())
            }
            _ => Err(Error::unexpected_reply()),
        }
    }

    fn from_guest(snapshot: TerminalSnapshot) -> Self {
        Self {
            size: TerminalSize::clamped(snapshot.size.columns, snapshot.size.rows),
            echo: snapshot.echo,
            canonical: snapshot.canonical,
            foreground: snapshot.foreground.map(|foreground| Foreground {
                pid: foreground.pid,
                command: printable(&foreground.command).into_owned(),
                cwd: Some(foreground.cwd)
                    .filter(|cwd| !cwd.is_empty())
                    .map(|cwd| OsString::from_vec(cwd).into()),
            }),
        }
    }
}
