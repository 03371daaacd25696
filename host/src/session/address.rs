use std::{fmt, io, path::PathBuf, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

use crate::{socket_path::SocketPath, vsock};

/// The address at which an agent accepts connections.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// A vsock port of the guest, reached through a Unix socket of its VMM, on
    /// which the host requests the port.
    Hybrid { path: PathBuf, port: u32 },
    /// A vsock port of the guest with this CID, reached through the host's kernel.
    Vsock { cid: u32, port: u32 },
}

/// Why a connection to an agent failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// The VMM or the host's system does not accept connections.
    Io(io::ErrorKind),
    /// Nothing in the guest listens on the port.
    Refused,
    /// The VMM's reply is not the expected one.
    BadReply,
    /// No reply came in time.
    TimedOut,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(kind) => write!(f, "the VMM does not accept connections: {kind}"),
            Self::Refused => f.write_str("the guest refuses connections to its agent"),
            Self::BadReply => f.write_str("the VMM's reply is not one of the vsock protocol"),
            Self::TimedOut => f.write_str("the guest did not accept the connection in time"),
        }
    }
}

/// How long the VMM and the guest may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The length of the longest valid reply: `OK 4294967295` and a newline.
const MAX_REPLY_LENGTH: usize = 14;

impl Address {
    /// Connects to the agent.
    ///
    /// Cancel safe: an unfinished connection is closed.
    pub(super) async fn connect(&self) -> Result<UnixStream, ConnectError> {
        let connecting = async {
            match self {
                Self::Hybrid { path, port } => {
                    let path = SocketPath::open(path)?;
                    let socket = UnixStream::connect(path.path()).await?;
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

/// Requests a port: sends `CONNECT <port>` and expects `OK <number>`. The VMM
/// closes the socket if nothing in the guest listens. After the reply the
/// socket carries the guest's bytes.
async fn request_port(mut socket: UnixStream, port: u32) -> Result<UnixStream, ConnectError> {
    let request = format!("CONNECT {port}\n");
    socket.write_all(request.as_bytes()).await?;
    let mut reply = Vec::with_capacity(MAX_REPLY_LENGTH);
    while reply.last() != Some(&b'\n') {
        if reply.len() == MAX_REPLY_LENGTH {
            return Err(ConnectError::BadReply);
        }
        // Byte by byte: the guest's bytes may follow the line at once.
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
            // What the kernel reports if nothing listens in the guest.
            io::ErrorKind::ConnectionReset => Self::Refused,
            // What it reports after two seconds if the guest does not answer.
            io::ErrorKind::TimedOut => Self::TimedOut,
            kind => Self::Io(kind),
        }
    }
}
