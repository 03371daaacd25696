//! A connection of a program to a host that gets values.

use std::{
    io::{self, Cursor},
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use hyper::{client, server, service::service_fn};
use hyper_util::rt::TokioIo;
use rustls::{pki_types::ServerName, server::Acceptor};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, BufReader},
    sync::Mutex,
    time::timeout,
};
use tokio_rustls::{LazyConfigAcceptor, TlsConnector, client::TlsStream};

use super::{
    BrokeredHost,
    brokered_host::{HostTls, Transport},
    exchange::{Exchange, UpstreamSender},
    metered_stream::MeteredStream,
    tasks::{EndTasks, Tasks},
    upstream_tls::{HTTP1, HTTP2},
};
use crate::{
    network::{HostName, Upstream},
    port::{Connection, Meter},
};

/// How long both handshakes may take together.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// How much is read at once, of which TLS takes a small part each time.
const READ_SIZE: usize = 32 * 1024;

/// The longest head of a request in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// The most requests at once on a connection of HTTP/2.
const MAX_STREAMS: u32 = 128;

/// How many bytes of a stream and of a connection of HTTP/2 may wait here for who does not
/// read them, and how many of an answer.
const STREAM_WINDOW: u32 = 512 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
const MAX_SEND_BUFFER: usize = 64 * 1024;

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// A connection to a host, or why there is none.
type Connected<S> = Result<S, String>;

/// Ends when the connection to the host does.
type UpstreamEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

impl BrokeredHost {
    /// Serves a connection of a program until it ends. `connecting` returns it, and what the
    /// program has sent already. All ends when this is dropped.
    pub(crate) async fn serve(
        self: Arc<Self>,
        connecting: impl Future<Output = io::Result<(Connection, Vec<u8>)>>,
        upstream: Upstream,
        meter: impl Meter + Send + Unpin + 'static,
    ) -> io::Result<()> {
        let (connection, sent) = connecting.await?;
        let (reader, writer) = connection.into_split();
        let reader = BufReader::with_capacity(READ_SIZE, reader);
        let guest = tokio::io::join(Cursor::new(sent).chain(reader), writer);
        let upstream = MeteredStream::new(upstream.into_stream()?, meter);
        let upstream = BufReader::with_capacity(READ_SIZE, upstream);
        match &self.transport {
            Transport::Plain => self.serve_http(guest, Ok(upstream), Protocol::Http1).await,
            Transport::Tls(tls) => {
                let handshake = self.handshake(tls, guest, upstream);
                let handshake = timeout(HANDSHAKE_TIMEOUT, handshake).await;
                let (guest, upstream, protocol) = handshake.map_err(io::Error::from)??;
                self.serve_http(guest, upstream, protocol).await
            }
        }
    }

