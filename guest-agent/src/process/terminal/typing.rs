//! What is typed out of turn.

use rustix::io::Errno;
use vmcell_wire::{
    Failure, FailureKind, Outcome, Stage,
    terminal::{Typed, Typing},
};

use super::{
    super::{Input, Process, Progress, requests::Answer, spawn::number},
    modes::{has_unread_lines, set_echo, shows_lines},
    requests::{ENDED, invalid},
};
use crate::agent::Agent;

/// So much of what was typed may wait for an answer to be worth anything.
const MAX_WAITING: usize = 4096;

/// How long a line can be: termios(3).
const MAX_LINE: usize = 4095;

impl Agent {
    pub(super) fn type_out_of_turn(&mut self, typing: &Typing<'_>) -> Answer {
        let id = self.find_terminal(typing.process)?;
        let process = self.process(id)?;
        if typing.bytes.len() > MAX_LINE {
            return Err(invalid("that is longer than a line can be"));
        }
        match typing.kind {
            Typed::Answer { writer } => process.answer(writer, typing.bytes),
            Typed::Secret => process.type_secret(typing.bytes)?,
        }
        self.tasks.processes.typed(id);
        Ok(Outcome::Done)
    }
}

impl Process {
    /// Types an answer to a question of the program, if the one who answers is
    /// listened to and the program still reads.
    fn answer(&mut self, writer: u64, bytes: &[u8]) {
        let first = self
            .terminal
            .as_ref()
            .is_some_and(|terminal| terminal.writers.is_first(writer));
        let waiting = self.stdin.as_ref().map_or(0, Input::waiting);
        if first && waiting <= MAX_WAITING {
            self.type_now(bytes);
        }
    }

    /// Types what the terminal shall not show.
    ///
    /// Where it would, the line's end is held back until the terminal is as it
    /// was: a program that gets the line looks how its terminal is set, and
    /// restores that later.
    fn type_secret(&mut self, bytes: &[u8]) -> Result<(), Failure<'static>> {
        if self.stdin.as_ref().ok_or(ENDED)?.waiting() > 0 {
            return Err(NOT_READ);
        }
        if !shows_lines(self.our_end()?).map_err(not_hidden)? {
            self.type_now(bytes);
            return Ok(());
        }
        if self.has_unread_lines()? {
            return Err(NOT_READ);
        }
        let length = bytes
            .iter()
            .rposition(|byte| !matches!(byte, b'\r' | b'\n'))
            .map_or(0, |last| last.saturating_add(1));
        let (secret, end) = bytes.split_at_checked(length).unwrap_or((bytes, &[]));
        set_echo(self.our_end()?, false).map_err(not_hidden)?;
        self.type_now(secret);
        let taken = self.has_unread_lines();
        set_echo(self.our_end()?, true).map_err(not_hidden)?;
        self.type_now(end);
        taken.map(|_| ())
    }

    fn has_unread_lines(&self) -> Result<bool, Failure<'static>> {
        let terminal = self.terminal.as_ref().ok_or(ENDED)?;
        has_unread_lines(terminal.end_of_program().ok_or(ENDED)?).map_err(not_hidden)
    }

    fn type_now(&mut self, bytes: &[u8]) {
        if let Some(input) = &mut self.stdin
            && input.give(bytes) == Progress::Finished
        {
            self.stdin = None;
        }
    }
}

const NOT_READ: Failure<'static> = Failure {
    kind: FailureKind::Conflict,
    errno: 0,
    stage: Stage::Terminal,
    text: "the program does not read what was typed before",
};

fn not_hidden(errno: Errno) -> Failure<'static> {
    let text = "the terminal cannot be kept from showing it";
    Failure::from_errno(number(errno), Stage::Terminal, text)
}
