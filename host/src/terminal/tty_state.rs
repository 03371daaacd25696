use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf};

use vmcell_wire::{
    Capabilities, FailureKind, Outcome, Request, Selector,
    terminal::{TerminalRequest, TerminalState},
};

use super::TerminalSize;
use crate::{
    error::Error,
    printable,
    process::{ExecFailure, ProcessId},
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
    /// Whether a program is blocked in a read of it. `None` if the agent is too old
    /// to report it.
    pub(super) is_read: Option<bool>,
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
        let request = Request::Terminal(TerminalRequest::GetState { process });
        match vm.request(&request).await?.outcome() {
            Outcome::Terminal(state) => {
                let reports = vm.session().peer().capabilities;
                let reports = reports.contains(Capabilities::TERMINAL_READS);
                Ok(Some(Self::from_wire(&state, reports.then_some(false))))
            }
            Outcome::TerminalRead(state) => Ok(Some(Self::from_wire(&state, Some(true)))),
            Outcome::Failed(failure) if failure.kind == FailureKind::NotFound => Ok(None),
            // For example, the process has no terminal.
            other => Err(ExecFailure::refusal(&other, format!("process {terminal}"))),
        }
    }

    fn from_wire(state: &TerminalState<'_>, is_read: Option<bool>) -> Self {
        Self {
            size: TerminalSize::clamped(state.size.columns, state.size.rows),
            echo: state.echo,
            canonical: state.canonical,
            foreground: state.foreground.map(|foreground| Foreground {
                pid: foreground.pid,
                command: printable(foreground.command).into_owned(),
                cwd: Some(foreground.cwd)
                    .filter(|cwd| !cwd.is_empty())
                    .map(|cwd| OsStr::from_bytes(cwd).into()),
            }),
            is_read,
        }
    }
}
