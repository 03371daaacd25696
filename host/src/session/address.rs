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
pub(crate) enum ConnectError {
    /// The VMM or the system does not take connections.
    Io(io::ErrorKind),
    /// Nobody in the guest takes them.
    Refused,
    /// What the VMM answers is no answer.
    BadReply,
    /// No answer came in time.
    TimedOut,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(kind) => write!(f, "the VMM takes no connections: {kind}"),
            Self::Refused => f.write_str("the guest refuses connections to its agent"),
            Self::BadReply => f.write_str("the VMM does not answer as one with vsock does"),
            Self::TimedOut => f.write_str("the guest takes no connections in time"),
        }
    }
}

/// How long the VMM and the guest may take to make a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest answer that makes sense: `OK 4294967295` and its end.
const MAX_REPLY_LENGTH: usize = 14;

impl Address {
    /// Makes a connection.
    ///
    /// Cancel safe: what is half made is given up.
    pub(super) async fn connect(&self) -> Result<UnixStream, ConnectError> {
        let connecting = async {
            match self {
                Self::Hybrid { path, port } => {
                    let socket = connect_to_socket(path).await?;
                    request_port(socket, *port).await
                }
                Self::Vsock { cid, port } => Ok(vsock::connect(*cid, *port).await?),
            }
        };
        timeout(CONNECT_TIMEOUT, connecting)
            .await
            .unwrap_or(Err(ConnectError::TimedOut))
    }
}

/// Connects to a socket and to nothing else. A VMM in a jail can put a link in
/// its place, which would lead this program to any other.
async fn connect_to_socket(path: &Path) -> io::Result<UnixStream> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let socket = open(path, flags, Mode::empty())?;
    UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd())).await
}

/// Asks for a port: `CONNECT <port>`, to which the answer is `OK <number>`, or
/// the end if nobody in the guest takes the connection. What follows is the
/// guest's.
async fn request_port(mut socket: UnixStream, port: u32) -> Result<UnixStream, ConnectError> {
    let request = format!("CONNECT {port}\n");
    socket.write_all(request.as_bytes()).await?;
    let mut reply = Vec::with_capacity(MAX_REPLY_LENGTH);
    while reply.last() != Some(&b'\n') {
        if reply.len() == MAX_REPLY_LENGTH {
            return Err(ConnectError::BadReply);
        }
        // No more than the line: the guest may speak right behind it.
        match socket.read_u8().await {
            Ok(byte) => reply.push(byte),
            Err(error) if reply.is_empty() && is_disconnect(&error) => {
                return Err(ConnectError::Refused);
            }
            Err(error) if is_disconnect(&error) => return Err(ConnectError::BadReply),
            Err(error) => return Err(error.into()),
        }
    }
    let number = std::str::from_utf8(&reply)
        .ok()
        .and_then(|line| line.trim_end().strip_prefix("OK "))
        .and_then(|number| number.parse::<u32>().ok());
    match number {
        Some(_) => Ok(socket),
        None => Err(ConnectError::BadReply),
    }
}

fn is_disconnect(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
    )
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // The kernel's word for a guest in which nobody listens.
            io::ErrorKind::ConnectionReset => Self::Refused,
            // And for one that does not answer: after two seconds.
            io::ErrorKind::TimedOut => Self::TimedOut,
            kind => Self::Io(kind),
        }
    }
}
