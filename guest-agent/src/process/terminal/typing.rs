//! Terminal input that bypasses the streams of writers: answers and secrets.

use rustix::io::Errno;
use vmcell_wire::{
    Failure, FailureKind, Outcome, Stage,
    terminal::{InputKind, WriteInput},
};

use super::{
    super::{Input, InputState, Process, requests::Answer, spawn::raw_errno},
    modes::{echoes_lines, has_unread_lines, set_echo},
    requests::{ENDED, invalid},
};
use crate::agent::Agent;

/// An answer is dropped if more input than this is queued before it.
const MAX_QUEUED: usize = 4096;

/// The maximum length of a line: termios(3).
const MAX_LINE: usize = 4095;

impl Agent {
    pub(super) fn type_directly(&mut self, typing: &WriteInput<'_>) -> Answer {
        let id = self.find_terminal(typing.process)?;
        let process = self.process(id)?;
        if typing.bytes.len() > MAX_LINE {
            return Err(invalid("the input is longer than a line can be"));
        }
        match typing.kind {
            InputKind::QueryReply { writer } => process.answer(writer, typing.bytes),
            InputKind::Secret => process.type_secret(typing.bytes)?,
        }
        self.tasks.processes.check_terminal_full(id);
        Ok(Outcome::Done)
    }
}

impl Process {
    /// Types an answer to a query of the program, if the writer is the one that
    /// answers and the program still reads.
    fn answer(&mut self, writer: u64, bytes: &[u8]) {
        let first = self
            .terminal
            .as_ref()
            .is_some_and(|terminal| terminal.writers.is_first(writer));
        let queued = self.stdin.as_ref().map_or(0, Input::queued);
        if first && queued <= MAX_QUEUED {
            self.type_now(bytes);
        }
    }

    /// Types text without echo.
    ///
    /// If echo is on, the line end is typed only after echo is restored: a
    /// program that gets the line reads the settings of its terminal, and
    /// restores those later.
    fn type_secret(&mut self, bytes: &[u8]) -> Result<(), Failure<'static>> {
        if self.stdin.as_ref().ok_or(ENDED)?.queued() > 0 {
            return Err(INPUT_UNREAD);
        }
        if !echoes_lines(self.terminal_master()?).map_err(echo_failure)? {
            self.type_now(bytes);
            return Ok(());
        }
        if self.has_unread_lines()? {
            return Err(INPUT_UNREAD);
        }
        let length = bytes
            .iter()
            .rposition(|byte| !matches!(byte, b'\r' | b'\n'))
            .map_or(0, |last| last.saturating_add(1));
        let (secret, end) = bytes.split_at_checked(length).unwrap_or((bytes, &[]));
        set_echo(self.terminal_master()?, false).map_err(echo_failure)?;
        self.type_now(secret);
        let taken = self.has_unread_lines();
        set_echo(self.terminal_master()?, true).map_err(echo_failure)?;
        self.type_now(end);
        taken.map(|_| ())
    }

    fn has_unread_lines(&self) -> Result<bool, Failure<'static>> {
        let terminal = self.terminal.as_ref().ok_or(ENDED)?;
        has_unread_lines(terminal.program_end().ok_or(ENDED)?).map_err(echo_failure)
    }

    fn type_now(&mut self, bytes: &[u8]) {
        if let Some(input) = &mut self.stdin
            && input.push(bytes) == InputState::Finished
        {
            self.stdin = None;
        }
    }
}

const INPUT_UNREAD: Failure<'static> = Failure {
    kind: FailureKind::Conflict,
    errno: 0,
    stage: Stage::Terminal,
    text: "the program has not read its earlier input",
};

fn echo_failure(errno: Errno) -> Failure<'static> {
    let text = "echo of the terminal cannot be turned off";
    Failure::from_errno(raw_errno(errno), Stage::Terminal, text)
}
