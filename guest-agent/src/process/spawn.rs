use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::Mode,
    fs::OFlags,
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    process::Pid,
};
use vmcell_wire::{CgroupLimits, Failure, FailureKind, Lifetime, PackedBuf, Rlimits, Stage, Start};

use super::{
    Ending, Process, Role,
    environment::{add_defaults, find_candidates},
    identity::Identity,
    launching::{Launching, failure_of},
    streams::{Outputs, Streams, no_pipes},
};
use crate::{
    cgroup::Cgroup,
    clock::Moment,
    sys::{CgroupNamespace, ChildFailure, ChildPlan, Launch, Launcher, ResourceLimit},
    user::User,
};

/// Starts processes.
pub(crate) struct Spawner {
    launcher: Launcher,
    /// The files that the next program's name may mean.
    candidates: PackedBuf,
    /// What its environment gets beyond what was asked for.
    more_env: PackedBuf,
    /// An empty standard input, and an output that nobody reads.
    null: OwnedFd,
    /// Who the agent is.
    uid: u32,
    /// How many descriptors a program may have that nobody gives a limit.
    descriptors: ResourceLimit,
}

/// `RLIM_NLIMITS`: the kernel has no more resources.
const RESOURCES: u8 = 16;

/// The longest path that the kernel takes, with its zero byte: path_resolution(7).
const MAX_PATH: usize = 4096;

impl Spawner {
    /// `descriptors` is the limit of descriptors of programs.
    pub(crate) fn new(descriptors: ResourceLimit) -> Result<Self, Errno> {
        Ok(Self {
            launcher: Launcher::new(),
            candidates: PackedBuf::new(),
            more_env: PackedBuf::new(),
            null: rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?,
            uid: rustix::process::geteuid().as_raw(),
            descriptors,
        })
    }

    /// An output that nobody reads. The device is not opened again: its path may
    /// lead elsewhere by now.
    pub(crate) fn nowhere(&self) -> Result<OwnedFd, Errno> {
        rustix::io::fcntl_dupfd_cloexec(&self.null, 0)
    }

    /// Begins to start the program in `cgroup`, which the process then owns.
    /// Nobody watches it yet.
    pub(crate) fn start(
        &mut self,
        start: &Start<'_>,
        cgroup: Option<Cgroup>,
        outputs: Outputs,
    ) -> Result<Process, (Failure<'static>, Option<Cgroup>)> {
        match self.try_start(start, cgroup.as_ref(), outputs) {
            Ok(Started {
                pid,
                uid,
                streams,
                launching,
            }) => Ok(Process {
                pid,
                role: Role::Ordinary,
                identity: Identity::new(start, uid),
                lifetime: start.lifetime,
                started: Moment::now(),
                owner: None,
                observers: Vec::new(),
                feeder: None,
                stdin: streams.stdin,
                stdout: streams.stdout,
                stderr: streams.stderr,
                terminal: streams.of_child.into_terminal(),
                cgroup,
                launching,
                ending: Ending::default(),
            }),
            Err(failure) => Err((failure, cgroup)),
        }
    }

    /// How a launch ended: see [`Launcher::finish`].
    pub(super) fn finish(&mut self, launch: Launch) -> Result<Result<(), ChildFailure>, Launch> {
        self.launcher.finish(launch)
    }

    fn try_start(
        &mut self,
        start: &Start<'_>,
        cgroup: Option<&Cgroup>,
        outputs: Outputs,
    ) -> Result<Started, Failure<'static>> {
        let program = start
            .argv
            .iter()
            .next()
            .filter(|program| !program.is_empty())
            .ok_or_else(|| invalid(Stage::Request, "no program is named"))?;
        let cwd = directory(start.cwd)?;
        let rlimits = resource_limits(start.rlimits, self.descriptors)?;
        if !(-20..=19).contains(&start.nice) {
            return Err(invalid(Stage::Limits, "a niceness is -20 to 19"));
        }
        let user = User::find(start.user)?;
        self.more_env.clear();
        if start.default_env {
            add_defaults(start.env, user.as_ref(), &mut self.more_env);
        }
        find_candidates(program.to_bytes(), start.env, &mut self.candidates);

        let uid = user.as_ref().map_or(self.uid, |user| user.uid);
        let terminal = matches!(outputs, Outputs::Terminal(_));
        let streams = match outputs {
            Outputs::Pipes => Streams::pipes(start)?,
            Outputs::Terminal(new) => Streams::terminal(new, start.keep, uid)?,
            Outputs::Given(both) => Streams::given(both),
        };
        let (alive, alive_of_child) = pipe_with(PipeFlags::CLOEXEC).map_err(no_pipes)?;
        let [stdin, stdout, stderr] = streams.of_child.descriptors(self.null.as_fd());
        let plan = ChildPlan {
            candidates: self.candidates.as_packed(),
            argv: start.argv,
            env: [start.env, self.more_env.as_packed()],
            cwd,
            make_cwd: start.make_cwd,
            stdin,
            stdout,
            stderr,
            alive: alive_of_child.as_fd(),
            terminal,
            cgroup: cgroup.and_then(Cgroup::directory),
            cgroup_namespace: namespace_for(start, cgroup, terminal),
            rlimits: &rlimits,
            nice: Some(start.nice).filter(|nice| *nice != 0),
            credentials: user.as_ref().map(User::credentials),
            umask: start.umask,
        };
        let (pid, launch) = self.launcher.launch(&plan).map_err(failure_of)?;
        Ok(Started {
            pid,
            uid,
            streams,
            launching: Launching::UnderWay { launch, alive },
        })
    }
}

struct Started {
    pid: Pid,
    uid: u32,
    streams: Streams,
    launching: Launching,
}

/// What a program sees of the cgroups, and where it can move processes to.
///
/// A mount namespace makes a short command 18 % slower under emulation. So one
/// that is in the foreground, has no limits that it should be able to read, and
/// runs on no terminal, goes without.
fn namespace_for(start: &Start<'_>, cgroup: Option<&Cgroup>, terminal: bool) -> CgroupNamespace {
    let is_short =
        start.lifetime == Lifetime::Foreground && start.limits == CgroupLimits::default();
    match cgroup {
        Some(cgroup) => cgroup.namespace(terminal || !is_short),
        None => CgroupNamespace::Shared,
    }
}

/// A path that a child can enter. None is `/`.
fn directory(path: &[u8]) -> Result<Option<&[u8]>, Failure<'static>> {
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
    Ok(Some(path))
}

/// The limits that are asked for, behind that of descriptors: the agent's own
/// is higher than programs expect.
fn resource_limits(
    limits: Rlimits<'_>,
    descriptors: ResourceLimit,
) -> Result<Vec<ResourceLimit>, Failure<'static>> {
    let mut all = alloc::vec![descriptors];
    for limit in limits.iter() {
        if limit.resource >= RESOURCES || limit.soft > limit.hard {
            return Err(invalid(Stage::Limits, "a resource limit makes no sense"));
        }
        if all.len() > usize::from(RESOURCES) {
            return Err(invalid(Stage::Limits, "too many resource limits"));
        }
        all.push(ResourceLimit {
            resource: limit.resource,
            values: [limit.soft, limit.hard],
        });
    }
    Ok(all)
}

fn invalid(stage: Stage, text: &'static str) -> Failure<'static> {
    Failure::new(FailureKind::Invalid, stage, text)
}

pub(crate) fn number(errno: Errno) -> u16 {
    u16::try_from(errno.raw_os_error()).unwrap_or(0)
}
