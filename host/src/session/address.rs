use std::{
    fmt, io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{Mode, OFlags, open};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

use crate::vsock;

/// Where an agent takes connections.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// A port of the guest, behind a Unix socket of its VMM, which asks for the
    /// port.
    Hybrid { path: PathBuf, port: u32 },
    /// A port of the guest with this number, through the kernel.
    Vsock { cid: u32, port: u32 },
}

/// Why an agent cannot be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreachable {
    /// The VMM or the system does not take connections.
    Io(io::ErrorKind),
    /// Nobody in the guest takes them.
    Refused,
    /// What the VMM answers is no answer.
    Senseless,
    /// No answer came in time.
    Silent,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(kind) => write!(f, "the VMM takes no connections: {kind}"),
            Self::Refused => f.write_str("the guest refuses connections to its agent"),
            Self::Senseless => f.write_str("the VMM does not answer as one with vsock does"),
            Self::Silent => f.write_str("the guest takes no connections in time"),
        }
    }
}

/// How long the VMM and the guest may take to make a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest answer that makes sense: `OK 4294967295` and its end.
const LONGEST_ANSWER: usize = 14;

impl Address {
    /// Makes a connection.
    ///
    /// Cancel safe: what is half made is given up.
    pub(super) async fn connect(&self) -> Result<UnixStream, Unreachable> {
        let connecting = async {
            match self {
                Self::Hybrid { path, port } => {
                    let socket = connect_to(path).await?;
                    greet(socket, *port).await
                }
                Self::Vsock { cid, port } => Ok(vsock::connect(*cid, *port).await?),
            }
        };
        timeout(CONNECT_TIMEOUT, connecting)
            .await
            .unwrap_or(Err(Unreachable::Silent))
    }
}

/// Connects to a socket and to nothing else. A VMM in a jail can put a link in
/// its place, which would lead this program to any other.
async fn connect_to(path: &Path) -> io::Result<UnixStream> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let socket = open(path, flags, Mode::empty())?;
    UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd())).await
}

/// Asks for a port: `CONNECT <port>`, to which the answer is `OK <number>`, or
/// the end if nobody in the guest takes the connection. What follows is the
/// guest's.
async fn greet(mut socket: UnixStream, port: u32) -> Result<UnixStream, Unreachable> {
    let request = format!("CONNECT {port}\n");
    socket.write_all(request.as_bytes()).await?;
    let mut answer = Vec::with_capacity(LONGEST_ANSWER);
    while answer.last() != Some(&b'\n') {
        if answer.len() == LONGEST_ANSWER {
            return Err(Unreachable::Senseless);
        }
        // No more than the line: the guest may speak right behind it.
        match socket.read_u8().await {
            Ok(byte) => answer.push(byte),
            Err(error) if answer.is_empty() && is_end(&error) => return Err(Unreachable::Refused),
            Err(error) if is_end(&error) => return Err(Unreachable::Senseless),
            Err(error) => return Err(error.into()),
        }
    }
    let number = std::str::from_utf8(&answer)
        .ok()
        .and_then(|line| line.trim_end().strip_prefix("OK "))
        .and_then(|number| number.parse::<u32>().ok());
    match number {
        Some(_) => Ok(socket),
        None => Err(Unreachable::Senseless),
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
    )
}

impl From<io::Error> for Unreachable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // The kernel's word for a guest in which nobody listens.
            io::ErrorKind::ConnectionReset => Self::Refused,
            // And for one that does not answer: after two seconds.
            io::ErrorKind::TimedOut => Self::Silent,
            kind => Self::Io(kind),
        }
    }
}
