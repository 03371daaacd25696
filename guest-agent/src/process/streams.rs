use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::OFlags,
    io::Errno,
    pipe::{PipeFlags, pipe_with},
};
use vmcell_wire::{Failure, Stage, Start, Stdin};

use super::{
    Input, Output,
    spawn::raw_errno,
    terminal::{NewTerminal, Terminal},
};

/// The standard streams of a new process.
pub(super) struct Streams {
    pub(super) stdin: Option<Input>,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
    pub(super) child_ends: ChildEnds,
}

/// Where the outputs of a new process go.
pub(super) enum Outputs {
    /// Each to its own pipe.
    Pipes,
    /// To a terminal, which its input comes from, too.
    Terminal(NewTerminal),
    /// Both to this descriptor, whose other end the caller reads. The input is
    /// empty.
    Provided(OwnedFd),
}

/// The child's ends of the streams.
pub(super) enum ChildEnds {
    Pipes {
        /// `None`: empty.
        stdin: Option<OwnedFd>,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    /// Both outputs share a descriptor.
    Provided(OwnedFd),
    Terminal(Terminal),
}

impl Streams {
    pub(super) fn pipes(start: &Start<'_>) -> Result<Self, Failure<'static>> {
        Self::try_pipes(start).map_err(pipe_failure)
    }

    fn try_pipes(start: &Start<'_>) -> Result<Self, Errno> {
        let (stdin, child_stdin) = match start.stdin {
            Stdin::Empty => (None, None),
            Stdin::Stream => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                set_nonblocking(&write)?;
                (Some(Input::new(write)), Some(read))
            }
        };
        let (stdout, child_stdout) = output_pipe()?;
        let (stderr, child_stderr) = output_pipe()?;
        Ok(Self {
            stdin,
            stdout: Output::new(stdout, start.keep),
            stderr: Output::new(stderr, start.keep),
            child_ends: ChildEnds::Pipes {
                stdin: child_stdin,
                stdout: child_stdout,
                stderr: child_stderr,
            },
        })
    }

    /// Uses a descriptor of the caller for both outputs.
    pub(super) fn provided(both: OwnedFd) -> Self {
        Self {
            stdin: None,
            stdout: Output::ended(),
            stderr: Output::ended(),
            child_ends: ChildEnds::Provided(both),
        }
    }
}

impl ChildEnds {
    /// Returns standard input, output and error. `null` is an empty input.
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
            Self::Provided(both) => [null, both.as_fd(), both.as_fd()],
            Self::Terminal(terminal) => [terminal.program_end().unwrap_or(null); 3],
        }
    }

    /// Returns the terminal, and closes the child's other ends.
    pub(super) fn into_terminal(self) -> Option<Terminal> {
        match self {
            Self::Pipes { .. } | Self::Provided(_) => None,
            Self::Terminal(terminal) => Some(terminal),
        }
    }
}

pub(super) fn pipe_failure(errno: Errno) -> Failure<'static> {
    let text = "the pipes cannot be created";
    Failure::from_errno(raw_errno(errno), Stage::Pipes, text)
}

/// Creates a pipe. Returns the agent's end and the child's end.
pub(crate) fn output_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    set_nonblocking(&read)?;
    Ok((read, write))
}

/// Only for the agent's end: the child's end is a separate open file.
pub(super) fn set_nonblocking(end: &OwnedFd) -> Result<(), Errno> {
    rustix::fs::fcntl_setfl(end, OFlags::NONBLOCK)
}
