use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::OFlags,
    io::Errno,
    pipe::{PipeFlags, pipe_with},
};
use vmcell_wire::{Failure, Stage, Start, Stdin};

use super::{
    Input, Output,
    spawn::number,
    terminal::{NewTerminal, Terminal, open_pty},
};

/// The standard streams of a process that is about to be made.
pub(super) struct Streams {
    pub(super) stdin: Option<Input>,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
    pub(super) of_child: OfChild,
}

/// Where the outputs of a new process go.
pub(super) enum Outputs {
    /// Each to a pipe of its own.
    Pipes,
    /// To a terminal, which its input comes from.
    Terminal(NewTerminal),
    /// Both to this, of which somebody else has the other end. Its input is
    /// empty.
    Given(OwnedFd),
}

/// The child's ends.
pub(super) enum OfChild {
    Pipes {
        /// None: it is empty.
        stdin: Option<OwnedFd>,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    /// Both outputs are one.
    Given(OwnedFd),
    Terminal(Terminal),
}

impl Streams {
    pub(super) fn pipes(start: &Start<'_>) -> Result<Self, Failure<'static>> {
        Self::try_pipes(start).map_err(no_pipes)
    }

    fn try_pipes(start: &Start<'_>) -> Result<Self, Errno> {
        let (stdin, stdin_of_child) = match start.stdin {
            Stdin::Empty => (None, None),
            Stdin::Stream => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                set_nonblocking(&write)?;
                (Some(Input::new(write)), Some(read))
            }
        };
        let (stdout, stdout_of_child) = output_pipe()?;
        let (stderr, stderr_of_child) = output_pipe()?;
        Ok(Self {
            stdin,
            stdout: Output::new(stdout, start.keep),
            stderr: Output::new(stderr, start.keep),
            of_child: OfChild::Pipes {
                stdin: stdin_of_child,
                stdout: stdout_of_child,
                stderr: stderr_of_child,
            },
        })
    }

    /// Outputs that are not the process's to keep.
    pub(super) fn given(both: OwnedFd) -> Self {
        Self {
            stdin: None,
            stdout: Output::ended(),
            stderr: Output::ended(),
            of_child: OfChild::Given(both),
        }
    }

    /// A terminal of this user, of whose output so much is kept.
    pub(super) fn terminal(
        new: NewTerminal,
        keep: u32,
        uid: u32,
    ) -> Result<Self, Failure<'static>> {
        Self::try_terminal(new, keep, uid).map_err(|errno| {
            let text = "no terminal can be made";
            Failure::from_errno(number(errno), Stage::Terminal, text)
        })
    }

    fn try_terminal(new: NewTerminal, keep: u32, uid: u32) -> Result<Self, Errno> {
        let (ours, theirs) = open_pty(new.size, uid)?;
        set_nonblocking(&ours)?;
        // The poller tells of each descriptor once, whatever it is watched for.
        let typing = rustix::io::fcntl_dupfd_cloexec(&ours, 0)?;
        let mut stdout = Output::new(ours, keep);
        let terminal = Terminal::new(theirs, new.unread, &mut stdout);
        Ok(Self {
            stdin: Some(Input::new(typing)),
            stdout,
            stderr: Output::ended(),
            of_child: OfChild::Terminal(terminal),
        })
    }
}

impl OfChild {
    /// Standard input, output and error. `null` is an empty input.
    pub(super) fn descriptors<'a>(&'a self, null: BorrowedFd<'a>) -> [BorrowedFd<'a>; 3] {
        match self {
            Self::Pipes {
                stdin,
                stdout,
                stderr,
            } => [
                stdin.as_ref().map_or(null, AsFd::as_fd),
                stdout.as_fd(),
                stderr.as_fd(),
            ],
            Self::Given(both) => [null, both.as_fd(), both.as_fd()],
            Self::Terminal(terminal) => [terminal.end_of_program().unwrap_or(null); 3],
        }
    }

    /// What the agent keeps of it when the child has its own.
    pub(super) fn into_terminal(self) -> Option<Terminal> {
        match self {
            Self::Pipes { .. } | Self::Given(_) => None,
            Self::Terminal(terminal) => Some(terminal),
        }
    }
}

pub(super) fn no_pipes(errno: Errno) -> Failure<'static> {
    Failure::from_errno(number(errno), Stage::Pipes, "the pipes cannot be made")
}

/// The agent's end and the child's end.
pub(crate) fn output_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    set_nonblocking(&read)?;
    Ok((read, write))
}

/// Only the agent's end: the child's end is an open file of its own.
fn set_nonblocking(end: &OwnedFd) -> Result<(), Errno> {
    rustix::fs::fcntl_setfl(end, OFlags::NONBLOCK)
}
