use alloc::{ffi::CString, vec::Vec};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{Mode, OFlags},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
};
use vmcell_wire::{Exec, Failure, FailureKind, PackedBuf, Stage, Stdin};

use super::{Input, Output, Owner, Process};
use crate::{
    cgroup::Cgroup,
    clock::Moment,
    sys::{self, ChildPlan, Nursery},
};

/// Starts processes.
pub(crate) struct Spawner {
    /// Where children prepare themselves, one at a time.
    nursery: Nursery,
    /// The files that the next program's name may mean.
    candidates: PackedBuf,
    /// An empty standard input.
    null: OwnedFd,
}

/// Where programs are looked for if the environment has no `PATH`.
const DEFAULT_PATH: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Spawner {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            nursery: Nursery::new()?,
            candidates: PackedBuf::new(),
            null: rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?,
        })
    }

    /// Starts the program in `cgroup`, which the process then owns.
    pub(crate) fn start(
        &mut self,
        exec: &Exec<'_>,
        owner: Owner,
        cgroup: Option<Cgroup>,
    ) -> Result<Process, (Failure<'static>, Option<Cgroup>)> {
        match self.try_start(exec, cgroup.as_ref()) {
            Ok(Started {
                pid,
                stdin,
                stdout,
                stderr,
            }) => Ok(Process {
                pid,
                owner: Some(owner),
                stdin: stdin.map(Input::new),
                stdout: Output::new(stdout),
                stderr: Output::new(stderr),
                cgroup,
                started: Moment::now(),
                ended: None,
                killed: false,
            }),
            Err(failure) => Err((failure, cgroup)),
        }
    }

    fn try_start(
        &mut self,
        exec: &Exec<'_>,
        cgroup: Option<&Cgroup>,
    ) -> Result<Started, Failure<'static>> {
        let invalid = |text| Failure::new(FailureKind::Invalid, Stage::Request, text);
        let program = exec
            .argv
            .iter()
            .next()
            .filter(|program| !program.is_empty())
            .ok_or_else(|| invalid("no program is named"))?;
        let cwd = match exec.cwd {
            [] => None,
            path => Some(CString::new(path).map_err(|_| invalid("the directory has a zero byte"))?),
        };
        find_candidates(program.to_bytes(), exec, &mut self.candidates);

        let (stdin, stdin_of_child) = match exec.stdin {
            Stdin::Empty => (None, None),
            Stdin::Stream => {
                let (read, write) = pipe().map_err(pipe_failure)?;
                set_nonblocking(&write).map_err(pipe_failure)?;
                (Some(write), Some(read))
            }
        };
        let (stdout, stdout_of_child) = output_pipe().map_err(pipe_failure)?;
        let (stderr, stderr_of_child) = output_pipe().map_err(pipe_failure)?;

        let plan = ChildPlan {
            candidates: self.candidates.as_packed(),
            argv: exec.argv,
            env: exec.env,
            cwd: cwd.as_deref(),
            stdin: stdin_of_child.as_ref().unwrap_or(&self.null).as_fd(),
            stdout: stdout_of_child.as_fd(),
            stderr: stderr_of_child.as_fd(),
            cgroup: cgroup.map(AsFd::as_fd),
        };
        let pid = sys::spawn(&plan, &mut self.nursery).map_err(|failure| {
            let text = match failure.stage {
                Stage::WorkingDirectory => "the working directory cannot be entered",
                Stage::Exec => "the program cannot be executed",
                _ => "the process cannot be made",
            };
            Failure::from_errno(number(failure.errno), failure.stage, text)
        })?;
        Ok(Started {
            pid,
            stdin,
            stdout,
            stderr,
        })
    }
}

struct Started {
    pid: rustix::process::Pid,
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// The files that the program's name may mean: itself if it has a slash, else
/// one in each directory of `PATH`, as in exec(3).
fn find_candidates(program: &[u8], exec: &Exec<'_>, candidates: &mut PackedBuf) {
    candidates.clear();
    if program.contains(&b'/') {
        // Neither part can have a zero byte; the same goes for what follows.
        let _ = candidates.push(program);
        return;
    }
    let path = exec
        .env
        .iter()
        .find_map(|variable| variable.to_bytes().strip_prefix(b"PATH="))
        .unwrap_or(DEFAULT_PATH);
    let mut candidate = Vec::new();
    for directory in path.split(|byte| *byte == b':') {
        candidate.clear();
        candidate.extend_from_slice(if directory.is_empty() {
            b"."
        } else {
            directory
        });
        candidate.push(b'/');
        candidate.extend_from_slice(program);
        let _ = candidates.push(&candidate);
    }
}

fn output_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = pipe()?;
    set_nonblocking(&read)?;
    Ok((read, write))
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    pipe_with(PipeFlags::CLOEXEC)
}

/// Only the agent's end: the child's end is an open file of its own.
fn set_nonblocking(end: &OwnedFd) -> Result<(), Errno> {
    rustix::fs::fcntl_setfl(end, OFlags::NONBLOCK)
}

fn pipe_failure(errno: Errno) -> Failure<'static> {
    Failure::from_errno(number(errno), Stage::Pipes, "the pipes cannot be made")
}

pub(crate) fn number(errno: Errno) -> u16 {
    u16::try_from(errno.raw_os_error()).unwrap_or(0)
}
