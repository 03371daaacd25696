//! What hosts ask for about terminals.

use rustix::fd::OwnedFd;
use vmcell_wire::{
    Failure, FailureKind, Lifetime, Outcome, Selector, Stage, Start, Stdin, StreamId,
    terminal::{AttachTerminal, Foreground, Open, Size, Terminal, TerminalState},
};

use super::{
    super::{
        Process, ProcessId,
        requests::{Answer, NO_PROCESS, check_signal},
        spawn::number,
    },
    NewTerminal,
    foreground::Leader,
    modes::{foreground_group, resize, state},
    writers::TooMany,
};
use crate::{
    agent::Agent,
    link::{Conversation, Lost},
    sys,
};

/// Neither side of a terminal is longer.
const MAX_SIDE: u16 = 1000;

/// The terminal was there, and its program has ended.
pub(super) const ENDED: Failure<'static> = Failure {
    kind: FailureKind::NotFound,
    errno: 0,
    stage: Stage::Terminal,
    text: "the terminal's program has ended",
};

impl Agent {
    /// Does what a request about terminals asks for.
    pub(crate) fn terminal(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        request: &Terminal<'_>,
    ) -> Result<(), Lost> {
        let answer = match request {
            Terminal::Open(open) => match self.open_terminal(conversation, stream, open) {
                Ok(()) => return Ok(()),
                Err(failure) => Err(failure),
            },
            Terminal::Attach(wanted) => match self.use_terminal(conversation, stream, wanted) {
                Ok(()) => return Ok(()),
                Err(failure) => Err(failure),
            },
            Terminal::Resize { process, size } => self.resize(*process, *size),
            Terminal::Signal { process, signal } => self.signal_foreground(*process, *signal),
            Terminal::Type(typing) => self.type_out_of_turn(typing),
            Terminal::Rename { process, tag } => self.rename(*process, tag),
            Terminal::Look { process } => return self.look(conversation, stream, *process),
            Terminal::List { after } => {
                return self.list(conversation, stream, *after, |process| {
                    process.terminal.is_some()
                });
            }
            _ => {
                let text = "the agent cannot do this";
                Err(Failure::new(FailureKind::Unsupported, Stage::Request, text))
            }
        };
        conversation.close(stream, &answer.unwrap_or_else(Outcome::Failed))
    }

    fn open_terminal(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        open: &Open<'_>,
    ) -> Result<(), Failure<'static>> {
        check_size(open.size)?;
        let start = Start {
            lifetime: Lifetime::Background,
            stdin: Stdin::Empty,
            ..open.start
        };
        let new = NewTerminal {
            size: open.size,
            unread: open.unread,
        };
        self.try_start(conversation, stream, &start, Some(new))
    }

    fn use_terminal(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        wanted: &AttachTerminal<'_>,
    ) -> Result<(), Failure<'static>> {
        let id = self.find_terminal(wanted.process)?;
        let process = self.process(id)?;
        let places = process.places([Some(wanted.output), None], conversation.window())?;
        let caller = conversation.caller(stream);
        let former = match &mut process.terminal {
            None => None,
            Some(terminal) => {
                let attached = terminal.writers.attach(wanted.writer, caller);
                attached.map_err(|TooMany| too_many())?
            }
        };
        process.observers.push(caller);
        self.attach_stream(conversation, caller, id, places)?;
        if let Some(former) = former {
            // It will find out and close.
            self.tasks.processes.leave(id, former);
            self.serve_soon(former.link);
        }
        Ok(())
    }

    fn resize(&mut self, selector: Selector<'_>, size: Size) -> Answer {
        check_size(size)?;
        let id = self.find_terminal(selector)?;
        resize(self.process(id)?.our_end()?, size).map_err(|errno| {
            let text = "the size cannot be changed";
            Failure::from_errno(number(errno), Stage::Terminal, text)
        })?;
        Ok(Outcome::Done)
    }

    fn signal_foreground(&mut self, selector: Selector<'_>, signal: u8) -> Answer {
        check_signal(signal)?;
        let id = self.find_terminal(selector)?;
        let group = foreground_group(self.process(id)?.our_end()?).ok_or(ENDED)?;
        sys::signal_group(group, signal).map_err(|errno| {
            let text = "the signal cannot be sent";
            Failure::from_errno(number(errno), Stage::Terminal, text)
        })?;
        Ok(Outcome::Done)
    }

    fn rename(&mut self, selector: Selector<'_>, tag: &str) -> Answer {
        let id = self.find_terminal(selector)?;
        self.tasks.processes.rename(id, tag)?;
        Ok(Outcome::Done)
    }

    fn look(
        &mut self,
        conversation: &mut Conversation,
        stream: StreamId,
        selector: Selector<'_>,
    ) -> Result<(), Lost> {
        let seen = self.try_look(selector);
        let outcome = match &seen {
            Err(failure) => Outcome::Failed(*failure),
            Ok((state, leader)) => Outcome::Terminal(TerminalState {
                foreground: leader.as_ref().map(|leader| Foreground {
                    pid: leader.pid,
                    command: &leader.command,
                    cwd: &leader.cwd,
                }),
                ..*state
            }),
        };
        conversation.close(stream, &outcome)
    }

    /// How a terminal is set, and separately who uses it.
    fn try_look(
        &mut self,
        selector: Selector<'_>,
    ) -> Result<(TerminalState<'static>, Option<Leader>), Failure<'static>> {
        let id = self.find_terminal(selector)?;
        let process = self.process(id)?;
        let ours = process.our_end()?;
        let state = state(ours).map_err(|errno| {
            let text = "the terminal does not tell how it is set";
            Failure::from_errno(number(errno), Stage::Terminal, text)
        })?;
        Ok((state, foreground_group(ours).map(Leader::of)))
    }

    /// The process that a host names, which must run on a terminal.
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
    /// The agent's end of its terminal.
    pub(super) fn our_end(&self) -> Result<&OwnedFd, Failure<'static>> {
        self.stdout.pipe().ok_or(ENDED)
    }
}

fn check_size(size: Size) -> Result<(), Failure<'static>> {
    let sides = 1..=MAX_SIDE;
    if sides.contains(&size.columns) && sides.contains(&size.rows) {
        return Ok(());
    }
    Err(invalid("a terminal has 1 to 1000 columns and rows"))
}

pub(super) fn invalid(text: &'static str) -> Failure<'static> {
    Failure::new(FailureKind::Invalid, Stage::Terminal, text)
}

fn too_many() -> Failure<'static> {
    let text = "too many type on the terminal";
    Failure::new(FailureKind::Limit, Stage::Terminal, text)
}
