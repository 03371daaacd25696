//! A web server in a guest, and a client on this machine.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    time::Duration,
};

/// Serves `hello` as `/` on port 8080 of the guest.
pub(crate) const SERVER: &str =
    "mkdir -p /tmp/web && echo hello > /tmp/web/index.html && exec httpd -f -p 8080 -h /tmp/web";

/// How long a client waits for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the page `/` of the server at this host port.
pub(crate) fn page(port: u16) -> io::Result<String> {
    let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    connection.set_read_timeout(Some(REPLY_TIMEOUT))?;
    connection.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 "), "{answer}");
    Ok(body.to_owned())
}

/// Returns the host port in `127.0.0.1:PORT -> 8080`.
#[track_caller]
pub(crate) fn host_port(line: &str) -> u16 {
    let address = line.trim_end().strip_suffix(" -> 8080");
    let port = address.and_then(|address| address.strip_prefix("127.0.0.1:"));
    let port = port.and_then(|port| port.parse().ok());
    port.unwrap_or_else(|| panic!("no port in {line:?}"))
}

/// Returns whether a host port is free.
pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