    /// Connects to the host with TLS, and then to the program, with the same protocol.
    async fn handshake<G, U>(
        &self,
        tls: &HostTls,
        guest: G,
        upstream: U,
    ) -> io::Result<(
        tokio_rustls::server::TlsStream<G>,
        Connected<TlsStream<U>>,
        Protocol,
    )>
    where
        G: AsyncRead + AsyncWrite + Unpin,
        U: AsyncRead + AsyncWrite + Unpin,
    {
        let start = LazyConfigAcceptor::new(Acceptor::default(), guest).await?;
        let hello = start.client_hello();
        let is_other = |name: &str| HostName::new(name).as_ref() != Ok(&self.name);
        if hello.server_name().is_some_and(is_other) {
            let text = "the program wants the certificate of another host";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let (http1, http2) = match hello.alpn() {
            None => (true, false),
            Some(names) => names.fold((false, false), |(http1, http2), name| {
                (http1 || name == HTTP1, http2 || name == HTTP2)
            }),
        };
        let name = ServerName::try_from(self.name.as_str().to_owned());
        let name = name.map_err(io::Error::other)?;
        let connector = TlsConnector::from(tls.upstream.config(http1, http2));
        let upstream = connector.connect(name, upstream).await;
        let protocol = match &upstream {
            Ok(upstream) if upstream.get_ref().1.alpn_protocol() == Some(HTTP2) => Protocol::Http2,
            Err(_) if http2 && !http1 => Protocol::Http2,
            _ => Protocol::Http1,
        };
        let config = match protocol {
            Protocol::Http1 => tls.http1.clone(),
            Protocol::Http2 => tls.http2.clone(),
        };
        let guest = start.into_stream(config).await?;
        Ok((guest, upstream.map_err(|error| error.to_string()), protocol))
    }

    pub(super) async fn serve_http<U>(
        self: &Arc<Self>,
        guest: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        upstream: Connected<U>,
        protocol: Protocol,
    ) -> io::Result<()>
    where
        U: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let tasks = Tasks::default();
        let _end = EndTasks(tasks.clone());
        let opened = match upstream {
            Ok(upstream) => open(upstream, protocol, &tasks).await,
            Err(why) => Err(why),
        };
        let (upstream, upstream_end) = opened.unwrap_or_else(|why| {
            let end: UpstreamEnd = Box::pin(std::future::pending());
            (UpstreamSender::Failed(why), end)
        });
        let exchange = Arc::new(Exchange {
            host: self.clone(),
            upstream,
        });
        let service = service_fn(move |request| {
            let exchange = exchange.clone();
            async move { Ok::<_, std::convert::Infallible>(exchange.answer(request).await) }
        });
        let guest = TokioIo::new(guest);
        // When the host has ended its connection, so does the program's, after the answers
        // that are on their way.
        let served = match protocol {
            Protocol::Http1 => {
                let mut builder = server::conn::http1::Builder::new();
                builder
                    .auto_date_header(false)
                    // With TLS, who closes does not wait for an answer.
                    .half_close(matches!(self.transport, Transport::Plain))
                    .max_buf_size(MAX_HEAD)
                    .preserve_header_case(true);
                let mut serving = pin!(builder.serve_connection(guest, service));
                tokio::select! {
                    served = serving.as_mut() => served,
                    () = upstream_end => {
                        serving.as_mut().graceful_shutdown();
                        serving.await
                    }
                }
            }
            Protocol::Http2 => {
                let mut builder = server::conn::http2::Builder::new(tasks);
                builder
                    .auto_date_header(false)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .initial_stream_window_size(STREAM_WINDOW)
                    .max_concurrent_streams(MAX_STREAMS)
                    .max_header_list_size(MAX_HEAD as u32)
                    .max_send_buf_size(MAX_SEND_BUFFER);
                let mut serving = pin!(builder.serve_connection(guest, service));
                tokio::select! {
                    served = serving.as_mut() => served,
                    () = upstream_end => {
                        serving.as_mut().graceful_shutdown();
                        serving.await
                    }
                }
            }
        };
        served.map_err(io::Error::other)
    }
}

/// Begins to speak HTTP with a host. What is returned must be polled.
async fn open(
    upstream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    protocol: Protocol,
    tasks: &Tasks,
) -> Connected<(UpstreamSender, UpstreamEnd)> {
    let upstream = TokioIo::new(upstream);
    let opened: hyper::Result<(_, UpstreamEnd)> = match protocol {
        Protocol::Http1 => client::conn::http1::Builder::new()
            .preserve_header_case(true)
            .handshake(upstream)
            .await
            .map(|(sender, connection)| {
                let sender = UpstreamSender::Http1(Mutex::new(sender));
                (sender, Box::pin(until_end(connection)) as UpstreamEnd)
            }),
        Protocol::Http2 => client::conn::http2::Builder::new(tasks.clone())
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_stream_window_size(STREAM_WINDOW)
            .max_send_buf_size(MAX_SEND_BUFFER)
            .handshake(upstream)
            .await
            .map(|(sender, connection)| {
                let sender = UpstreamSender::Http2(sender);
                (sender, Box::pin(until_end(connection)) as UpstreamEnd)
            }),
    };
    opened.map_err(|error| error.to_string())
}

async fn until_end(connection: impl Future<Output = hyper::Result<()>>) {
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection with brokered secrets broke");
    }
}
