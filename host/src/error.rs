use std::{io, path::PathBuf, time::Duration};

use vmcell_wire::pattern::PatternError;

#[cfg(feature = "disk")]
use crate::disk::image::ImageError;
use crate::{
    files::FileFailure,
    patch::{Mismatch, PatchError},
    port::PortError,
    process::{Cause, ExecFailure, Output},
    service::ServiceError,
    tree::TreeError,
    vm::End,
};

/// Everything that can go wrong, by what the caller can do about it.
///
/// A command that ends with a nonzero code is not an error: see
/// [`Exit`](crate::Exit).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request makes no sense; change it.
    #[error("{0}")]
    Invalid(String),

    /// Something that the machine must have is missing; install it or name
    /// where it is.
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
        /// What the file was to be.
        what: &'static str,
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The disk that a VM was to have cannot be used, or is in use.
    #[cfg(feature = "disk")]
    #[error(transparent)]
    Disk(#[from] ImageError),

    /// No backend has this name.
    #[error("there is no backend {name:?}: choose one of {known}")]
    NoSuchBackend {
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },

    /// A backend cannot run a VM on this machine, or, for `auto`, none can.
    #[error("the backend {name} cannot be used: {reason}")]
    BackendUnavailable {
        /// Its name.
        name: String,
        /// Why, and what to do about it.
        reason: String,
    },

    /// A backend panicked while it started the VM, which is a mistake in the
    /// backend; report it to whoever made it, or choose another one.
    #[error("the backend {name} panicked: {message}")]
    BackendPanicked {
        /// Its name.
        name: String,
        /// What the panic says.
        message: String,
    },

    /// The VMM could not be started, or the host's system refused what it
    /// needs.
    #[error("{doing}")]
    Host {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },

    /// The VM did not come up. The console usually tells why.
    #[error("{reason}{}", console_text(console))]
    Boot {
        /// What was noticed.
        reason: BootFailure,
        /// The end of what the guest's kernel printed, made safe to print.
        console: String,
    },

    /// The VM is gone: it was stopped or killed, or it died.
    #[error("the VM is gone: {0}")]
    Gone(End),

    /// No VM of this user with this id runs.
    #[error("no VM with the id {id:?} runs: `Vm::list` tells which do")]
    NoSuchVm {
        /// The id.
        id: String,
    },

    /// The program that owns the VM does not answer: it is stopped, or the VM
    /// still boots. Try again, or continue or end that program.
    #[error(
        "the program that owns the VM {id:?}{} does not answer within {} s: it is stopped, or \
         the VM still boots",
        owner_text(*owner_pid),
        after.as_secs_f32()
    )]
    OwnerNotAnswering {
        /// The id of the VM.
        id: String,
        /// The process id of the program, if the system tells it.
        owner_pid: Option<u32>,
        /// How long it was waited for.
        after: Duration,
    },

    /// The program that owns the VM has another version of vmcell; use the same
    /// one.
    #[error("the program that owns the VM {id:?} has another version of vmcell: use the same one")]
    OwnerVersion {
        /// The id of the VM.
        id: String,
    },

    /// A VM of this user with this id runs already.
    #[error("a VM with the id {id:?} runs already: choose another id")]
    IdTaken {
        /// The id.
        id: String,
    },

    /// The guest could not start the command, or does not have the process.
    /// Nothing was run.
    #[error(transparent)]
    Exec(#[from] ExecFailure),

    /// The guest could not do something with a file.
    #[error(transparent)]
    File(#[from] FileFailure),

    /// The host could not read or write a tree on its way into a guest or out
    /// of it.
    #[error(transparent)]
    Tree(#[from] TreeError),

    /// A text is no patch that can be applied.
    #[error("the patch makes no sense: {0}")]
    BadPatch(#[from] PatchError),

    /// A patch does not fit the files. Nothing was changed.
    #[error("the patch does not fit: {0}")]
    PatchMismatch(#[from] Mismatch),

    /// Something is wrong with a service.
    #[error(transparent)]
    Service(#[from] ServiceError),

    /// A port of the guest or of this machine cannot be had.
    #[error(transparent)]
    Port(#[from] PortError),

    /// The command took too long, and was ended.
    #[error("timed out after {} s", after.as_secs_f32())]
    ExecTimeout {
        /// The time it was given.
        after: Duration,
        /// What it had printed by then, and how it ended.
        partial: Box<Output>,
    },

    /// The command printed more than it was allowed to, and was ended.
    #[error("the command printed more than {limit} bytes")]
    OutputLimit {
        /// How many bytes were allowed for each of its outputs.
        limit: usize,
        /// What it had printed by then, and how it ended.
        partial: Box<Output>,
    },

    /// The guest sends more than is collected in memory; nothing of it is
    /// returned. The function that fails names its limits.
    #[error("{what} has more than {limit} {unit}: {remedy}")]
    ResultLimit {
        /// What was to be collected.
        what: &'static str,
        /// How much of it may be.
        limit: u64,
        /// What is counted: `entries`, or `bytes` of memory.
        unit: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },

    /// The agent of the VM is older than this library, or was built without
    /// something. All that it has works.
    #[error(
        "the agent {agent:?} lacks {feature}: start the VM with an agent of this version of vmcell"
    )]
    Unsupported {
        /// What it lacks: `processes`, `files`, `terminals`, `services`, `ports`.
        feature: &'static str,
        /// What it calls itself.
        agent: String,
    },

    /// A limit of the library is reached; try again when less is going on.
    #[error("{0}")]
    Busy(&'static str),

    /// The guest does not keep the protocol, or the link to it broke.
    #[error("the link to the guest is lost: {0}")]
    Transport(String),

    /// The guest did not answer in time.
    #[error("the guest does not answer: no reply within {} s", .0.as_secs_f32())]
    Unresponsive(Duration),
}

/// How a boot failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BootFailure {
    /// The agent did not say hello in time.
    #[error("the guest did not come up within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// The VMM ended before the agent said hello.
    #[error("the VM ended while booting")]
    Ended,
    /// The VM ended before the agent said hello, and the agent is from before
    /// boot files had versions.
    #[error(
        "the VM ended while booting, and its agent is from before boot files had versions: \
         build the agent anew, or use the one that is built with the library"
    )]
    OldAgent,
    /// Something else than our agent answered.
    #[error("the guest does not speak the vmcell protocol")]
    NotOurAgent,
}

impl From<PatternError> for Error {
    fn from(error: PatternError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl Error {
    /// A name for the kind of error that never changes, for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::Missing { .. } => "missing",
            Self::BadFile { .. } => "bad-file",
            #[cfg(feature = "disk")]
            Self::Disk(ImageError::InUse { .. }) => "disk-in-use",
            #[cfg(feature = "disk")]
            Self::Disk(_) => "disk",
            Self::NoSuchBackend { .. } => "no-such-backend",
            Self::BackendUnavailable { .. } => "backend-unavailable",
            Self::BackendPanicked { .. } => "backend-panicked",
            Self::Host { .. } => "host",
            Self::Boot { .. } => "boot",
            Self::Gone(_) => "gone",
            Self::NoSuchVm { .. } => "no-such-vm",
            Self::OwnerNotAnswering { .. } => "owner-not-answering",
            Self::OwnerVersion { .. } => "owner-version",
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

    /// Why the command ended that this error is about, if that is what it
    /// tells.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::ExecTimeout { .. } => Some(Cause::Timeout),
            Self::OutputLimit { .. } => Some(Cause::OutputLimit),
            Self::Gone(end) => Some(Cause::VmEnded(*end)),
            _ => None,
        }
    }

    /// The agent answered something that is no answer to what was asked.
    pub(crate) fn unexpected_reply() -> Self {
        Self::Transport("the answer makes no sense".to_owned())
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
