use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use super::{
    WorkspaceError,
    keeper_messages::{
        KeeperReport, KeeperRequest, KeeperTask, receive_report, receive_request, send_report,
        send_request,
    },
    locked::Locked,
    seed::OnSeed,
};
use crate::{error::Error, locate, on_thread::on_thread, sys::set_cloexec_from};

/// A program that runs workspaces in the background, so that they go on when the program
/// that has started them ends: one process for each running workspace.
///
/// Of the environment of the program that starts it, it has `HOME`, `PATH` and a few others,
/// and what begins with `VMCELL_`, `XDG_`, `RUST_`, `LC_` and `LD_`.
///
/// The program `vmcell` is one. Any other program is if it calls [`Keeper::keep`] when it
/// is started with certain arguments:
///
/// ```no_run
/// use vmcell::workspace::{Keeper, Workspaces};
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     if std::env::args().nth(1).as_deref() == Some("--keep-workspace") {
///         return Ok(Keeper::keep(std::future::pending()).await?);
///     }
///     let itself = Keeper::new(std::env::current_exe()?).arg("--keep-workspace");
///     let workspaces = Workspaces::open()?.keeper(itself);
///     // …
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Keeper {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Keeper {
    /// A program that calls [`keep`](Self::keep).
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
        }
    }

    /// Adds an argument with which it is started.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// The program `vmcell`, which is looked for in the path.
    ///
    /// # Errors
    /// [`Error::Missing`] if it is not there.
    pub fn vmcell() -> Result<Self, Error> {
        let program = locate::in_path("vmcell").ok_or_else(|| Error::Missing {
            what: "the program `vmcell`, which keeps workspaces running,",
            remedy: "`cargo install vmcell-cli`, or use another `Keeper`".to_owned(),
        })?;
        Ok(Self::new(program).arg("keep-workspace"))
    }

    /// Runs the workspace that this program was started for, until it ends, or until
    /// `stop` does: then it is stopped.
    ///
    /// # Errors
    /// [`Error::Invalid`] if this program was not started as a keeper. Why a workspace did
    /// not start is told to the program that has started this one.
    pub async fn keep(stop: impl Future<Output = ()>) -> Result<(), Error> {
        let not_started = |error: io::Error| {
            Error::Invalid(format!(
                "this program was not started to keep a workspace: {error}"
            ))
        };
        let stdin = rustix::stdio::stdin();
        let socket = UnixStream::from(stdin.try_clone_to_owned().map_err(not_started)?);
        let (request, locks) = receive_request(&socket).map_err(not_started)?;
        // The session of the user may end.
        let _ = rustix::process::setsid();
        let started = super::keep::start(request, locks, &socket).await;
        let report = match &started {
            Ok(_) => KeeperReport::Ready,
            Err(Error::Workspace(WorkspaceError::DiskFull { path, reason })) => {
                KeeperReport::DiskFull {
                    path: path.clone(),
                    reason: reason.clone(),
                }
            }
            Err(error) => KeeperReport::Failed {
                reason: error.with_causes(),
            },
        };
        // Fails if the other program has ended.
        let _ = send_report(&socket, &report);
        drop(socket);
        detach_stdin().map_err(Error::host("close the standard input"))?;
        match started {
            Ok(running) => running.until_ended(stop).await,
            Err(_) => Ok(()),
        }
    }

    /// Starts a process that runs a workspace, and waits until it does. The process has
    /// the locks.
    pub(super) async fn start(
        &self,
        locked: Locked,
        task: KeeperTask,
        on_seed: OnSeed,
    ) -> Result<(), Error> {
        let this = self.clone();
        on_thread("start the keeper of the workspace", move || {
            this.start_blocking(locked, task, &on_seed)
        })
        .await
    }

    fn start_blocking(
        &self,
        locked: Locked,
        task: KeeperTask,
        on_seed: &OnSeed,
    ) -> Result<(), Error> {
        const DOING: &str = "start the keeper of the workspace";
        let id = locked.record.id.clone();
        let request = KeeperRequest {
            folder: locked.folder.path().to_owned(),
            task,
        };
        let log = locked.folder.keeper_log();
        let [changes, owner] = locked.into_locks()?;
        let locks = changes.into_descriptor().zip(owner.into_descriptor());
        let (changes, owner) = locks.ok_or_else(Error::unexpected_reply)?;
        let (mut socket, theirs) = UnixStream::pair().map_err(Error::host(DOING))?;
        self.spawn(theirs, &log)?;
        let sent = send_request(&mut socket, &request, [&changes, &owner]);
        // The keeper has them.
        drop((changes, owner));
        let report = sent.and_then(|()| receive_report(&socket, on_seed));
        let failed = |reason: String| WorkspaceError::Keeper { id, reason };
        match report {
            Ok(KeeperReport::Ready) => Ok(()),
            Ok(KeeperReport::Failed { reason }) => Err(failed(reason).into()),
            Ok(KeeperReport::DiskFull { path, reason }) => {
                Err(WorkspaceError::DiskFull { path, reason }.into())
            }
            Ok(KeeperReport::Seeding { .. }) | Err(_) => Err(failed(format!(
                "the program that was to run the workspace ended: see {}",
                log.display()
            ))
            .into()),
        }
    }

    fn spawn(&self, socket: UnixStream, log: &Path) -> Result<(), Error> {
        const DOING: &str = "start the keeper of the workspace";
        let log = File::create(log).map_err(Error::host(DOING))?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| is_for_keeper(name)))
            .current_dir("/")
            .stdin(OwnedFd::from(socket))
            .stdout(Stdio::null())
            .stderr(log);
        set_cloexec_from(&mut command, 3);
        let mut child = command.spawn().map_err(|error| Error::BadFile {
            what: "keeper",
            path: self.program.clone(),
            reason: error.to_string(),
        })?;
        // So that it leaves no zombie if this program lives longer.
        let waiting = thread::Builder::new()
            .name("vmcell-keeper".to_owned())
            .stack_size(64 * 1024)
            .spawn(move || child.wait());
        waiting.map(drop).map_err(Error::host(DOING))
    }
}

/// Variables that a keeper has of the program that starts it, or how their names begin. It
/// may run for days, and what else is there may be a secret.
const KEEPER_VARIABLES: [&str; 11] = [
    "HOME", "LANG", "LC_", "LD_", "LOGNAME", "PATH", "RUST_", "TMPDIR", "USER", "VMCELL_", "XDG_",
];

fn is_for_keeper(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    KEEPER_VARIABLES
        .iter()
        .any(|known| match known.ends_with('_') {
            true => name.starts_with(known.as_bytes()),
            false => name == known.as_bytes(),
        })
}

/// Lets the other program see that nothing more comes.
fn detach_stdin() -> io::Result<()> {
    let nothing = File::open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdin(nothing)?)
}
