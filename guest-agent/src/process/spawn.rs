use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::Mode,
    fs::OFlags,
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    process::Pid,
};
use vmcell_wire::{Failure, FailureKind, PackedBuf, Rlimits, Stage, Start, Stdin};

use super::{
    Ending, Input, Output, Process,
    environment::{add_defaults, find_candidates},
    identity::Identity,
};
use crate::{
    cgroup::Cgroup,
    clock::Moment,
    sys::{self, ChildPlan, Nursery, ResourceLimit},
    user::User,
};

/// Starts processes.
pub(crate) struct Spawner {
    /// Where children prepare themselves, one at a time.
    nursery: Nursery,
    /// The files that the next program's name may mean.
    candidates: PackedBuf,
    /// What its environment gets beyond what was asked for.
    more_env: PackedBuf,
    /// An empty standard input.
    null: OwnedFd,
    /// Who the agent is.
    uid: u32,
}

/// `RLIM_NLIMITS`: the kernel has no more resources.
const RESOURCES: u8 = 16;

/// The longest path that the kernel takes, with its zero byte: path_resolution(7).
const MAX_PATH: usize = 4096;

impl Spawner {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            nursery: Nursery::new()?,
            candidates: PackedBuf::new(),
            more_env: PackedBuf::new(),
            null: rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?,
            uid: rustix::process::geteuid().as_raw(),
        })
    }

    /// Starts the program in `cgroup`, which the process then owns. Nobody
    /// watches it yet.
    pub(crate) fn start(
        &mut self,
        start: &Start<'_>,
        cgroup: Option<Cgroup>,
    ) -> Result<Process, (Failure<'static>, Option<Cgroup>)> {
        match self.try_start(start, cgroup.as_ref()) {
            Ok(Started {
                pid,
                uid,
                stdin,
                stdout,
                stderr,
            }) => Ok(Process {
                pid,
                identity: Identity::new(start, uid),
                lifetime: start.lifetime,
                started: Moment::now(),
                owner: None,
                observers: Vec::new(),
                feeder: None,
                stdin: stdin.map(Input::new),
                stdout: Output::new(stdout, start.keep),
                stderr: Output::new(stderr, start.keep),
                cgroup,
                ending: Ending::default(),
            }),
            Err(failure) => Err((failure, cgroup)),
        }
    }

    fn try_start(
        &mut self,
        start: &Start<'_>,
        cgroup: Option<&Cgroup>,
    ) -> Result<Started, Failure<'static>> {
        let program = start
            .argv
            .iter()
            .next()
            .filter(|program| !program.is_empty())
            .ok_or_else(|| invalid(Stage::Request, "no program is named"))?;
        let mut cwd = directory(start.cwd)?;
        let rlimits = resource_limits(start.rlimits)?;
        if !(-20..=19).contains(&start.nice) {
            return Err(invalid(Stage::Limits, "a niceness is -20 to 19"));
        }
        let user = User::find(start.user)?;
        self.more_env.clear();
        if start.default_env {
            add_defaults(start.env, user.as_ref(), &mut self.more_env);
        }
        find_candidates(program.to_bytes(), start.env, &mut self.candidates);

        let (stdin, stdin_of_child) = match start.stdin {
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
            argv: start.argv,
            env: [start.env, self.more_env.as_packed()],
            cwd: cwd.as_deref_mut(),
            make_cwd: start.make_cwd,
            stdin: stdin_of_child.as_ref().unwrap_or(&self.null).as_fd(),
            stdout: stdout_of_child.as_fd(),
            stderr: stderr_of_child.as_fd(),
            cgroup: cgroup.map(AsFd::as_fd),
            rlimits: &rlimits,
            nice: Some(start.nice).filter(|nice| *nice != 0),
            credentials: user.as_ref().map(User::credentials),
            umask: start.umask,
        };
        let pid = sys::spawn(plan, &mut self.nursery).map_err(|failure| {
            let text = match failure.stage {
                Stage::Limits => "the resource limits cannot be set",
                Stage::User => "the agent cannot become the user",
                Stage::WorkingDirectory => "the working directory cannot be entered",
                Stage::Exec => "the program cannot be executed",
                _ => "the process cannot be made",
            };
            Failure::from_errno(number(failure.errno), failure.stage, text)
        })?;
        Ok(Started {
            pid,
            uid: user.map_or(self.uid, |user| user.uid),
            stdin,
            stdout,
            stderr,
        })
    }
}

struct Started {
    pid: Pid,
    uid: u32,
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// A path as a child needs it: with a zero byte at its end. None is `/`.
fn directory(path: &[u8]) -> Result<Option<Vec<u8>>, Failure<'static>> {
    if path.is_empty() {
        return Ok(None);
    }
    let stage = Stage::WorkingDirectory;
    if path.contains(&0) {
        return Err(invalid(stage, "the directory has a zero byte"));
    }
    if path.len() >= MAX_PATH {
        let text = "the directory's name is too long";
        return Err(Failure::from_errno(number(Errno::NAMETOOLONG), stage, text));
    }
    let mut path = path.to_vec();
    path.push(0);
    Ok(Some(path))
}

fn resource_limits(limits: Rlimits<'_>) -> Result<Vec<ResourceLimit>, Failure<'static>> {
    let mut all = Vec::new();
    for limit in limits.iter() {
        if limit.resource >= RESOURCES || limit.soft > limit.hard {
            return Err(invalid(Stage::Limits, "a resource limit makes no sense"));
        }
        if all.len() >= usize::from(RESOURCES) {
            return Err(invalid(Stage::Limits, "too many resource limits"));
        }
        all.push(ResourceLimit {
            resource: limit.resource,
            values: [limit.soft, limit.hard],
        });
    }
    Ok(all)
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

fn invalid(stage: Stage, text: &'static str) -> Failure<'static> {
    Failure::new(FailureKind::Invalid, stage, text)
}

fn pipe_failure(errno: Errno) -> Failure<'static> {
    Failure::from_errno(number(errno), Stage::Pipes, "the pipes cannot be made")
}

pub(crate) fn number(errno: Errno) -> u16 {
    u16::try_from(errno.raw_os_error()).unwrap_or(0)
}
