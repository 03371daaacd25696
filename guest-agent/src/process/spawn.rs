use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::Mode,
    fs::OFlags,
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    process::Pid,
};
use vmcell_wire::{
    CgroupLimits, Failure, FailureKind, PackedStringsBuf, ProcessMode, Rlimits, Stage, Start,
};

use super::{
    Process, Role, Termination,
    environment::{add_defaults, find_candidates},
    identity::Identity,
    launching::{LaunchState, failure_of},
    streams::{Outputs, Streams, pipe_failure},
};
use crate::{
    cgroup::Cgroup,
    clock::Moment,
    sys::{CgroupNamespace, ChildFailure, ChildPlan, Launch, Launcher, ResourceLimit, SignalSet},
    user::User,
};

/// Starts processes.
pub(crate) struct Spawner {
    launcher: Launcher,
    /// The files that the next program's name may refer to.
    candidates: PackedStringsBuf,
    /// The default variables that its environment gets.
    more_env: PackedStringsBuf,
    /// The variables that every such environment gets.
    common_env: PackedStringsBuf,
    /// `/dev/null`.
    null: OwnedFd,
    /// The uid of the agent.
    uid: u32,
    settings: SpawnSettings,
}

/// What programs get that differs from the process of the agent.
#[derive(Clone, Copy)]
pub(crate) struct SpawnSettings {
    /// Their default descriptor limit.
    pub(crate) descriptors: ResourceLimit,
    /// Their default directory; `None`: that of the agent, which is `/` then.
    pub(crate) directory: Option<&'static [u8]>,
    /// Signals that the agent ignores, and they shall not.
    pub(crate) ignored_signals: SignalSet,
}

/// `RLIM_NLIMITS`: the number of resources of setrlimit(2).
const RESOURCES: u8 = 16;

/// The longest path that the kernel accepts, with its zero byte:
/// path_resolution(7).
const MAX_PATH: usize = 4096;

impl Spawner {
    pub(crate) fn new(settings: SpawnSettings) -> Result<Self, Errno> {
        Ok(Self {
            launcher: Launcher::new(),
            candidates: PackedStringsBuf::new(),
            more_env: PackedStringsBuf::new(),
            common_env: PackedStringsBuf::new(),
            null: rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?,
            uid: rustix::process::geteuid().as_raw(),
            settings,
        })
    }

    /// Returns a descriptor of `/dev/null`. The device is not opened again: its
    /// path may lead elsewhere by now.
    pub(crate) fn dev_null(&self) -> Result<OwnedFd, Errno> {
        rustix::io::fcntl_dupfd_cloexec(&self.null, 0)
    }

    /// Sets the variables that default environments have from now on.
    #[cfg(feature = "network")]
    pub(crate) fn set_common_env(&mut self, env: vmcell_wire::PackedStrings<'_>) {
        self.common_env.clear();
        for variable in env.iter() {
            // It fails only on a zero byte, and none of these has one.
            let _ = self.common_env.push(variable.to_bytes());
        }
    }

    /// Begins to start the program in `cgroup`, which the process then owns.
    /// Its pipes are not watched yet.
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
                mode: start.mode,
                started: Moment::now(),
                owner: None,
                observers: Vec::new(),
                stdin_writer: None,
                stdin: streams.stdin,
                stdout: streams.stdout,
                stderr: streams.stderr,
                terminal: streams.child_ends.into_terminal(),
                cgroup,
                launching,
                termination: Termination::default(),
            }),
            Err(failure) => Err((failure, cgroup)),
        }
    }

    /// Returns how a launch ended: see [`Launcher::finish`].
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
        let cwd = directory(start.cwd)?.or(self.settings.directory);
        let rlimits = resource_limits(start.rlimits, self.settings.descriptors)?;
        if !(-20..=19).contains(&start.nice) {
            return Err(invalid(Stage::Limits, "the niceness must be -20 to 19"));
        }
        let user = User::find(start.user)?;
        self.more_env.clear();
        if start.default_env {
            let common = self.common_env.as_packed();
            add_defaults(start.env, common, user.as_ref(), &mut self.more_env);
        }
        find_candidates(program.to_bytes(), start.env, &mut self.candidates);

        let uid = user.as_ref().map_or(self.uid, |user| user.uid);
        let terminal = matches!(outputs, Outputs::Terminal(_));
        let streams = match outputs {
            Outputs::Pipes => Streams::pipes(start)?,
            Outputs::Terminal(new) => Streams::terminal(new, start.keep, uid)?,
            Outputs::Provided(both) => Streams::provided(both),
        };
        let (pipe, child_pipe) = pipe_with(PipeFlags::CLOEXEC).map_err(pipe_failure)?;
        let [stdin, stdout, stderr] = streams.child_ends.descriptors(self.null.as_fd());
        let plan = ChildPlan {
            candidates: self.candidates.as_packed(),
            argv: start.argv,
            env: [start.env, self.more_env.as_packed()],
            cwd,
            make_cwd: start.make_cwd,
            stdin,
            stdout,
            stderr,
            exec_pipe: child_pipe.as_fd(),
            terminal,
            cgroup: cgroup.and_then(Cgroup::directory),
            cgroup_namespace: namespace_for(start, cgroup, terminal),
            rlimits: &rlimits,
            nice: Some(start.nice).filter(|nice| *nice != 0),
            credentials: user.as_ref().map(User::credentials),
            umask: start.umask,
            ignored_signals: self.settings.ignored_signals,
        };
        let (pid, launch) = self.launcher.launch(&plan).map_err(failure_of)?;
        Ok(Started {
            pid,
            uid,
            streams,
            launching: LaunchState::Pending { launch, pipe },
        })
    }
}

struct Started {
    pid: Pid,
    uid: u32,
    streams: Streams,
    launching: LaunchState,
}

/// Returns which cgroup namespace a program gets: what it sees of the cgroups,
/// and where it can move processes to.
///
/// A mount namespace makes a short command 18 % slower under emulation. So a
/// process in the foreground, without limits that it should be able to read and
/// without a terminal, gets none.
fn namespace_for(start: &Start<'_>, cgroup: Option<&Cgroup>, terminal: bool) -> CgroupNamespace {
    let is_short = start.mode == ProcessMode::Foreground && start.limits == CgroupLimits::default();
    match cgroup {
        Some(cgroup) => cgroup.namespace(terminal || !is_short),
        None => CgroupNamespace::Shared,
    }
}

/// Checks the working directory of a child. `None`: the default one.
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
        let errno = raw_errno(Errno::NAMETOOLONG);
        return Err(Failure::from_errno(errno, stage, text));
    }
    Ok(Some(path))
}

/// Returns the requested limits, preceded by the default descriptor limit: the
/// agent's own limit is higher than programs expect.
fn resource_limits(
    limits: Rlimits<'_>,
    descriptors: ResourceLimit,
) -> Result<Vec<ResourceLimit>, Failure<'static>> {
    let mut all = alloc::vec![descriptors];
    for limit in limits.iter() {
        if limit.resource >= RESOURCES || limit.soft > limit.hard {
            let text = "a resource limit is unknown, or its soft limit is above its hard limit";
            return Err(invalid(Stage::Limits, text));
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

pub(crate) fn raw_errno(errno: Errno) -> u16 {
    u16::try_from(errno.raw_os_error()).unwrap_or(0)
}
