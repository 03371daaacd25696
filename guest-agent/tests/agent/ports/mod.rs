//! Connections to programs, seen from both of their ends.

mod endings;
mod idle;
mod talk;

use std::{
    io::{ErrorKind, Read},
    net::{SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use vmcell_wire::{Request, StreamId};

use crate::client::{Host, Said};

/// Nothing here takes this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(20);

/// Somebody who listens on a port that nobody else has.
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
        patient(socket)
    }

    /// Dials, and answers the stream and the server's end.
    fn meet(&self, host: &mut Host) -> (StreamId, TcpStream) {
        let stream = dial(host, self.port());
        (stream, self.accept())
    }
}

fn patient(socket: TcpStream) -> TcpStream {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// A port that nobody listens on. The socket keeps others from it.
fn silent_port() -> (u16, impl Sized) {
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

/// Dials, and waits until it is connected.
fn dial(host: &mut Host, port: u16) -> StreamId {
    let stream = host.open(&Request::Dial { port });
    let said = host.first(|said| *said == Said::Connected(stream) || said.closes(stream));
    assert_eq!(said, Said::Connected(stream));
    stream
}

/// Waits until the other side is known to have broken the connection.
fn assert_reset(mut socket: &TcpStream) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => panic!("it was closed in order"),
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                return;
            }
        }
    }
}
