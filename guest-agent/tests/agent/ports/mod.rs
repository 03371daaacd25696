//! TCP connections to programs, observed from both ends.

mod endings;
mod idle;
mod transfer;

use std::{
    io::{ErrorKind, Read},
    net::{SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use vmcell_wire::{Request, StreamId};

use crate::client::{Host, Reply};

/// How long a socket may block; longer means that something is broken.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(20);

/// A server on a port of its own.
struct Server {
    listener: TcpListener,
}

impl Server {
    fn new() -> Self {
        Self::at("127.0.0.1:0")
    }

    fn at(address: &str) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        Self { listener }
    }

    fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    fn accept(&self) -> TcpStream {
        let (socket, _) = self.listener.accept().unwrap();
        with_timeouts(socket)
    }

    /// Dials, and returns the stream and the server's end.
    fn connect(&self, host: &mut Host) -> (StreamId, TcpStream) {
        let stream = dial(host, self.port());
        (stream, self.accept())
    }
}

fn with_timeouts(socket: TcpStream) -> TcpStream {
    socket.set_read_timeout(Some(SOCKET_TIMEOUT)).unwrap();
    socket.set_write_timeout(Some(SOCKET_TIMEOUT)).unwrap();
    socket
}

/// Returns a port without a server. The socket reserves it.
fn unused_port() -> (u16, impl Sized) {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    rustix::net::bind(&socket, &any).unwrap();
    let address = SocketAddr::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
    (address.port(), socket)
}

/// Dials, and waits until the connection is established.
fn dial(host: &mut Host, port: u16) -> StreamId {
    let stream = host.open(&Request::Dial { port });
    let reply = host.first(|reply| *reply == Reply::Connected(stream) || reply.closes(stream));
    assert_eq!(reply, Reply::Connected(stream));
    stream
}

/// Waits until the connection is reset by the other side.
fn assert_reset(mut socket: &TcpStream) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => panic!("it was closed without a reset"),
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                return;
            }
        }
    }
}
