//! `vhost-device-vsock`: a program that is a vsock device for QEMU.

use std::{
    ffi::OsString,
    io::{self, Read as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify,
};

use crate::{
    backend::{RunFolder, Vmm},
    error::Error,
    printable,
};

/// The program, which runs and waits for QEMU.
pub(super) struct VhostDevice {
    pub(super) program: Vmm,
    /// What it complains about.
    pub(super) complaints: UnixStream,
    /// Its sockets are in it.
    pub(super) folder: RunFolder,
}

/// How long it may take to be ready for QEMU.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

impl VhostDevice {
    /// Starts it, with a socket for connections to the guest at `vsock`. With it
    /// comes what QEMU talks to it on.
    pub(super) fn start(
        path: PathBuf,
        folder: RunFolder,
        vsock: &Path,
    ) -> Result<(Self, OwnedFd), Error> {
        let vhost = folder.path().join("vhost");
        let pair = UnixStream::pair().map_err(Error::host("make a socket pair"))?;
        let (complaints, complaints_of_device) = pair;
        let mut command = Command::new(&path);
        command
            .args(arguments(&vhost, vsock))
            .env_clear()
            .current_dir("/")
            // As QEMU.
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(OwnedFd::from(complaints_of_device));
        // Before it can make its sockets.
        let changes = changes_in(folder.path()).map_err(Error::host("watch a folder"))?;
        let program = Vmm::spawn(command, Vec::new())?;
        let connected = connect(&vhost, &changes, &program);
        let device = Self {
            program,
            complaints,
            folder,
        };
        match connected {
            Ok(socket) => Ok((device, socket.into())),
            Err(error) => Err(Error::BadFile {
                what: "vhost-device-vsock",
                path,
                reason: device.why(&error),
            }),
        }
    }

    /// Why it cannot be used, in its own words if it has any.
    fn why(self, error: &io::Error) -> String {
        const MOST: u64 = 4096;
        // Its end is the end of what it says.
        drop(self.program);
        let mut words = Vec::new();
        let _ = self.complaints.take(MOST).read_to_end(&mut words);
        match printable(&words).trim() {
            "" => format!("it takes no connections: {error}"),
            words => words.to_owned(),
        }
    }
}

/// The number of the guest is for this device alone, so it can be the same for
/// all VMs.
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

fn changes_in(folder: &Path) -> io::Result<OwnedFd> {
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
            // It has an address and does not listen yet. Nothing tells of that
            // next step, which follows at once.
            io::ErrorKind::ConnectionRefused => Duration::from_millis(1),
            _ => return Err(error),
        };
        let killer = program.killer();
        let ending = killer.pidfd();
        let mut wakers = [
            PollFd::from_borrowed_fd(changes.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(ending, PollFlags::IN),
        ];
        poll(
            &mut wakers,
            Some(&Timespec::try_from(wait).map_err(io::Error::other)?),
        )?;
        let [_, ending] = wakers;
        if !ending.revents().is_empty() || Instant::now() >= deadline {
            return Err(error);
        }
        // What has changed does not matter.
        let _ = rustix::io::read(changes, &mut [0; 4096]);
    }
}
