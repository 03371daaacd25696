use std::{io, path::PathBuf, time::Duration};

use vmcell_wire::pattern::PatternError;

use crate::disk::{DiskError, image::ImageError};
use crate::{
    backend::Feature,
    files::FileFailure,
    patch::{Mismatch, PatchError},
    port::PortError,
    process::{Cause, ExecFailure, Output},
    secret::SecretError,
    service::ServiceError,
    snapshot::SnapshotError,
    tree::TreeError,
    vm::End,
    workspace::WorkspaceError,
};

/// The errors of this library, distinguished by what the caller can do.
///
/// A command that ends with a nonzero code is not an error: see
/// [`Exit`](crate::Exit).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is invalid; change it.
    #[error("{0}")]
    Invalid(String),

    /// A program or file that the machine must have is missing; install it or set
    /// its path.
    #[error("{what} not found: {remedy}")]
    Missing {
        /// What is missing.
        what: &'static str,
        /// What to do.
        remedy: String,
    },

    /// A file that was named cannot be used.
    #[error("{what} {}: {reason}", path.display())]
    BadFile {
        /// What the file is used as.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },

    /// The disk for a VM cannot be used, or is in use.
    #[error(transparent)]
    Disk(#[from] ImageError),

    /// A disk cannot be read without a VM.
    #[error(transparent)]
    OfflineDisk(#[from] DiskError),

    /// No backend has this name.
    #[error("there is no backend {name:?}: choose one of {known}")]
    NoSuchBackend {
        /// The name.
        name: String,
        /// The names of all backends.
        known: String,
    },

    /// A backend cannot run a VM on this machine, or, for `auto`, none can.
    #[error("the backend {name} cannot be used: {reason}")]
    BackendUnavailable {
        /// Its name.
        name: String,
        /// Why, and what to do.
        reason: String,
    },

    /// A backend panicked while it started the VM, which is a bug in the backend;
    /// report it to its authors, or choose another backend.
    #[error("the backend {name} panicked: {message}")]
    BackendPanicked {
        /// Its name.
        name: String,
        /// The message of the panic.
        message: String,
    },

    /// The VMM could not be started, or a system call of the host failed.
    #[error("{doing}")]
    Host {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },

    /// The VMM must be confined and cannot be; allow less with
    /// [`VmBuilder::confinement`](crate::VmBuilder::confinement).
    #[error("the VMM cannot be confined: {reason}")]
    Confinement {
        /// Why.
        reason: String,
    },

    /// A quota of the VM cannot be enforced here: set another one with
    /// [`VmBuilder::quotas`](crate::VmBuilder::quotas), or choose another backend.
    #[error("the quota {quota} cannot be enforced: {reason}")]
    Quota {
        /// Which one: the name of a function of [`Quotas`](crate::Quotas).
        quota: &'static str,
        /// Why, and what to do.
        reason: String,
    },

    /// The VM did not boot. The console usually contains the cause.
    #[error("{reason}{}", console_text(console))]
    Boot {
        /// How it failed.
        reason: BootFailure,
        /// The end of what the guest's kernel printed, made safe to print.
        console: String,
    },

    /// The backend of the VM cannot do this with a VM. Its
    /// [health](crate::backend::Backend::health) lists what it can do.
    #[error("the backend {backend} cannot {feature}: {remedy}")]
    BackendLacks {
        /// The name of the backend.
        backend: String,
        /// What it cannot do.
        feature: Feature,
        /// What to do.
        remedy: &'static str,
    },

    /// The VMM did not do what it was asked to do with a running VM. The VM is as it
    /// was before, as far as the VMM says.
    #[error("the VMM could not {doing}: {reason}")]
    Control {
        /// What it was asked to do.
        doing: &'static str,
        /// Why it did not.
        reason: String,
    },

    /// The VM is [paused](crate::Vm::pause_with), and requests are refused meanwhile;
    /// resume it.
    #[error("the VM is paused: resume it first")]
    Paused,

    /// The program that owns the VM could not do what this one asked it to.
    #[error("the program that owns the VM {id:?} could not {doing}: {reason}")]
    OwnerFailed {
        /// The id of the VM.
        id: String,
        /// What it was asked to do.
        doing: &'static str,
        /// Why it could not.
        reason: String,
    },

    /// A snapshot cannot be written, or cannot be restored here.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),

    /// Something cannot be done with a workspace.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),

    /// There is no such secret.
    #[error(transparent)]
    Secret(#[from] SecretError),

    /// The VM has ended: it was stopped or killed, or it died.
    #[error("the VM is gone: {0}")]
    Gone(End),

    /// No VM of this user with this id runs.
    #[error("no VM with the id {id:?} is running: `Vm::list` returns those that are")]
    NoSuchVm {
        /// The id.
        id: String,
    },

    /// The program that owns the VM does not answer: it is suspended, or the VM is
    /// booting. Try again, or continue or end that program.
    #[error(
        "the program that owns the VM {id:?}{} does not answer within {} s: it is suspended, or \
         the VM is booting",
        owner_text(*owner_pid),
        after.as_secs_f32()
    )]
    OwnerNotAnswering {
        /// The id of the VM.
        id: String,
        /// The process id of the program, if it is known.
        owner_pid: Option<u32>,
        /// How long the caller waited.
        after: Duration,
    },

    /// The program that owns the VM uses another version of vmcell; use the same
    /// one.
    #[error("the program that owns the VM {id:?} uses another version of vmcell: use the same one")]
    OwnerVersion {
        /// The id of the VM.
        id: String,
    },

    /// Only the program that owns the VM can do this, and this one is
    /// [attached](crate::Vm::attach).
    #[error("only the program that owns the VM can {doing}: this one is attached to it")]
    NotOwner {
        /// What it was asked to do.
        doing: &'static str,
    },

    /// A VM of this user with this id runs already.
    #[error("a VM with the id {id:?} runs already: stop it, or choose another id")]
    IdTaken {
        /// The id.
        id: String,
    },

    /// The guest could not start the command, or has no such process. Nothing was
    /// run.
    #[error(transparent)]
    Exec(#[from] ExecFailure),

    /// A request on a file of the guest failed.
    #[error(transparent)]
    File(#[from] FileFailure),

    /// The host could not read or write a tree that is copied into or out of a
    /// guest.
    #[error(transparent)]
    Tree(#[from] TreeError),

    /// A text is not a valid patch.
    #[error("the patch is invalid: {0}")]
    BadPatch(#[from] PatchError),

    /// A patch does not fit the files. Nothing was changed.
    #[error("the patch does not fit: {0}")]
    PatchMismatch(#[from] Mismatch),

    /// A request on a service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),

    /// A port of the guest or of this machine cannot be used.
    #[error(transparent)]
    Port(#[from] PortError),

    /// The command exceeded its timeout and was ended.
    #[error("timed out after {} s", after.as_secs_f32())]
    ExecTimeout {
        /// The timeout.
        after: Duration,
        /// Its output until then, and how it ended.
        partial: Box<Output>,
    },

    /// The command printed more than it was allowed to, and was ended.
    #[error("the command printed more than {limit} bytes")]
    OutputLimit {
        /// How many bytes were allowed for each of its outputs.
        limit: usize,
        /// Its output until then, and how it ended.
        partial: Box<Output>,
    },

    /// The guest sends more than the library collects in memory. Nothing of it is
    /// returned. The function that fails documents its limits.
    #[error("{what} has more than {limit} {unit}: {remedy}")]
    ResultLimit {
        /// What was collected.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// What is counted: `entries`, or `bytes` of memory.
        unit: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },

    /// The agent of the VM lacks a feature, because it is older than this library
    /// or was built without it. Its other features work.
    #[error(
        "the agent {agent:?} lacks {feature}: start the VM with an agent of this version of vmcell"
    )]
    Unsupported {
        /// The feature: `processes`, `files`, `terminals`, `services` or `ports`.
        feature: &'static str,
        /// The name of the agent's build.
        agent: String,
    },

    /// A limit of the library is reached; try again later.
    #[error("{0}")]
    Busy(&'static str),

    /// The guest violated the protocol, or the link to it broke.
    #[error("the link to the guest is lost: {0}")]
    Transport(String),

    /// The guest did not answer in time.
    #[error("the guest does not answer: no reply within {} s", .0.as_secs_f32())]
    Unresponsive(Duration),
}

/// The reason of a failed boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BootFailure {
    /// The agent did not send its hello in time.
    #[error("the guest did not come up within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// The VMM exited before the agent sent its hello.
    #[error("the VM ended while booting")]
    Ended,
    /// The VMM exited before the agent sent its hello, and the agent is from before
    /// boot files had versions.
    #[error(
        "the VM ended while booting, and its agent is from before boot files had versions: \
         rebuild the agent, or use the one that is built with the library"
    )]
    OldAgent,
    /// The VM used up its [processor time](crate::Quotas::cpu_time()) before the agent sent its
    /// hello.
    #[error("the VM used up its processor time while booting: allow more with `VmBuilder::quotas`")]
    CpuTimeUsed,
    /// Something other than the agent answered.
    #[error("the guest does not speak the vmcell protocol")]
    NotOurAgent,
    /// A restored guest could not take an identity of its own. No process in it ran.
    #[error("the restored guest could not take a new identity")]
    NotRenewed,
}

impl From<PatternError> for Error {
    fn from(error: PatternError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl Error {
    /// Returns a name of the kind of error that never changes, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::Missing { .. } => "missing",
            Self::BadFile { .. } => "bad-file",
            Self::Disk(ImageError::InUse { .. }) => "disk-in-use",
            Self::Disk(_) => "disk",
            Self::OfflineDisk(error) => error.code(),
            Self::NoSuchBackend { .. } => "no-such-backend",
            Self::BackendUnavailable { .. } => "backend-unavailable",
            Self::BackendPanicked { .. } => "backend-panicked",
            Self::Host { .. } => "host",
            Self::Confinement { .. } => "confinement",
            Self::Quota { .. } => "quota",
            Self::Boot { .. } => "boot",
            Self::BackendLacks { .. } => "backend-lacks",
            Self::Control { .. } => "control",
            Self::Paused => "paused",
            Self::OwnerFailed { .. } => "owner-failed",
            Self::Snapshot(_) => "snapshot",
            Self::Workspace(error) => error.code(),
            Self::Secret(_) => "secret",
            Self::Gone(_) => "gone",
            Self::NoSuchVm { .. } => "no-such-vm",
            Self::OwnerNotAnswering { .. } => "owner-not-answering",
            Self::OwnerVersion { .. } => "owner-version",
            Self::NotOwner { .. } => "not-owner",
            Self::IdTaken { .. } => "id-taken",
            Self::Exec(_) => "exec",
            Self::File(_) => "file",
            Self::Tree(_) => "tree",
            Self::BadPatch(_) => "bad-patch",
            Self::PatchMismatch(_) => "patch-mismatch",
            Self::Service(error) => error.code(),
            Self::Port(error) => error.code(),
            Self::ExecTimeout { .. } => "timeout",
            Self::OutputLimit { .. } => "output-limit",
            Self::ResultLimit { .. } => "result-limit",
            Self::Unsupported { .. } => "unsupported",
            Self::Busy(_) => "busy",
            Self::Transport(_) => "transport",
            Self::Unresponsive(_) => "unresponsive",
        }
    }

    /// Returns why the command ended, if the error is about the end of a command.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::ExecTimeout { .. } => Some(Cause::Timeout),
            Self::OutputLimit { .. } => Some(Cause::OutputLimit),
            Self::Gone(end) => Some(Cause::VmEnded(*end)),
            _ => None,
        }
    }

    /// Returns its text with those of its causes, for programs that get the text only.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let reason = error.to_string();
            // Some texts have their cause in them.
            if !text.contains(&reason) {
                text = format!("{text}: {reason}");
            }
            cause = error.source();
        }
        text
    }

    /// The error for a reply that does not fit the request.
    pub(crate) fn unexpected_reply() -> Self {
        Self::Transport("the guest's reply does not fit the request".to_owned())
    }

    pub(crate) fn host(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Host { doing, source }
    }
}

fn owner_text(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

fn console_text(console: &str) -> String {
    if console.trim().is_empty() {
        return "; the console is empty".to_owned();
    }
    format!("; the console ends with:\n{}", console.trim_end())
}
