//! An HTTP proxy for the programs of a guest.

use std::{io, sync::Arc, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};
use vmcell_wire::network::Refusal;

use super::{
    connecting::{WantedConnection, WantedTarget},
    proxy_request::{ProxyRequest, ProxyRequestKind},
    state::NetworkState,
};
use crate::port::Connection;

/// The URL of the HTTP proxy that programs of a guest can use if a
/// [policy](super::NetworkPolicy::proxy) says so.
pub const PROXY: &str = "http://proxy.vmcell.internal:3128";

/// The environment variables that make most programs use the [proxy](PROXY).
pub const PROXY_VARIABLES: [(&str, &str); 6] = [
    ("http_proxy", PROXY),
    ("HTTP_PROXY", PROXY),
    ("https_proxy", PROXY),
    ("HTTPS_PROXY", PROXY),
    ("no_proxy", NOT_PROXIED),
    ("NO_PROXY", NOT_PROXIED),
];

/// The guest itself.
const NOT_PROXIED: &str = "localhost,127.0.0.1,::1";

/// The name of the proxy, which nobody else can have.
pub(super) const PROXY_NAME: &str = "proxy.vmcell.internal";

const PROXY_PORT: u16 = 3128;

/// How long a program may take to send a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns whether a program connects to the proxy.
pub(super) fn is_wanted(connection: &WantedConnection) -> bool {
    let is_named =
        matches!(&connection.target, WantedTarget::Name(name) if name.as_str() == PROXY_NAME);
    is_named && connection.port == PROXY_PORT
}

/// Serves a program that has connected to the proxy: one request, or one tunnel.
pub(super) async fn serve(mut connection: Connection, state: &Arc<NetworkState>) -> io::Result<()> {
    let request = match timeout(REQUEST_TIMEOUT, read_request(&mut connection)).await {
        Ok(request) => request?,
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    };
    let request = match request {
        Ok(request) => request,
        Err(text) => return answer(&mut connection, "400 Bad Request", &text).await,
    };
    let wanted = request.wanted.wanted();
    let upstream = match request.wanted.connect(state).await {
        Ok(upstream) => upstream,
        Err(refusal) => {
            let (status, why) = match refusal {
                Refusal::NotAllowed => ("403 Forbidden", "not allowed by policy"),
                Refusal::Limit => ("429 Too Many Requests", "a limit of the policy is reached"),
                _ => ("502 Bad Gateway", "not reached"),
            };
            return answer(&mut connection, status, &format!("{why}: {wanted}")).await;
        }
    };
    let connecting = async {
        let mut sent = match request.kind {
            ProxyRequestKind::Tunnel => {
                let established = b"HTTP/1.1 200 Connection established\r\n\r\n";
                connection.write_all(established).await?;
                Vec::new()
            }
            ProxyRequestKind::Forward(head) => head,
        };
        sent.extend_from_slice(&request.rest);
        Ok((connection, sent))
    };
    upstream.relay(connecting).await;
    Ok(())
}

/// Reads a request. Returns what is wrong with it if it is not one.
async fn read_request(connection: &mut Connection) -> io::Result<Result<ProxyRequest, String>> {
    let mut received = BytesMut::new();
    loop {
        if connection.read_buf(&mut received).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match ProxyRequest::parse(&mut received) {
            Ok(Some(request)) => return Ok(Ok(request)),
            Ok(None) => {}
            Err(bad) => return Ok(Err(bad.to_string())),
        }
    }
}

/// Answers a request itself, and ends the connection.
async fn answer(connection: &mut Connection, status: &str, text: &str) -> io::Result<()> {
    let length = text.len() + 1;
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{text}\n"
    );
    connection.write_all(answer.as_bytes()).await?;
    connection.shutdown().await?;
    // What the program sends until it has read the answer, which a reset would take away.
    let mut rest = [0; 1024];
    let discarding = async {
        while connection.read(&mut rest).await? > 0 {}
        Ok(())
    };
    timeout(REQUEST_TIMEOUT, discarding).await.unwrap_or(Ok(()))
}
