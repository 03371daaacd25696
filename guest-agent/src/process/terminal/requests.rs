//! Handlers of requests about terminals.

use alloc::vec::Vec;

use rustix::{fd::OwnedFd, pty::ptsname};
use vmcell_wire::{
    Channel, Failure, FailureKind, Outcome, ProcessMode, Selector, Stage, Start, Stdin, StreamId,
    terminal::{AttachTerminal, Foreground, OpenTerminal, Size, TerminalRequest, TerminalState},
};

use super::{
    super::{
        Process,
        requests::{Answer, NO_PROCESS, check_signal},
        spawn::raw_errno,
    },
    NewTerminal,
    foreground::ForegroundLeader,
    modes::{foreground_group, resize, state},
    reading::is_read,
    writers::TooManyWriters,
};
use crate::{
    agent::Agent,
    ids::ProcessId,
    link::{LinkError, LinkSession},
    sys,
};

/// The maximum number of columns and of rows.
const MAX_SIDE: u16 = 1000;

/// The failure of requests to a terminal whose program has ended.
pub(super) const ENDED: Failure<'static> = Failure {
    kind: FailureKind::NotFound,
    errno: 0,
    stage: Stage::Terminal,
    text: "the terminal's program has ended",
};

/// What the agent finds out about a terminal.
struct Inspection {
    /// Without the foreground process.
    settings: TerminalState<'static>,
    leader: Option<ForegroundLeader>,
    /// Whether a program is blocked in a read of it.
    is_read: bool,
}

impl Agent {
    /// Handles a request about a terminal.
    pub(crate) fn terminal(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        request: &TerminalRequest<'_>,
    ) -> Result<(), LinkError> {
        let answer = match request {
            TerminalRequest::Open(open) => match self.open_terminal(session, stream, open) {
                Ok(()) => return Ok(()),
                Err(failure) => Err(failure),
            },
            TerminalRequest::Attach(wanted) => {
                match self.attach_terminal(session, stream, wanted) {
                    Ok(()) => return Ok(()),
                    Err(failure) => Err(failure),
                }
            }
            TerminalRequest::Resize { process, size } => self.resize(*process, *size),
            TerminalRequest::Signal { process, signal } => {
                self.signal_foreground(*process, *signal)
            }
            TerminalRequest::WriteInput(typing) => self.type_directly(typing),
            TerminalRequest::Rename { process, tag } => self.rename(*process, tag),
            TerminalRequest::GetState { process } => {
                return self.inspect_terminal(session, stream, *process);
            }
            TerminalRequest::List { after } => {
                return self.list(session, stream, *after, |process| {
                    process.terminal.is_some()
                });
            }
            _ => {
                let text = "the agent does not support this request";
                Err(Failure::new(FailureKind::Unsupported, Stage::Request, text))
            }
        };
        session.close(stream, &answer.unwrap_or_else(Outcome::Failed))
    }

