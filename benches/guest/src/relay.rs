//! What is between a process and the host at the very least.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
};

use crate::{
    FLOOD, keyboard,
    sys::{fork, mount, move_pages, new_pipe, raise_loopback, terminal_of, wait_for},
    tcp, write_all,
};

/// As large as the agent makes a pipe that is full.
const PIPE: usize = 256 * 1024;

/// Waits for the byte with which the host says go.
fn wait_for_go(port: &mut File) {
    wait_for(port, libc::POLLIN);
    let _ = port.read(&mut [0; 1]);
}

/// Passes on [`FLOOD`] bytes.
fn pass_on(port: &mut File, mut from: impl Read) -> io::Result<String> {
    let mut buffer = vec![0; PIPE];
    let mut passed = 0;
    while passed < FLOOD {
        match from.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                write_all(port, &buffer[..count])?;
                passed += count;
            }
        }
    }
    Ok("passed on".to_owned())
}

/// What a child writes to a pipe, which is what it has read from `/dev/zero`.
pub(crate) fn pipe(port: &mut File) -> io::Result<String> {
    let reading = zeros(port)?;
    pass_on(port, reading)
}

/// The same without a copy: the pipe's pages go to the device. Nobody could
/// send them again, so an agent cannot do it like this.
pub(crate) fn splice(port: &mut File) -> io::Result<String> {
    let reading = zeros(port)?;
    let mut passed = 0;
    while passed < FLOOD {
        match move_pages(&reading, port, PIPE) {
            // The driver's word for an empty pipe.
            Ok(0) => wait_for(&reading, libc::POLLIN),
            Ok(count) => passed += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_for(port, libc::POLLOUT);
            }
            Err(error) => return Err(error),
        }
    }
    Ok("passed on".to_owned())
}

/// A pipe that a child fills with zeros, once the host says go.
fn zeros(port: &mut File) -> io::Result<File> {
    wait_for_go(port);
    let (reading, mut writing) = new_pipe(PIPE)?;
    if fork()? {
        let mut zeros = File::open("/dev/zero")?;
        let mut buffer = vec![0; PIPE];
        loop {
            zeros.read_exact(&mut buffer)?;
            writing.write_all(&buffer)?;
        }
    }
    Ok(reading)
}

/// What a child writes to a connection.
pub(crate) fn tcp(port: &mut File) -> io::Result<String> {
    wait_for_go(port);
    raise_loopback()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    if fork()? {
        let (mut client, _) = listener.accept()?;
        tcp::flood_to(&mut client)?;
        return Ok("flooded".to_owned());
    }
    let mut server = TcpStream::connect(address)?;
    server.write_all(b"g")?;
    pass_on(port, server)
}

/// What a terminal echoes.
pub(crate) fn pty(port: &mut File) -> io::Result<String> {
    std::fs::create_dir_all("/dev/pts")?;
    mount(c"devpts", c"/dev/pts", c"devpts")?;
    let mut keyboard = keyboard()?;
    let _terminal = terminal_of(&keyboard)?;
    let mut buffer = [0; 64];
    loop {
        wait_for(port, libc::POLLIN);
        if let Ok(count @ 1..) = port.read(&mut buffer) {
            keyboard.write_all(&buffer[..count])?;
            wait_for(&keyboard, libc::POLLIN);
            let count = keyboard.read(&mut buffer)?;
            port.write_all(&buffer[..count])?;
        }
    }
}
