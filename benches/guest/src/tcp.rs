//! What is behind the ports of a guest: servers, and a client beside them.

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::fd::{AsRawFd, RawFd},
    time::Instant,
};

use crate::{
    sys::{Epoll, listen_longer, wait_for},
    write_all,
};

/// Where the servers listen.
const FLOOD_PORT: u16 = 9001;
const HTTP_PORT: u16 = 9002;
const ECHO_PORT: u16 = 9003;

/// How much `tcp_flood` sends to each client.
const FLOOD: usize = 1 << 30;

/// How large the page of `tcp_http` is.
const PAGE: usize = 16 * 1024;

/// How many connections the client in the guest has, and how often it asks on
/// each.
const CONNECTIONS: usize = 200;
const QUESTIONS: usize = 10;

fn listen(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listen_longer(&listener);
    Ok(listener)
}

/// Sends [`FLOOD`] bytes to whoever has sent one.
pub(crate) fn flood() -> io::Result<u128> {
    let listener = listen(FLOOD_PORT)?;
    loop {
        let (mut client, _) = listener.accept()?;
        // One that does not wait for all of it is welcome too.
        let _ = flood_to(&mut client);
    }
}

pub(crate) fn flood_to(client: &mut TcpStream) -> io::Result<()> {
    client.read_exact(&mut [0])?;
    let buffer = vec![7; 256 * 1024];
    for _ in 0..FLOOD / buffer.len() {
        client.write_all(&buffer)?;
    }
    Ok(())
}

/// What is read at once by the client in the guest.
const READ: usize = 64 * 1024;

/// Reads a flood within the guest, and tells how long it takes.
pub(crate) fn read_flood() -> io::Result<u128> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, FLOOD_PORT))?;
    let begun = Instant::now();
    server.write_all(b"g")?;
    let mut buffer = vec![0; READ];
    while server.read(&mut buffer)? > 0 {}
    Ok(begun.elapsed().as_nanos())
}

/// Sends back what comes.
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

/// The answer to every question.
pub(crate) fn page() -> Vec<u8> {
    let mut page =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {PAGE}\r\n\r\n")
            .into_bytes();
    page.resize(page.len() + PAGE, b'x');
    page
}

/// How many questions end in these bytes.
pub(crate) fn questions(bytes: &[u8]) -> usize {
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
                for _ in 0..questions(&buffer[..count]) {
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

/// Asks for pages within the guest, and tells how long one takes.
pub(crate) fn ask() -> io::Result<u128> {
    let mut servers = Vec::new();
    for _ in 0..CONNECTIONS {
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, HTTP_PORT))?;
        server.set_nodelay(true)?;
        servers.push(server);
    }
    let mut answer = vec![0; page().len()];
    let begun = Instant::now();
    for _ in 0..QUESTIONS {
        for server in &mut servers {
            server.write_all(QUESTION)?;
        }
        for server in &mut servers {
            server.read_exact(&mut answer)?;
        }
    }
    Ok(begun.elapsed().as_nanos() / (CONNECTIONS * QUESTIONS) as u128)
}

const QUESTION: &[u8] = b"GET /page HTTP/1.1\r\nHost: guest\r\nAccept: */*\r\n\r\n";

/// The same pages over the serial port: a frame for each question and answer,
/// with its connection and its length in front.
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
            let Some((question, after)) = body.split_at_checked(length) else {
                break;
            };
            for _ in 0..questions(question) {
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