    fn open_terminal(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        open: &OpenTerminal<'_>,
    ) -> Result<(), Failure<'static>> {
        check_size(open.size)?;
        let start = Start {
            mode: ProcessMode::Background,
            stdin: Stdin::Empty,
            ..open.start
        };
        let new = NewTerminal {
            size: open.size,
            unread: open.unread,
        };
        self.try_start(session, stream, &start, Some(new))
    }

    fn attach_terminal(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        wanted: &AttachTerminal<'_>,
    ) -> Result<(), Failure<'static>> {
        let id = self.find_terminal(wanted.process)?;
        let process = self.process(id)?;
        let positions = process.read_positions([Some(wanted.output), None], session.window())?;
        let caller = session.caller(stream);
        let previous = match &mut process.terminal {
            None => None,
            Some(terminal) => {
                let attached = terminal.writers.attach(wanted.writer, caller);
                attached.map_err(|TooManyWriters| too_many())?
            }
        };
        process.observers.push(caller);
        self.attach_stream(session, caller, id, positions)?;
        if let Some(previous) = previous {
            // Its stream notices that and closes.
            self.tasks.processes.remove_stream(id, previous);
            self.serve_soon(previous.link);
        }
        Ok(())
    }

    fn resize(&mut self, selector: Selector<'_>, size: Size) -> Answer {
        check_size(size)?;
        let id = self.find_terminal(selector)?;
        resize(self.process(id)?.terminal_master()?, size).map_err(|errno| {
            let text = "the size cannot be changed";
            Failure::from_errno(raw_errno(errno), Stage::Terminal, text)
        })?;
        Ok(Outcome::Done)
    }

    fn signal_foreground(&mut self, selector: Selector<'_>, signal: u8) -> Answer {
        check_signal(signal)?;
        let id = self.find_terminal(selector)?;
        let group = foreground_group(self.process(id)?.terminal_master()?).ok_or(ENDED)?;
        sys::signal_group(group, signal).map_err(|errno| {
            let text = "the signal cannot be sent";
            Failure::from_errno(raw_errno(errno), Stage::Terminal, text)
        })?;
        Ok(Outcome::Done)
    }

    fn rename(&mut self, selector: Selector<'_>, tag: &str) -> Answer {
        let id = self.find_terminal(selector)?;
        self.tasks.processes.rename(id, tag)?;
        Ok(Outcome::Done)
    }

    fn inspect_terminal(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        selector: Selector<'_>,
    ) -> Result<(), LinkError> {
        let seen = self.try_inspect_terminal(selector);
        let outcome = match &seen {
            Err(failure) => Outcome::Failed(*failure),
            Ok(seen) => {
                let state = TerminalState {
                    foreground: seen.leader.as_ref().map(|leader| Foreground {
                        pid: leader.pid,
                        command: &leader.command,
                        cwd: &leader.cwd,
                    }),
                    ..seen.settings
                };
                match seen.is_read {
                    true => Outcome::TerminalRead(state),
                    false => Outcome::Terminal(state),
                }
            }
        };
        session.close(stream, &outcome)
    }

    fn try_inspect_terminal(
        &mut self,
        selector: Selector<'_>,
    ) -> Result<Inspection, Failure<'static>> {
        let id = self.find_terminal(selector)?;
        let process = self.process(id)?;
        let master = process.terminal_master()?;
        let settings = state(master).map_err(|errno| {
            let text = "the settings of the terminal cannot be read";
            Failure::from_errno(raw_errno(errno), Stage::Terminal, text)
        })?;
        let group = foreground_group(master);
        let path = ptsname(master, Vec::new()).unwrap_or_default();
        let is_read = group.is_some_and(|group| is_read(path.as_bytes(), group));
        // So that the process has no output that is older than this state.
        self.tasks.processes.on_pipe_ready(id, Channel::Stdout);
        Ok(Inspection {
            settings,
            leader: group.map(ForegroundLeader::of),
            is_read,
        })
    }

    /// Returns the process that a selector names, which must run on a terminal.
    pub(super) fn find_terminal(
        &mut self,
        selector: Selector<'_>,
    ) -> Result<ProcessId, Failure<'static>> {
        let id = self.tasks.processes.find(selector).ok_or(NO_PROCESS)?;
        if self.process(id)?.terminal.is_none() {
            return Err(invalid("the process has no terminal"));
        }
        Ok(id)
    }
}

impl Process {
    /// Returns the master of its terminal.
    pub(super) fn terminal_master(&self) -> Result<&OwnedFd, Failure<'static>> {
        self.stdout.pipe().ok_or(ENDED)
    }
}

fn check_size(size: Size) -> Result<(), Failure<'static>> {
    let sides = 1..=MAX_SIDE;
    if sides.contains(&size.columns) && sides.contains(&size.rows) {
        return Ok(());
    }
    Err(invalid("a terminal must have 1 to 1000 columns and rows"))
}

pub(super) fn invalid(text: &'static str) -> Failure<'static> {
    Failure::new(FailureKind::Invalid, Stage::Terminal, text)
}

fn too_many() -> Failure<'static> {
    let text = "too many writers are attached to the terminal";
    Failure::new(FailureKind::Limit, Stage::Terminal, text)
}
