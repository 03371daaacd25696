//! TCP servers in the guest, and clients of them within the guest.

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::fd::{AsRawFd, RawFd},
    time::Instant,
};

use crate::{
    sys::{Epoll, enlarge_backlog, wait_for},
    write_all,
};

/// The ports of the servers.
const FLOOD_PORT: u16 = 9001;
const HTTP_PORT: u16 = 9002;
const ECHO_PORT: u16 = 9003;

/// The number of bytes that `tcp_flood` sends to each client.
const FLOOD_BYTES: usize = 1 << 30;

/// The size of the page of `tcp_http`.
const PAGE: usize = 16 * 1024;

/// The number of connections of the client in the guest, and of requests on each.
const CONNECTIONS: usize = 200;
const REQUESTS: usize = 10;

fn listen(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    enlarge_backlog(&listener);
    Ok(listener)
}

/// Sends [`FLOOD_BYTES`] bytes to each client that has sent one.
pub(crate) fn flood() -> io::Result<u128> {
    let listener = listen(FLOOD_PORT)?;
    loop {
        let (mut client, _) = listener.accept()?;
        // A client may disconnect early.
        let _ = flood_to(&mut client);
    }
}

pub(crate) fn flood_to(client: &mut TcpStream) -> io::Result<()> {
    client.read_exact(&mut [0])?;
    let buffer = vec![7; 256 * 1024];
    for _ in 0..FLOOD_BYTES / buffer.len() {
        client.write_all(&buffer)?;
    }
    Ok(())
}

/// The read size of the client in the guest.
const READ: usize = 64 * 1024;

/// Reads a flood within the guest, and returns how long it takes.
pub(crate) fn read_flood() -> io::Result<u128> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, FLOOD_PORT))?;
    let begun = Instant::now();
    server.write_all(b"g")?;
    let mut buffer = vec![0; READ];
    while server.read(&mut buffer)? > 0 {}
    Ok(begun.elapsed().as_nanos())
}

/// Sends all input back.
pub(crate) fn echo() -> io::Result<u128> {
    let listener = listen(ECHO_PORT)?;
    loop {
        let (mut client, _) = listener.accept()?;
        client.set_nodelay(true)?;
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = client.read(&mut buffer) {
            client.write_all(&buffer[..count])?;
        }
    }
}

/// Returns the response to every request.
pub(crate) fn page() -> Vec<u8> {
    let mut page =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {PAGE}\r\n\r\n")
            .into_bytes();
    page.resize(page.len() + PAGE, b'x');
    page
}

/// Returns the number of requests that end in these bytes.
pub(crate) fn count_requests(bytes: &[u8]) -> usize {
    bytes.windows(4).filter(|end| end == b"\r\n\r\n").count()
}

/// Serves one page to many clients, each of which keeps its connection.
pub(crate) fn http() -> io::Result<u128> {
    let page = page();
    let listener = listen(HTTP_PORT)?;
    let epoll = Epoll::new()?;
    epoll.add(listener.as_raw_fd())?;
    let mut clients: HashMap<RawFd, TcpStream> = HashMap::new();
    let mut buffer = [0; 4096];
    loop {
        for descriptor in epoll.wait() {
            let Some(client) = clients.get_mut(&descriptor) else {
                let (client, _) = listener.accept()?;
                client.set_nodelay(true)?;
                epoll.add(client.as_raw_fd())?;
                clients.insert(client.as_raw_fd(), client);
                continue;
            };
            let served = client.read(&mut buffer).and_then(|count| {
                for _ in 0..count_requests(&buffer[..count]) {
                    client.write_all(&page)?;
                }
                Ok(count)
            });
            if !matches!(served, Ok(1..)) {
                clients.remove(&descriptor);
            }
        }
    }
}

/// Requests pages within the guest, and returns the time per page.
pub(crate) fn ask() -> io::Result<u128> {
    let mut servers = Vec::new();
    for _ in 0..CONNECTIONS {
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, HTTP_PORT))?;
        server.set_nodelay(true)?;
        servers.push(server);
    }
    let mut answer = vec![0; page().len()];
    let begun = Instant::now();
    for _ in 0..REQUESTS {
        for server in &mut servers {
            server.write_all(HTTP_REQUEST)?;
        }
        for server in &mut servers {
            server.read_exact(&mut answer)?;
        }
    }
    Ok(begun.elapsed().as_nanos() / (CONNECTIONS * REQUESTS) as u128)
}

