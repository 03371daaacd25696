use std::{fmt, io, net::IpAddr};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

use super::{HostName, resolver::BoxFuture};

/// Connects to a host in place of a program of the guest.
///
/// An application that has to use a proxy implements this:
///
/// ```
/// use std::{io, net::SocketAddr};
/// use tokio::{
///     io::{AsyncReadExt, AsyncWriteExt},
///     net::TcpStream,
/// };
/// use vmcell::network::{BoxFuture, Destination, Dialer, Upstream};
///
/// /// Connects through an HTTP proxy.
/// #[derive(Debug)]
/// struct Proxy(SocketAddr);
///
/// impl Dialer for Proxy {
///     fn dial<'a>(&'a self, host: &'a Destination) -> BoxFuture<'a, io::Result<Upstream>> {
///         Box::pin(async move {
///             let mut proxy = TcpStream::connect(self.0).await?;
///             let to = SocketAddr::new(host.address, host.port);
///             let request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n");
///             proxy.write_all(request.as_bytes()).await?;
///             let mut answer = Vec::new();
///             while !answer.ends_with(b"\r\n\r\n") && answer.len() < 8192 {
///                 answer.push(proxy.read_u8().await?);
///             }
///             match answer.starts_with(b"HTTP/1.1 200") {
///                 true => Ok(proxy.into()),
///                 false => Err(io::ErrorKind::ConnectionRefused.into()),
///             }
///         })
///     }
/// }
/// ```
pub trait Dialer: fmt::Debug + Send + Sync {
    /// Connects to a host whose address was checked.
    ///
    /// # Errors
    /// It cannot be reached. The program's connection is reset.
    fn dial<'a>(&'a self, host: &'a Destination) -> BoxFuture<'a, io::Result<Upstream>>;
}

/// The host that a program of the guest connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Destination {
    /// Its name, if the program has used one.
    pub name: Option<HostName>,
    /// Its address, which was checked. Connecting to the name instead may lead to another
    /// one, which was not.
    pub address: IpAddr,
    /// The TCP port.
    pub port: u16,
}

/// A connection to a host.
pub struct Upstream(pub(super) UpstreamKind);

pub(super) enum UpstreamKind {
    Tcp(TcpStream),
    Other(Box<dyn Stream>),
}

/// A connection that is not TCP.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Upstream {
    /// Creates it from any stream, such as one through a proxy.
    pub fn new(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self(UpstreamKind::Other(Box::new(stream)))
    }
}

#[cfg(feature = "broker")]
impl Upstream {
    /// Returns the stream, for small messages in both directions.
    pub(crate) fn into_stream(self) -> std::io::Result<Box<dyn Stream>> {
        Ok(match self.0 {
            UpstreamKind::Tcp(stream) => {
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            UpstreamKind::Other(stream) => stream,
        })
    }
}

impl From<TcpStream> for Upstream {
    fn from(stream: TcpStream) -> Self {
        Self(UpstreamKind::Tcp(stream))
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").finish_non_exhaustive()
    }
}

/// Connects to hosts directly.
#[derive(Clone, Copy, Debug, Default)]
pub struct DirectDialer;

impl Dialer for DirectDialer {
    fn dial<'a>(&'a self, host: &'a Destination) -> BoxFuture<'a, io::Result<Upstream>> {
        Box::pin(async move {
            let stream = TcpStream::connect((host.address, host.port)).await?;
            Ok(stream.into())
        })
    }
}
