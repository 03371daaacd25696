//! A program that becomes ready when it is told to, and tells when that was.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener},
};

use crate::sys::now;

/// What it is asked on its connection. Each answer is a time.
const WHAT_TIME_IS_IT: u8 = b't';
const BECOME_READY: u8 = b'r';

/// Serves one connection on the port that `vmcell_control` names. What
/// `vmcell_ready` names is what it does to be ready.
pub(crate) fn serve() -> io::Result<u128> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, number("vmcell_control")?))?;
    let (mut control, _) = listener.accept()?;
    control.set_nodelay(true)?;
    let mut ready = None;
    let mut byte = [0];
    while control.read(&mut byte)? > 0 {
        let moment = now();
        match byte[0] {
            WHAT_TIME_IS_IT => {}
            BECOME_READY => ready = Some(become_ready()?),
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        }
        control.write_all(&moment.to_le_bytes())?;
    }
    drop(ready);
    Ok(0)
}

/// Answers with what must stay.
fn become_ready() -> io::Result<Option<TcpListener>> {
    let what = std::env::var("vmcell_ready").unwrap_or_default();
    match what.split_once(':') {
        Some(("file", path)) => File::create(path).map(|_| None),
        Some(("log", line)) => writeln!(io::stdout(), "{line}").map(|()| None),
        Some(("tcp", port)) => {
            let port: u16 = port.parse().map_err(io::Error::other)?;
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(Some)
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn number(variable: &str) -> io::Result<u16> {
    let value = std::env::var(variable).map_err(io::Error::other)?;
    value.parse().map_err(io::Error::other)
}
