//! `vhost-device-vsock`: a vhost-user program that provides the vsock device
//! for QEMU.

use std::{
    ffi::OsString,
    io::{self, Read as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify,
};

use crate::{
    backend::{Machine, RunFolder, Vmm, VmmProgram},
    error::Error,
    printable,
};

/// The running program, which waits for QEMU.
pub(super) struct VhostDevice {
    pub(super) program: Vmm,
    /// Its standard error.
    pub(super) stderr: UnixStream,
    /// The folder with its sockets.
    pub(super) folder: RunFolder,
}

/// The name of its socket for connections to the guest.
pub(super) const VSOCK: &str = "vsock";

/// How long it may take to accept a connection.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

impl VhostDevice {
    /// Starts it, with its sockets in a folder. Also returns the connection that QEMU uses to talk to it.
    pub(super) fn start(
        path: PathBuf,
        machine: &Machine,
        folder: RunFolder,
        sockets: &Path,
    ) -> Result<(Self, OwnedFd), Error> {
        let vhost = sockets.join("vhost");
        let pair = UnixStream::pair().map_err(Error::host("make a socket pair"))?;
        let (stderr, device_stderr) = pair;
        // Watched before it can create its sockets.
        let changes = watch_created(sockets).map_err(Error::host("watch a folder"))?;
        let program = VmmProgram::new(&path, machine)
            .args(arguments(&vhost, &sockets.join(VSOCK)))
            .writable(sockets)
            // It writes to sockets only.
            .file_size(0)
            .uses_sockets()
            .stderr(device_stderr)
            .spawn()?;
        let connected = connect(&vhost, &changes, &program);
        let device = Self {
            program,
            stderr,
            folder,
        };
        match connected {
            Ok(socket) => Ok((device, socket.into())),
            Err(error) => Err(Error::BadFile {
                what: "vhost-device-vsock",
                path,
                reason: device.failure_reason(&error),
            }),
        }
    }

    /// Returns why it cannot be used: what it printed, or else the error.
    fn failure_reason(self, error: &io::Error) -> String {
        const MAX_OUTPUT: u64 = 4096;
        // Dropping kills it, which ends its output.
        drop(self.program);
        let mut output = Vec::new();
        let _ = self.stderr.take(MAX_OUTPUT).read_to_end(&mut output);
        match printable(&output).trim() {
            "" => format!("it does not accept connections: {error}"),
            output => output.to_owned(),
        }
    }
}

/// Returns its command line. The guest's CID is private to this device, so all
/// VMs can use the same.
fn arguments(vhost: &Path, vsock: &Path) -> Vec<OsString> {
    [
        "--guest-cid".into(),
        "3".into(),
        "--socket".into(),
        vhost.into(),
        "--uds-path".into(),
        vsock.into(),
    ]
    .into()
}

fn watch_created(folder: &Path) -> io::Result<OwnedFd> {
    let changes = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    inotify::add_watch(&changes, folder, inotify::WatchFlags::CREATE)?;
    Ok(changes)
}

/// Connects as soon as the program listens.
fn connect(path: &Path, changes: &OwnedFd, program: &Vmm) -> io::Result<UnixStream> {
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        let error = match UnixStream::connect(path) {
            Ok(socket) => return Ok(socket),
            Err(error) => error,
        };
        let wait = match error.kind() {
            io::ErrorKind::NotFound => deadline.saturating_duration_since(Instant::now()),
            // The socket is bound and does not listen yet. No event signals
            // that next step, which follows at once.
            io::ErrorKind::ConnectionRefused => Duration::from_millis(1),
            _ => return Err(error),
        };
        let killer = program.killer();
        let ending = killer.pidfd();
        let mut poll_fds = [
            PollFd::from_borrowed_fd(changes.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(ending, PollFlags::IN),
        ];
        poll(
            &mut poll_fds,
            Some(&Timespec::try_from(wait).map_err(io::Error::other)?),
        )?;
        let [_, ending] = poll_fds;
        if !ending.revents().is_empty() || Instant::now() >= deadline {
            return Err(error);
        }
        // Drain the events; their content is not needed.
        let _ = rustix::io::read(changes, &mut [0; 4096]);
    }
}
