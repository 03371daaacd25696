//! The launcher: the program that confines itself and executes a VMM.

use std::{
    fs::File,
    io::{self, Read as _},
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    process::{Command, Stdio},
    sync::{Mutex, OnceLock, PoisonError},
};

use rustix::{
    io::retry_on_intr,
    process::{Pid, Signal, WaitOptions, kill_process, waitpid},
};
use vmcell_launcher::{Failure, Layer, LayerStatus, Message, Plan, decode_messages};

use crate::{
    memory_file::sealed_memory_file,
    vmm::{Inherited, spawn_child},
};

const EMBEDDED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vmcell-launcher"));

/// More than a launcher reports.
const MAX_REPORT: u64 = 64 * 1024;

/// The program in memory, which is made once.
static PROGRAM: Mutex<Option<File>> = Mutex::new(None);

/// Why this system has no namespaces for VMMs, once that is known.
static NO_NAMESPACES: OnceLock<String> = OnceLock::new();

/// A VMM that was started.
pub(crate) struct Confined {
    pub(crate) pid: Pid,
    pub(crate) layers: Vec<LayerStatus>,
}

/// Why it was not started.
pub(crate) enum LaunchError {
    /// The launcher could not be executed.
    NoLauncher(io::Error),
    /// The launcher has given up.
    Failed(Failure),
}

/// Starts a VMM by its plan, with these descriptors. The calling thread becomes its parent.
pub(crate) fn launch(
    mut plan: Plan,
    inherited: &Inherited,
    cgroup: Option<&File>,
) -> Result<Confined, LaunchError> {
    plan.no_namespaces = NO_NAMESPACES.get().cloned();
    let launched = attempt(&plan, inherited, cgroup);
    if let Err(LaunchError::Failed(failure)) = &launched
        && failure.layer == Some(Layer::Namespaces)
    {
        let Failure { doing, reason, .. } = failure;
        let reason = NO_NAMESPACES.get_or_init(|| format!("cannot {doing}: {reason}"));
        plan.no_namespaces = Some(reason.clone());
        return attempt(&plan, inherited, cgroup);
    }
    launched
}

fn attempt(
    plan: &Plan,
    inherited: &Inherited,
    cgroup: Option<&File>,
) -> Result<Confined, LaunchError> {
    let inherited = inherited.try_clone().map_err(LaunchError::NoLauncher)?;
    let started = start(plan, inherited, cgroup).map_err(LaunchError::NoLauncher)?;
    let (launcher, report) = started;
    let mut bytes = Vec::new();
    // It ends when the VMM is executed, or the launcher exits.
    let read = (&report).take(MAX_REPORT).read_to_end(&mut bytes);
    read.map_err(LaunchError::NoLauncher)?;
    let (mut pid, mut layers) = (launcher, None);
    let mut failure = None;
    for message in decode_messages(&bytes) {
        match message {
            Message::Child(child) => pid = Pid::from_raw(child).unwrap_or(launcher),
            Message::Confined(reported) => layers = Some(reported),
            Message::Failed(reported) => failure = Some(reported),
        }
    }
    if pid != launcher {
        // It has exited, or is about to.
        wait(launcher);
    }
    match (layers, failure) {
        (Some(layers), None) => Ok(Confined { pid, layers }),
        (_, failure) => {
            // Whatever it was doing, the VMM is not running.
            let _ = kill_process(pid, Signal::KILL);
            wait(pid);
            Err(LaunchError::Failed(failure.unwrap_or_else(|| Failure {
                layer: None,
                doing: "start the VMM".to_owned(),
                reason: "the launcher has died".to_owned(),
            })))
        }
    }
}

/// Starts the launcher. Returns its id, and what it reports.
fn start(
    plan: &Plan,
    mut inherited: Inherited,
    cgroup: Option<&File>,
) -> io::Result<(Pid, UnixStream)> {
    let plan = plan.encode().map_err(io::Error::other)?;
    let (report, launcher_report) = UnixStream::pair()?;
    let number = 3 + inherited.descriptors.len();
    inherited.descriptors.extend([
        program()?.into(),
        sealed_memory_file("vmcell-plan", &plan)?.into(),
        OwnedFd::from(launcher_report),
    ]);
    if let Some(cgroup) = cgroup {
        inherited.descriptors.push(cgroup.try_clone()?.into());
    }
    let mut command = Command::new(format!("/proc/self/fd/{number}"));
    command
        .arg0("vmcell-launcher")
        .arg(number.to_string())
        .env_clear()
        .current_dir("/")
        // A Ctrl-C at the terminal is for the program, not for its VMs.
        .process_group(0)
        .stdout(inherited.stdout.map_or_else(Stdio::null, Stdio::from))
        .stderr(inherited.stderr.map_or_else(Stdio::null, Stdio::from));
    let child = spawn_child(command, inherited.descriptors)?;
    Ok((Pid::from_child(&child), report))
}

/// Returns the program, in a file that nobody can change.
fn program() -> io::Result<File> {
    let mut program = PROGRAM.lock().unwrap_or_else(PoisonError::into_inner);
    if program.is_none() {
        *program = Some(sealed_memory_file("vmcell-launcher", EMBEDDED)?);
    }
    match &*program {
        Some(file) => file.try_clone(),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

pub(crate) fn wait(process: Pid) {
    // Fails only if somebody else has waited for it.
    let _ = retry_on_intr(|| waitpid(Some(process), WaitOptions::empty()));
}
