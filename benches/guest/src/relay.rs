//! Minimal relays between a process and the host: upper bounds for an agent.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
};

use crate::{
    FLOOD_BYTES, open_pty,
    sys::{bring_up_loopback, fork, mount, new_pipe, open_pty_peer, splice_to, wait_for},
    tcp, write_all,
};

/// The pipe size that the agent uses for a process with much output.
const PIPE: usize = 256 * 1024;

/// Waits for the byte with which the host starts the task.
fn wait_for_start(port: &mut File) {
    wait_for(port, libc::POLLIN);
    let _ = port.read(&mut [0; 1]);
}

/// Relays [`FLOOD_BYTES`] bytes to the port.
fn relay(port: &mut File, mut from: impl Read) -> io::Result<String> {
    let mut buffer = vec![0; PIPE];
    let mut passed = 0;
    while passed < FLOOD_BYTES {
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

/// Relays what a child reads from `/dev/zero` and writes to a pipe.
pub(crate) fn pipe(port: &mut File) -> io::Result<String> {
    let reading = zeros(port)?;
    relay(port, reading)
}

/// The same without a copy: the pipe's pages go to the device. An agent cannot use
/// this, because it could not resend the data after a lost link.
pub(crate) fn splice(port: &mut File) -> io::Result<String> {
    let reading = zeros(port)?;
    let mut passed = 0;
    while passed < FLOOD_BYTES {
        match splice_to(&reading, port, PIPE) {
            // The driver returns 0 for an empty pipe.
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

/// Returns a pipe that a child fills with zeros, after the host's start byte.
fn zeros(port: &mut File) -> io::Result<File> {
    wait_for_start(port);
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

/// Relays what a child writes to a TCP connection.
pub(crate) fn tcp(port: &mut File) -> io::Result<String> {
    wait_for_start(port);
    bring_up_loopback()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    if fork()? {
        let (mut client, _) = listener.accept()?;
        tcp::flood_to(&mut client)?;
        return Ok("flooded".to_owned());
    }
    let mut server = TcpStream::connect(address)?;
    server.write_all(b"g")?;
    relay(port, server)
}

/// Relays keys from the port to a terminal, and its echoes back.
pub(crate) fn pty(port: &mut File) -> io::Result<String> {
    std::fs::create_dir_all("/dev/pts")?;
    mount(c"devpts", c"/dev/pts", c"devpts")?;
    let mut keyboard = open_pty()?;
    let _terminal = open_pty_peer(&keyboard)?;
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