const HTTP_REQUEST: &[u8] = b"GET /page HTTP/1.1\r\nHost: guest\r\nAccept: */*\r\n\r\n";

/// Serves the same pages over the serial port: a frame for each request and
/// response, preceded by its length and its connection.
pub(crate) fn http_over(port: &mut std::fs::File) -> io::Result<String> {
    let page = page();
    let mut input = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut output = Vec::new();
    port.write_all(b"g")?;
    loop {
        match port.read(&mut buffer) {
            Ok(count) => input.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_for(port, libc::POLLIN);
                continue;
            }
            Err(error) => return Err(error),
        }
        let mut rest = &input[..];
        while let Some((header, body)) = rest.split_first_chunk::<8>() {
            let [a, b, c, d, connection @ ..] = *header;
            let length = u32::from_le_bytes([a, b, c, d]) as usize;
            let Some((request, after)) = body.split_at_checked(length) else {
                break;
            };
            for _ in 0..count_requests(request) {
                output.extend_from_slice(&(page.len() as u32).to_le_bytes());
                output.extend_from_slice(&connection);
                output.extend_from_slice(&page);
            }
            rest = after;
        }
        let used = input.len() - rest.len();
        input.drain(..used);
        write_all(port, &output)?;
        output.clear();
    }
}

/// The ports of the servers that are compared with connections of the guest.
const GREET_PORT: u16 = 9004;
const SINK_PORT: u16 = 9005;

/// Sends a byte to each client.
pub(crate) fn greet() -> io::Result<u128> {
    let listener = listen(GREET_PORT)?;
    loop {
        let (mut client, _) = listener.accept()?;
        // A client may disconnect early.
        let _ = client.write_all(b"g");
    }
}

/// Reads all that a client sends, and answers with a byte.
pub(crate) fn sink() -> io::Result<u128> {
    let listener = listen(SINK_PORT)?;
    loop {
        let (mut client, _) = listener.accept()?;
        let mut buffer = vec![0; READ];
        while matches!(client.read(&mut buffer), Ok(1..)) {}
        let _ = client.write_all(b"e");
    }
}

/// How many connections are made one after the other.
const IN_A_ROW: u128 = 100;

/// Connects to the server that the environment names.
fn connect() -> io::Result<TcpStream> {
    let address = std::env::var("vmcell_address").unwrap_or_default();
    TcpStream::connect(address)
}

/// Connects, and returns the time of one connection.
pub(crate) fn connect_only() -> io::Result<u128> {
    let mut total = 0;
    for _ in 0..IN_A_ROW {
        let begun = Instant::now();
        let server = connect()?;
        total += begun.elapsed().as_nanos();
        drop(server);
    }
    Ok(total / IN_A_ROW)
}

/// Connects and reads the first byte of the server, and returns the time of both.
pub(crate) fn connect_and_read() -> io::Result<u128> {
    let begun = Instant::now();
    for _ in 0..IN_A_ROW {
        connect()?.read_exact(&mut [0])?;
    }
    Ok(begun.elapsed().as_nanos() / IN_A_ROW)
}

/// Reads all that a server sends, and returns how long it takes.
pub(crate) fn read_all() -> io::Result<u128> {
    let mut server = connect()?;
    let begun = Instant::now();
    let mut buffer = vec![0; READ];
    while server.read(&mut buffer)? > 0 {}
    Ok(begun.elapsed().as_nanos())
}

/// Sends a flood to a server, and returns how long it takes until the server has it.
pub(crate) fn write_flood() -> io::Result<u128> {
    let mut server = connect()?;
    let begun = Instant::now();
    let buffer = vec![7; 256 * 1024];
    for _ in 0..crate::FLOOD_BYTES / buffer.len() {
        server.write_all(&buffer)?;
    }
    server.shutdown(std::net::Shutdown::Write)?;
    server.read_exact(&mut [0])?;
    Ok(begun.elapsed().as_nanos())
}
